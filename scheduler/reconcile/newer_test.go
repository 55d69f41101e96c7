package reconcile

import (
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

// TestNewerOfOnePlan: what is placed in one plan has one index, whatever the ids. A canary placed beside an old version
// that is placed again has the name after it.
func TestNewerOfOnePlan(t *testing.T) {
	old := &structs.Allocation{ID: "f", CreateIndex: 7, JobVersion: 1}
	canary := &structs.Allocation{ID: "a", CreateIndex: 7, JobVersion: 2}
	if !newer(canary, old) || newer(old, canary) {
		t.Error("the old version is taken for the newer one")
	}
	if later := (&structs.Allocation{ID: "a", CreateIndex: 8}); !newer(later, canary) {
		t.Error("one placed later is not newer")
	}
}
