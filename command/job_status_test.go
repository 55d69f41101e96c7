package command

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// What is away is not shown as if it simply ran; when nothing is, the table is as other tools know it.
func TestTablesOfAllocationsTellTheirCondition(t *testing.T) {
	now := time.Now()
	back := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	away := &structs.Allocation{ID: "a0000000-1", TaskGroup: "web", DesiredStatus: "run", ClientStatus: "running",
		Condition: structs.Condition{Status: structs.ConditionAway, Until: back, Reason: "kernel update"}}
	heard := &structs.Allocation{ID: "b0000000-1", TaskGroup: "web", DesiredStatus: "run", ClientStatus: "running",
		Condition: structs.Condition{Status: structs.ConditionOK}}
	for _, verbose := range []bool{false, true} {
		got := allocTable([]*structs.AllocationListStub{away.Stub(), heard.Stub()}, verbose, now)
		lines := strings.Split(got, "\n")
		if want := "  away, expected back by " + formatTime(back) + " (kernel update)"; !strings.HasSuffix(lines[0], "  Condition") ||
			!strings.HasSuffix(lines[1], want) || !strings.HasSuffix(lines[2], "  ok") {
			t.Errorf("got\n%s", got)
		}
		if got := allocTable([]*structs.AllocationListStub{heard.Stub()}, verbose, now); strings.Contains(got, "Condition") {
			t.Errorf("nothing is inferred, but got\n%s", got)
		}
	}
}
