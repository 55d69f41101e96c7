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

// flatValue is a single value in something of free form: as differences show it, and of which kind it is.
type flatValue struct{ text, kind string }

// exact is the value as JSON would have it, for two that only differ in their kind.
func (f flatValue) exact() string {
	switch f.kind {
	case "text":
		return strconv.Quote(f.text)
	case "null", "{}", "[]":
		return f.kind
	}
	return f.text
}

// flatten names each single value in v: name[key] in maps, name[index] in lists. Without a name the keys of v itself
// are the names.
func flatten(name string, v reflect.Value) map[string]flatValue {
	out := map[string]flatValue{}
	if v = indirect(v); v.IsValid() && (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() > 0 {
		flattenInto(out, name, v)
	}
	return out
}

func flattenInto(out map[string]flatValue, name string, v reflect.Value) {
	v = indirect(v)
	switch {
	case !v.IsValid():
		out[name] = flatValue{kind: "null"}
	case v.Kind() == reflect.Map && v.Len() == 0:
		out[name] = flatValue{kind: "{}"} // empty, but there
	case v.Kind() == reflect.Map:
		for iter := v.MapRange(); iter.Next(); {
			key := iter.Key().String()
			if name != "" {
				key = name + "[" + key + "]"
			}
			flattenInto(out, key, iter.Value())
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		out[name] = flatValue{diffText(v), "text"}
	case v.Kind() == reflect.Slice && v.Len() == 0:
		out[name] = flatValue{kind: "[]"}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			flattenInto(out, fmt.Sprintf("%s[%d]", name, i), v.Index(i))
		}
	case v.Type() == reflect.TypeFor[json.Number]():
		out[name] = flatValue{numberText(v.String()), "number"}
	case v.Kind() == reflect.String:
		out[name] = flatValue{v.String(), "text"}
	case v.Kind() == reflect.Bool:
		out[name] = flatValue{diffText(v), "bool"}
	default:
		out[name] = flatValue{diffText(v), "number"}
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

// flat compares flattened values by name; an empty one is not the same as none, nor a number the same as a text.
func (d differ) flat(old, new map[string]flatValue) []*FieldDiff {
	names := maps.Clone(old)
	maps.Copy(names, new)
	var out []*FieldDiff
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, had := old[name]
		b, has := new[name]
		if had && has && a.text == b.text && a.kind != b.kind {
			out = append(out, d.field(name, a.exact(), b.exact(), true, true)...)
			continue
		}
		out = append(out, d.field(name, a.text, b.text, had, has)...)
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

// blocks compares lists and maps of structs. Elements of a list with the same key are one that may have been edited;
// without a key an element that changed was deleted and another one added. What stayed, but changed its place among
// all that stayed, has a difference called Order.
func (d differ) blocks(name string, key []string, old, new reflect.Value) []*ObjectDiff {
	if old.Kind() == reflect.Map || new.Kind() == reflect.Map {
		return d.blockMap(name, old, new)
	}
	a, b := elements(old), elements(new)
	partner, taken := partners(a, b, key)
	places := newPlaces(partner)
	var out []*ObjectDiff
	for i, x := range a {
		if partner[i] == 0 {
			out = append(out, d.object(name, x, reflect.Value{})...)
			continue
		}
		out = append(out, d.object(name, x, b[partner[i]-1], places[i]...)...)
	}
	for i, y := range b {
		if !taken[i] {
			out = append(out, d.object(name, reflect.Value{}, y)...)
		}
	}
	return out
}

// blockMap compares structs that have names.
func (d differ) blockMap(name string, old, new reflect.Value) []*ObjectDiff {
	byName := func(v reflect.Value) map[string]reflect.Value {
		out := map[string]reflect.Value{}
		if v.IsValid() {
			for iter := v.MapRange(); iter.Next(); {
				if e := indirect(iter.Value()); e.IsValid() {
					out[iter.Key().String()] = e
				}
			}
		}
		return out
	}
	a, b := byName(old), byName(new)
	all := maps.Clone(a)
	maps.Copy(all, b)
	var out []*ObjectDiff
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, d.object(name, a[key], b[key])...)
	}
	return out
}

// partners finds for each element of a its place in b, counted from 1, 0 for none, and what of b has a partner.
// Elements without a difference come first, so that an edit is told of as few as possible.
func partners(a, b []reflect.Value, key []string) (partner []int, taken []bool) {
	partner, taken = make([]int, len(a)), make([]bool, len(b))
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
	return partner, taken
}

// newPlaces tells of each element that has a partner whether its place among those with partners changed.
func newPlaces(partner []int) [][]*FieldDiff {
	stay := slices.DeleteFunc(slices.Clone(partner), func(p int) bool { return p == 0 })
	slices.Sort(stay)
	out := make([][]*FieldDiff, len(partner))
	rank := 0
	for i, p := range partner {
		if p == 0 {
			continue
		}
		now, _ := slices.BinarySearch(stay, p)
		if now != rank {
			out[i] = []*FieldDiff{{Type: DiffTypeEdited, Name: "Order", Old: strconv.Itoa(rank + 1), New: strconv.Itoa(now + 1)}}
		}
		rank++
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

// elements gives the structs of a list.
func elements(v reflect.Value) []reflect.Value {
	if v = indirect(v); !v.IsValid() {
		return nil
	}
	var out []reflect.Value
	for i := range v.Len() {
		if e := indirect(v.Index(i)); e.IsValid() {
			out = append(out, e)
		}
	}
	return out
}

func keyText(v reflect.Value, key []string) string {
	var out string
	for _, name := range key {
		out += strconv.Quote(diffText(v.FieldByName(name)))
	}
	return out
}
