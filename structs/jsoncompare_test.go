package structs

import (
	"fmt"
	"sort"
)

// jsonDifferences lists where two decoded JSON values differ by the rules of the jobspec cases: null, a missing member,
// [] and {} are the same; an object that has members is not null, even if all of them are.
func jsonDifferences(want, got any, path string) []string {
	if jsonEmpty(want) && jsonEmpty(got) {
		return nil
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		keys := map[string]bool{}
		for k := range w {
			keys[k] = true
		}
		for k := range g {
			keys[k] = true
		}
		names := make([]string, 0, len(keys))
		for k := range keys {
			names = append(names, k)
		}
		sort.Strings(names)
		var out []string
		for _, k := range names {
			out = append(out, jsonDifferences(w[k], g[k], path+"."+k)...)
		}
		return out
	case []any:
		g, ok := got.([]any)
		if !ok {
			break
		}
		if len(w) != len(g) {
			return []string{fmt.Sprintf("%s: want %d entries, got %d", path, len(w), len(g))}
		}
		var out []string
		for i := range w {
			out = append(out, jsonDifferences(w[i], g[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
		return out
	default:
		if want == got {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: want %v, got %v", path, want, got)}
}

func jsonEmpty(v any) bool {
	switch t := v.(type) {
	case nil:
		return true
	case []any:
		return len(t) == 0
	case map[string]any:
		return len(t) == 0
	}
	return false
}
