package endpoint

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever a member of a job is replaced by, the answer is a job stored or a reason: never a panic.
func TestNoMutationOfAJobMakesAHandlerPanic(t *testing.T) {
	s := newServer(t)
	seen := map[string]bool{} // members that were tried in an earlier case
	paths, err := filepath.Glob(cases + "/*.job.json")
	if err != nil || len(paths) == 0 {
		t.Fatal(err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".job.json")
		t.Run(name, func(t *testing.T) {
			var body any
			decodeJSON(t, readFile(t, path), &body)
			mutate("", body, seen, func(what string) {
				text, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				got := s.serve(t, "PUT", "/v1/jobs", string(text))
				switch {
				case got.status == 200 || got.status == 400:
				case got.status == 500 && !strings.Contains(got.body, "internal error") && got.body != "":
				default:
					t.Fatalf("%s: answered %d %q", what, got.status, got.body)
				}
			})
		})
	}
}

// mutate calls try once for each member of value that was not seen, and each thing that takes its place, and puts it
// back.
func mutate(path string, value any, seen map[string]bool, try func(what string)) {
	others := []any{nil, "", "x", -1, json.Number("9223372036854775807"), []any{}, []any{nil}, map[string]any{}, true}
	replace := func(at string, old any, set func(any)) {
		for _, other := range others {
			if seen[at] {
				break
			}
			set(other)
			text, _ := json.Marshal(other)
			try(at + " = " + string(text))
		}
		seen[at] = true
		set(old)
		mutate(at, old, seen, try)
	}
	switch v := value.(type) {
	case map[string]any:
		for name, old := range v {
			replace(path+"."+name, old, func(other any) { v[name] = other })
		}
	case []any:
		for i, old := range v {
			replace(path+"[]", old, func(other any) { v[i] = other })
		}
	}
}
