package structs

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/nomadlite/nomadlite/structs/jsontest"
)

// TestParseViewSaysWhatTheJobspecSays reads what the public command prints for a jobspec, and prints it again.
func TestParseViewSaysWhatTheJobspecSays(t *testing.T) {
	cases, err := filepath.Glob("testdata/parse/*.json")
	if err != nil || len(cases) == 0 {
		t.Fatalf("found %d cases, %v", len(cases), err)
	}
	for _, path := range cases {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			decode := func(data []byte, v any) {
				t.Helper()
				d := json.NewDecoder(bytes.NewReader(data))
				d.UseNumber()
				if err := d.Decode(v); err != nil {
					t.Fatal(err)
				}
			}
			decode(data, &want)
			if inner, ok := want["Job"].(map[string]any); ok {
				want = inner
			}
			bare, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			var job Job
			decode(bare, &job)
			out, err := ParseView(&job)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			decode(out, &got)
			for _, d := range jsontest.Differences(want, got["Job"], "Job") {
				t.Error(d)
			}
		})
	}
}
