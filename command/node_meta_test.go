package command

import (
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func TestMetaChanges(t *testing.T) {
	got, err := metaChanges([]string{"a=1", "b=", "c=x=y"}, "d, e,")
	if err != nil || len(got) != 5 || *got["a"] != "1" || *got["b"] != "" || *got["c"] != "x=y" || got["d"] != nil || got["e"] != nil {
		t.Errorf("got %v, %v", got, err)
	}
	for _, c := range []struct {
		args  []string
		unset string
	}{{nil, ""}, {[]string{"a"}, ""}, {[]string{"=1"}, ""}, {[]string{"a=1"}, "a"}, {nil, ","}} {
		if got, err := metaChanges(c.args, c.unset); err == nil {
			t.Errorf("%v -unset=%s: %v", c.args, c.unset, got)
		}
	}
}

func TestMetaText(t *testing.T) {
	got := metaText(&structs.NodeMetaResponse{Meta: map[string]string{"rack": "r1", "role": "db"},
		Dynamic: map[string]*string{"role": structs.Ptr("db"), "old": nil}, Static: map[string]string{"rack": "r1", "old": "1"}})
	want := "All Meta\nrack = r1\nrole = db\n\nDynamic Meta\nold  = <unset>\nrole = db\n\nStatic Meta\nold  = 1\nrack = r1\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
	if got := metaText(&structs.NodeMetaResponse{}); got != "All Meta\n<none>\n\nDynamic Meta\n<none>\n\nStatic Meta\n<none>\n" {
		t.Errorf("got\n%s", got)
	}
}
