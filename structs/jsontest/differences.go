package jsontest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Differences lists the paths below path at which two decoded values differ. An object that has members is not null,
// even if all of them are. Numbers decoded as json.Number may differ in how a fraction is written.
func Differences(want, got any, path string) []string { return compare(want, got, path, true) }

// Lacks is Differences without the members of which want says nothing.
func Lacks(want, got any, path string) []string { return compare(want, got, path, false) }

func compare(want, got any, path string, whole bool) []string {
	if empty(want) && empty(got) {
		return nil
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		names := maps.Clone(w)
		if whole {
			maps.Copy(names, g)
		}
		var out []string
		for _, name := range slices.Sorted(maps.Keys(names)) {
			out = append(out, compare(w[name], g[name], path+"."+name, whole)...)
		}
		return out
	case []any:
		g, ok := got.([]any)
		if !ok {
			break
		}
		if len(w) != len(g) {
			return []string{fmt.Sprintf("%s: want %d elements, got %d", path, len(w), len(g))}
		}
		var out []string
		for i := range w {
			out = append(out, compare(w[i], g[i], fmt.Sprintf("%s[%d]", path, i), whole)...)
		}
		return out
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(w, g) {
			return nil
		}
	}
	if reflect.DeepEqual(want, got) {
		return nil
	}
	return []string{fmt.Sprintf("%s: want %#v, got %#v", path, want, got)}
}

// sameNumber compares whole numbers digit by digit, since those of 64 bits do not fit a float.
func sameNumber(want, got json.Number) bool {
	if want == got {
		return true
	}
	if !strings.ContainsAny(want.String()+got.String(), ".eE") {
		return false
	}
	a, errA := want.Float64()
	b, errB := got.Float64()
	return errA == nil && errB == nil && a == b
}

func empty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case []any:
		return len(x) == 0
	case map[string]any:
		return len(x) == 0
	}
	return false
}
