package structs

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// diffKind is how values of a type are compared.
type diffKind int

const (
	kindScalar diffKind = iota // one value, or a pointer to one
	kindTexts                  // map[string]string: a field for each key
	kindList                   // list of values
	kindFree                   // map of anything: an object of flattened names
	kindBlock                  // struct
	kindBlocks                 // list or map of structs
)

func kindOf(t reflect.Type) diffKind {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		return kindBlock
	case reflect.Map:
		switch {
		case t.Elem().Kind() == reflect.String:
			return kindTexts
		case isStruct(t.Elem()):
			return kindBlocks
		}
		return kindFree
	case reflect.Slice:
		switch {
		case t.Elem().Kind() == reflect.Uint8:
			return kindScalar // bytes
		case isStruct(t.Elem()):
			return kindBlocks
		}
		return kindList
	}
	return kindScalar
}

func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

// diffText is a value as differences show it; durations are in nanoseconds.
func diffText(v reflect.Value) string {
	v = indirect(v)
	if !v.IsValid() {
		return ""
	}
	switch {
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10)
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return base64.StdEncoding.EncodeToString(v.Bytes())
	}
	return fmt.Sprint(v.Interface())
}

// flatten names each single value in v: name[key] in maps, name[index] in lists. Without a name the keys of v itself
// are the names.
func flatten(name string, v reflect.Value) map[string]string {
	out := map[string]string{}
	if v = indirect(v); v.IsValid() && (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() > 0 {
		flattenInto(out, name, v)
	}
	return out
}

func flattenInto(out map[string]string, name string, v reflect.Value) {
	v = indirect(v)
	bytes := v.IsValid() && v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8
	switch {
	case v.IsValid() && v.Kind() == reflect.Map && v.Len() > 0:
		for iter := v.MapRange(); iter.Next(); {
			key := iter.Key().String()
			if name != "" {
				key = name + "[" + key + "]"
			}
			flattenInto(out, key, iter.Value())
		}
	case v.IsValid() && v.Kind() == reflect.Slice && v.Len() > 0 && !bytes:
		for i := range v.Len() {
			flattenInto(out, fmt.Sprintf("%s[%d]", name, i), v.Index(i))
		}
	case v.IsValid() && (v.Kind() == reflect.Map || v.Kind() == reflect.Slice && !bytes):
		out[name] = "" // empty, but there
	case v.IsValid() && v.Type() == reflect.TypeFor[json.Number]():
		out[name] = numberText(v.String())
	default:
		out[name] = diffText(v)
	}
}

// numberText writes a number as diffText writes numbers.
func numberText(s string) string {
	if strings.ContainsAny(s, ".eE") {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return strconv.FormatFloat(f, 'f', -1, 64)
		}
	}
	return s
}

// flat compares flattened values by name; an empty one is not the same as none.
func (d differ) flat(old, new map[string]string) []*FieldDiff {
	names := maps.Clone(old)
	maps.Copy(names, new)
	var out []*FieldDiff
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, had := old[name]
		b, has := new[name]
		out = append(out, d.field(name, a, b, had, has)...)
	}
	return out
}

// free compares maps of anything, such as a driver's configuration.
func (d differ) free(name string, old, new reflect.Value) []*ObjectDiff {
	a, b := flatten("", old), flatten("", new)
	return finish(&ObjectDiff{Name: name, Fields: d.flat(a, b)}, len(a) > 0, len(b) > 0)
}

// list compares lists of values: what was added and what was deleted, or, when only the order changed, what is at
// which place.
func (d differ) list(name string, old, new reflect.Value) []*ObjectDiff {
	a, b := texts(old), texts(new)
	count := map[string]int{}
	for _, s := range a {
		count[s]--
	}
	for _, s := range b {
		count[s]++
	}
	o := &ObjectDiff{Name: name}
	changed := false
	for _, s := range slices.Sorted(maps.Keys(count)) {
		n := count[s]
		changed = changed || n != 0
		for range max(-n, 0) {
			o.Fields = append(o.Fields, &FieldDiff{Type: DiffTypeDeleted, Name: name, Old: s})
		}
		for range max(n, 0) {
			o.Fields = append(o.Fields, &FieldDiff{Type: DiffTypeAdded, Name: name, New: s})
		}
		if n == 0 {
			o.Fields = append(o.Fields, d.field(name, s, s, true, true)...)
		}
	}
	if !changed && !slices.Equal(a, b) {
		o.Fields = nil
		for i := range a {
			o.Fields = append(o.Fields, d.field(fmt.Sprintf("%s[%d]", name, i), a[i], b[i], true, true)...)
		}
	}
	return finish(o, len(a) > 0, len(b) > 0)
}

func texts(v reflect.Value) []string {
	if v = indirect(v); !v.IsValid() {
		return nil
	}
	out := make([]string, v.Len())
	for i := range out {
		out[i] = diffText(v.Index(i))
	}
	return out
}

// blocks compares lists of structs. Elements with the same key are one that may have been edited; without a key an
// element that changed was deleted and another one added.
func (d differ) blocks(name string, key []string, old, new reflect.Value) []*ObjectDiff {
	a, b := elements(old), elements(new)
	partner := make([]int, len(a)) // place in b and 1, 0 for none
	taken := make([]bool, len(b))
	match := func(identity func(reflect.Value) string) {
		places := map[string][]int{}
		for i, y := range b {
			if !taken[i] {
				id := identity(y)
				places[id] = append(places[id], i)
			}
		}
		for i, x := range a {
			if partner[i] > 0 {
				continue
			}
			id := identity(x)
			if list := places[id]; len(list) > 0 {
				partner[i], taken[list[0]], places[id] = list[0]+1, true, list[1:]
			}
		}
	}
	match(func(v reflect.Value) string {
		var w strings.Builder
		content(&w, v)
		return w.String()
	})
	if len(key) > 0 {
		match(func(v reflect.Value) string { return keyText(v, key) })
	}
	var out []*ObjectDiff
	for i, x := range a {
		var y reflect.Value
		if partner[i] > 0 {
			y = b[partner[i]-1]
		}
		out = append(out, d.object(name, x, y)...)
	}
	for i, y := range b {
		if !taken[i] {
			out = append(out, d.object(name, reflect.Value{}, y)...)
		}
	}
	return out
}

// content writes all that is in v, the same for values without a difference.
func content(w *strings.Builder, v reflect.Value) {
	v = indirect(v)
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			w.WriteByte('{')
			content(w, v.Field(i))
		}
	case v.Kind() == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			w.WriteString(strconv.Quote(k.String()))
			w.WriteByte(':')
			content(w, v.MapIndex(k))
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		for i := range v.Len() {
			w.WriteByte('[')
			content(w, v.Index(i))
		}
	default:
		w.WriteString(strconv.Quote(diffText(v)))
	}
}

// elements gives the structs of a list, or those of a map in the order of its keys.
func elements(v reflect.Value) []reflect.Value {
	if v = indirect(v); !v.IsValid() {
		return nil
	}
	var out []reflect.Value
	if v.Kind() == reflect.Map {
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			out = append(out, indirect(v.MapIndex(k)))
		}
	} else {
		for i := range v.Len() {
			out = append(out, indirect(v.Index(i)))
		}
	}
	return slices.DeleteFunc(out, func(e reflect.Value) bool { return !e.IsValid() })
}

func keyText(v reflect.Value, key []string) string {
	var out string
	for _, name := range key {
		out += strconv.Quote(diffText(v.FieldByName(name)))
	}
	return out
}
