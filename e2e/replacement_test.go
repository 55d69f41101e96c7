package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// slowEnd takes 3 s to end when it is asked to. It notes with the time when an allocation begins and when it has ended.
const slowEnd = `f=%s; say() { echo $1 $NOMAD_ALLOC_ID $(date +%%s%%N) >> $f; }
trap 'sleep 3; say ended; exit 0' TERM; say began; echo up; while :; do sleep 0.05; done`

// succession is a job of which only one allocation may run at a time, on the first or the second of two nodes.
type succession struct {
	*cluster
	file string
}

func newSuccession(t *testing.T) *succession {
	s := &succession{cluster: newCluster(t)}
	s.addNode()
	s.file = s.Dir + "/times"
	return s
}

// runOn registers the job with the constraint that it runs on the n-th node, below 0 without one.
func (s *succession) runOn(n int) {
	s.t.Helper()
	register(s.t, s.Client, job("one", fmt.Sprintf(slowEnd, s.file), func(j *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		g.Update = &structs.UpdateStrategy{MinHealthyTime: structs.Ptr(100 * time.Millisecond)}
		g.Migrate = &structs.MigrateStrategy{MaxParallel: structs.Ptr(1), MinHealthyTime: structs.Ptr(100 * time.Millisecond)}
		task.KillSignal, task.KillTimeout = "SIGTERM", structs.Ptr(20*time.Second)
		task.Env = map[string]string{"ON": strconv.Itoa(n)} // so that nothing is updated in place
		if n >= 0 {
			j.Constraints = []*structs.Constraint{{LTarget: "${node.unique.id}", RTarget: s.ids[n], Operand: "="}}
		}
	}))
}

// up waits until the task of the only allocation that is to run has begun.
func (s *succession) up() *structs.AllocationListStub {
	s.t.Helper()
	list := awaitAllocs(s.t, s.Client, "one", "its allocation", func(l []*structs.AllocationListStub) bool {
		return slices.ContainsFunc(l, running)
	})
	a := list[slices.IndexFunc(list, running)]
	s.followLog(a.ID, "up")
	return a
}

// waiting waits until a replacement of old says whose end it waits for.
func (s *succession) waiting(old *structs.AllocationListStub) *structs.AllocationListStub {
	s.t.Helper()
	text := fmt.Sprintf("Waiting for previous allocation %.8s on node %s to stop", old.ID, old.NodeName)
	var found *structs.AllocationListStub
	awaitAllocs(s.t, s.Client, "one", text, func(l []*structs.AllocationListStub) bool {
		for _, a := range l {
			for _, ts := range a.TaskStates {
				for _, e := range ts.Events {
					if a.ID != old.ID && a.ClientStatus == structs.AllocClientStatusPending && e.DisplayMessage == text {
						found = a
					}
				}
			}
		}
		return found != nil
	})
	return found
}

// inTurn checks that each life ended before the next one began, and gives whose they were.
func (s *succession) inTurn() []string {
	s.t.Helper()
	raw, err := os.ReadFile(s.file)
	if err != nil {
		s.t.Fatal(err)
	}
	var lives []string
	open := ""
	for line := range strings.Lines(string(raw)) {
		words := strings.Fields(line)
		switch words[0] {
		case "began":
			if open != "" {
				s.t.Errorf("%s began while %s ran:\n%s", words[1], open, raw)
			}
			open = words[1]
			lives = append(lives, open)
		case "ended":
			open = ""
		}
	}
	return lives
}

// TestReplacementOnAnotherNodeStartsAfterTheOldOne takes a job from node to node in all ways that stop one allocation in
// favour of the next. Its process needs 3 s to end.
func TestReplacementOnAnotherNodeStartsAfterTheOldOne(t *testing.T) {
	s := newSuccession(t)
	s.runOn(0)
	first := s.up()

	// An update; the waiting node's agent is restarted meanwhile.
	s.runOn(1)
	second := s.waiting(first)
	if out := s.ok("alloc", "status", second.ID[:8]); !strings.Contains(out, "Waits For") || !strings.Contains(out, first.ID[:8]) {
		t.Errorf("alloc status does not tell whose end is awaited:\n%s", out)
	}
	s.nodes[1].Kill()
	s.nodes[1].Start()
	if up := s.up(); up.ID != second.ID {
		t.Errorf("%s runs, not %s", up.ID, second.ID)
	}

	// Stopped, and run again at once elsewhere.
	s.ok("job", "stop", "-detach", "one")
	s.runOn(0)
	third := s.waiting(second)
	s.up()

	// Two updates in a row: the one between never begins, the last waits for the first.
	s.runOn(1)
	fourth := s.waiting(third)
	s.runOn(0)
	fifth := s.up()
	s.inTurn()

	// By a drain, without a constraint.
	s.runOn(-1)
	s.waiting(fifth)
	at := s.up()
	s.drain(slices.Index(s.ids, at.NodeID), "-enable", "-detach")
	moved := s.waiting(at)
	if up := s.up(); up.ID != moved.ID {
		t.Errorf("%s runs, not %s", up.ID, moved.ID)
	}
	lives := s.inTurn()
	if slices.Contains(lives, fourth.ID) {
		t.Error("one that was stopped while it waited has begun")
	}
	if len(lives) != 6 {
		t.Errorf("lives: %v", lives)
	}
}

// TestStopsOfWhatWaits: a waiting replacement that is stopped ends at once, and one whose predecessor's node is purged
// begins.
func TestStopsOfWhatWaits(t *testing.T) {
	s := newSuccession(t)
	s.runOn(0)
	first := s.up()
	s.runOn(1)
	second := s.waiting(first)
	begin := time.Now()
	s.ok("job", "stop", "-detach", "one")
	awaitAllocs(t, s.Client, "one", "the end of what waited", func(l []*structs.AllocationListStub) bool {
		return slices.ContainsFunc(l, func(a *structs.AllocationListStub) bool {
			return a.ID == second.ID && a.ClientStatus == structs.AllocClientStatusComplete
		})
	})
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
	// Run again while the first one still ends; nobody will hear of that any more.
	s.nodes[0].Kill()
	s.runOn(1)
	third := s.waiting(first)
	if _, _, err := s.Client.Nodes().Purge(limited(t), s.ids[0], nil); err != nil {
		t.Fatal(err)
	}
	if up := s.up(); up.ID != third.ID {
		t.Errorf("%s runs, not %s", up.ID, third.ID)
	}
}
