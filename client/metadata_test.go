package client

import (
	"maps"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

// The servers hear at once of metadata that is set; an agent that comes back has it still, and what its configuration
// says by then is merged anew.
func TestMetadataIsSetWhileTheNodeRuns(t *testing.T) {
	a := newAgent(t)
	a.cfg.Meta = map[string]string{"rack": "r1", "old": "1"}
	a.start()
	registered := func(want map[string]string) {
		t.Helper()
		a.servers.until("a registration", func() bool {
			return len(a.servers.nodes) > 0 && maps.Equal(a.servers.nodes[len(a.servers.nodes)-1].Meta, want)
		})
	}
	registered(map[string]string{"rack": "r1", "old": "1"})
	class := a.client.Node().ComputedClass
	got, err := a.client.ApplyMetadata(t.Context(), map[string]*string{"rack": structs.Ptr("r2"), "role": structs.Ptr(""), "old": nil})
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got.Meta, map[string]string{"rack": "r2", "role": ""}) || !maps.Equal(got.Static, map[string]string{"rack": "r1", "old": "1"}) ||
		len(got.Dynamic) != 3 || got.Dynamic["old"] != nil || *got.Dynamic["rack"] != "r2" {
		t.Errorf("got %+v", got)
	}
	registered(map[string]string{"rack": "r2", "role": ""})
	if a.client.Node().ComputedClass == class {
		t.Error("the node's class is that of its former metadata")
	}
	for _, changes := range []map[string]*string{nil, {"": nil}, {"a b": structs.Ptr("1")}, {"${x}": nil}} {
		if _, err := a.client.ApplyMetadata(t.Context(), changes); structs.ErrorCode(err) != structs.CodeInvalid {
			t.Errorf("%v: %v", changes, err)
		}
	}

	a.end()
	a.cfg.Meta = map[string]string{"rack": "r1", "new": "1", "old": "1"}
	a.start()
	registered(map[string]string{"rack": "r2", "role": "", "new": "1"})
	if got := a.client.Metadata(); !maps.Equal(got.Static, a.cfg.Meta) || len(got.Dynamic) != 3 {
		t.Errorf("after a restart %+v", got)
	}
	if _, err := a.client.ApplyMetadata(t.Context(), map[string]*string{"rack": nil}); err != nil {
		t.Fatal(err)
	}
	registered(map[string]string{"role": "", "new": "1"})
}
