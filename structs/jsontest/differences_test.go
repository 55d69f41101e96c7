package jsontest

import (
	"encoding/json"
	"strings"
	"testing"
)

func decode(t *testing.T, text string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		want, got    string
		whole, lacks int // differences
	}{
		{`{"a": null}`, `{}`, 0, 0},
		{`{"a": [], "b": {}}`, `{"a": null}`, 0, 0},
		{`{"a": {"b": null}}`, `{"a": null}`, 1, 1},
		{`{}`, `{"a": 1}`, 1, 0},
		{`{"a": 1, "b": "x"}`, `{"a": 2, "b": "x"}`, 1, 1},
		{`{"a": [1, 2]}`, `{"a": [1]}`, 1, 1},
		{`{"a": [{"b": 1}]}`, `{"a": [{"b": 1, "c": 2}]}`, 1, 0},
		{`{"a": 9007199254740993}`, `{"a": 9007199254740992}`, 1, 1},
		{`{"a": 1.50}`, `{"a": 1.5}`, 0, 0},
		{`{"a": "1"}`, `{"a": 1}`, 1, 1},
	} {
		want, got := decode(t, c.want), decode(t, c.got)
		if d := Differences(want, got, "x"); len(d) != c.whole {
			t.Errorf("differences of %s and %s: %q, want %d", c.want, c.got, d, c.whole)
		}
		if d := Lacks(want, got, "x"); len(d) != c.lacks {
			t.Errorf("what %s lacks of %s: %q, want %d", c.got, c.want, d, c.lacks)
		}
	}
}
