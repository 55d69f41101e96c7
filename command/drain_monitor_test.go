package command

import (
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func TestDrainMonitorTellsWhatIsLeft(t *testing.T) {
	s, out, _ := testStreams()
	m := &drainMonitor{c: &call{streams: s}, node: &structs.Node{ID: "n", DrainStrategy: &structs.DrainStrategy{}},
		seen: map[string]*structs.Allocation{
			"a": {ID: "a", JobID: "web", DesiredStatus: "run", ClientStatus: "running"},
			"b": {ID: "b", JobID: "web", DesiredStatus: "stop", ClientStatus: "running"},
			"c": {ID: "c", JobID: "web", DesiredStatus: "stop", ClientStatus: "complete"},
			"d": {ID: "d", JobID: "web", DesiredStatus: "run", ClientStatus: "running",
				DesiredTransition: structs.DesiredTransition{Migrate: structs.Ptr(true)}},
		}}
	m.tellWhatIsLeft()
	for _, want := range []string{`Node "n" is draining: no deadline`, `Alloc "a" of job "web" is running` + "\n",
		`Alloc "b" of job "web" is running, and told to stop`, `Alloc "d" of job "web" is running, and marked for migration`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if strings.Contains(out.String(), `"c"`) {
		t.Errorf("what has ended is told:\n%s", out)
	}
}
