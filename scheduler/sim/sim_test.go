package sim

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/scheduler/schedtest"
	"github.com/nomadlite/nomadlite/structs"
)

func start() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// nodes makes nodes of 4000 MHz and 8192 MB in racks r0 to r3.
func nodes(from, to int) []*structs.Node {
	var out []*structs.Node
	for i := from; i < to; i++ {
		n := schedtest.Node(fmt.Sprintf("n%02d", i))
		n.NodeClass, n.Meta["rack"] = "small", fmt.Sprint("r", i%4)
		out = append(out, n)
	}
	return out
}

// job makes a job whose allocations take 1000 MHz and 256 MB.
func job(id, kind string, count, priority int) *structs.Job {
	j := schedtest.Job(id, kind, count)
	j.TaskGroups[0].Tasks[0].Resources.CPU = structs.Ptr(1000)
	j.Priority = structs.Ptr(priority)
	return j
}

func do(t *testing.T, s *Sim, e Event) *Step {
	t.Helper()
	step, err := s.Do(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	s.check(t)
	return step
}

// check looks whether everything that shall run does, and no node holds more than it has.
func (s *Sim) check(t *testing.T) {
	t.Helper()
	for _, a := range s.Allocs() {
		if !a.TerminalStatus() && (a.ClientStatus != structs.AllocClientStatusRunning || !up(s.Node(a.NodeID))) {
			t.Errorf("%s on %s is %s and %s", a.Name, a.NodeID, a.DesiredStatus, a.ClientStatus)
		}
	}
	for n := range s.Nodes() {
		if used := s.cluster.usage[n.ID]; used != nil && up(n) && used.CPU > n.NodeResources.Cpu.CpuShares {
			t.Errorf("node %s holds %d MHz", n.ID, used.CPU)
		}
	}
}

func TestWhatIf(t *testing.T) {
	s := New(Config{Seed: 1, Now: start()})
	step := do(t, s, Event{AddNodes: nodes(0, 8), Run: []*structs.Job{job("web", "service", 24, 50), job("agent", "system", 1, 80)}})
	if step.Placed != 32 || len(step.Unplaced) != 0 {
		t.Fatalf("step %+v", step)
	}
	if u := s.Usage(); len(u) != 2 || u[0].Allocs != 32 || u[0].CPU != (Amount{32000, 32000}) || u[1].Class != "small" || u[1].Ready != 8 ||
		u[0].CPU.Percent() != 100 {
		t.Fatalf("usage %+v", u)
	}
	// A lost rack: what it held has no place, and the words say why.
	step = do(t, s, Event{Lose: []string{"rack=r1"}})
	if step.Nodes != 2 || step.Lost != 8 || len(step.Unplaced) != 1 || step.Unplaced[0].Missing != 6 ||
		step.Unplaced[0].Reasons[0].Text != "needs at least 1000 MHz more cpu on 6 of 6 nodes" {
		t.Fatalf("step %+v", step)
	}
	// New nodes take it, and the system job is there too.
	step = do(t, s, Event{AddNodes: nodes(8, 10)})
	if step.Placed != 8 || len(step.Unplaced) != 0 {
		t.Fatalf("step %+v", step)
	}
	// A smaller count stops, a stopped job leaves.
	if step = do(t, s, Event{Scale: []Scale{{Job: "web", Count: 20}}}); step.Stopped != 4 || step.Placed != 0 {
		t.Errorf("step %+v", step)
	}
	if step = do(t, s, Event{Stop: []string{"default/web"}}); step.Stopped != 20 || s.Usage()[0].Allocs != 8 {
		t.Errorf("step %+v", step)
	}
	// What was lost comes back: its system job is placed anew, its old allocations have ended.
	if step = do(t, s, Event{Return: []string{"rack=r1,class=small"}}); step.Placed != 2 || s.Usage()[0].Ready != 10 {
		t.Errorf("step %+v", step)
	}
	if step = do(t, s, Event{Drain: []string{"node=n00"}}); step.Stopped != 1 || s.Usage()[0].Ready != 9 {
		t.Errorf("step %+v", step)
	}
}

func TestEvictions(t *testing.T) {
	cfg := &structs.SchedulerConfiguration{PreemptionConfig: structs.PreemptionConfig{ServiceSchedulerEnabled: true}}
	s := New(Config{Seed: 1, Now: start(), Scheduler: cfg})
	do(t, s, Event{AddNodes: nodes(0, 2), Run: []*structs.Job{job("low", "service", 8, 20)}})
	step := do(t, s, Event{Run: []*structs.Job{job("high", "service", 3, 80)}})
	if len(step.Evicted) != 3 || step.Placed != 3 || step.Evicted[0].Job != "low" || step.Evicted[0].Priority != 20 {
		t.Fatalf("step %+v", step)
	}
	if len(step.Unplaced) != 1 || step.Unplaced[0].Job != "low" || step.Unplaced[0].Missing != 3 {
		t.Errorf("unplaced %+v", step.Unplaced)
	}
}

func TestRollOuts(t *testing.T) {
	version := func(v string, canaries int, promote bool) *structs.Job {
		j := job("web", "service", 4, 50)
		j.TaskGroups[0].Tasks[0].Env = map[string]string{"v": v}
		j.TaskGroups[0].Update = &structs.UpdateStrategy{MaxParallel: structs.Ptr(1), Canary: structs.Ptr(canaries), AutoPromote: structs.Ptr(promote)}
		return j
	}
	s := New(Config{Seed: 1, Now: start()})
	do(t, s, Event{AddNodes: nodes(0, 4), Run: []*structs.Job{version("1", 0, false)}})
	step := do(t, s, Event{Run: []*structs.Job{version("2", 0, false)}})
	if step.Placed != 4 || step.Stopped != 4 || len(step.Notes) != 0 {
		t.Errorf("step %+v", step)
	}
	if step = do(t, s, Event{Run: []*structs.Job{version("3", 1, true)}}); step.Placed != 4 || step.Stopped != 4 || len(step.Notes) != 0 {
		t.Errorf("step %+v", step)
	}
	if step = do(t, s, Event{Run: []*structs.Job{version("4", 1, false)}}); step.Placed != 1 || len(step.Notes) != 1 {
		t.Errorf("step %+v", step)
	}
}

func TestTheSameSeedGivesTheSamePlaces(t *testing.T) {
	places := func(seed uint64) map[string]string {
		s := New(Config{Seed: seed, Now: start()})
		do(t, s, Event{AddNodes: nodes(0, 12), Run: []*structs.Job{
			job("a", "service", 6, 50), job("b", "batch", 9, 40), job("c", "service", 40, 30)}})
		do(t, s, Event{Lose: []string{"rack=r2"}})
		do(t, s, Event{Return: []string{"rack=r2"}})
		out := map[string]string{}
		for _, a := range s.Allocs() {
			out[a.ID] = a.Name + " " + a.NodeID + " " + a.ClientStatus
		}
		return out
	}
	if !reflect.DeepEqual(places(7), places(7)) {
		t.Error("one seed gave two outcomes")
	}
}

func TestWhatIsNotThereIsRefused(t *testing.T) {
	bad := job("bad", "service", 1, 50)
	bad.TaskGroups[0].Tasks[0].Driver = ""
	elsewhere := job("elsewhere", "service", 1, 50)
	elsewhere.NodePool = structs.Ptr("gpu")
	for _, e := range []Event{{Lose: []string{"rack=r9"}}, {Lose: []string{"rack"}}, {Drain: []string{"=x"}}, {Return: []string{"rack=r1"}}, {Stop: []string{"x"}},
		{Scale: []Scale{{Job: "web", Group: "x", Count: 1}}}, {Scale: []Scale{{Job: "web", Count: -1}}}, {AddNodes: nodes(0, 1)},
		{Run: []*structs.Job{bad}}, {Run: []*structs.Job{elsewhere}}} {
		s := New(Config{Now: start()})
		do(t, s, Event{AddNodes: nodes(0, 4), Run: []*structs.Job{job("web", "service", 1, 50)}})
		if _, err := s.Do(context.Background(), e); structs.ErrorCode(err) != structs.CodeInvalid {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// A node pool's configuration goes before the cluster's for the jobs of that pool, and for no others.
func TestNodePoolsHaveTheirOwnConfiguration(t *testing.T) {
	s := New(Config{Now: start(), Scheduler: &structs.SchedulerConfiguration{SchedulerAlgorithm: "binpack", MemoryOversubscriptionEnabled: true},
		Pools: []*structs.NodePool{{Name: "wide", SchedulerConfiguration: &structs.NodePoolSchedulerConfiguration{
			SchedulerAlgorithm: "spread", MemoryOversubscriptionEnabled: structs.Ptr(false)}}}})
	all := nodes(0, 8)
	for _, n := range all[4:] {
		n.NodePool = "wide"
	}
	e := Event{AddNodes: all}
	for i := range 3 {
		for _, pool := range []string{"default", "wide"} {
			j := job(fmt.Sprint(pool, i), "service", 1, 50)
			j.NodePool = structs.Ptr(pool)
			j.TaskGroups[0].Tasks[0].Resources.MemoryMaxMB = structs.Ptr(512)
			e.Run = append(e.Run, j)
		}
	}
	do(t, s, e)
	used := map[string]map[string]bool{"default": {}, "wide": {}}
	for _, a := range s.Allocs() {
		pool := s.Node(a.NodeID).NodePool
		used[pool][a.NodeID] = true
		if more := a.AllocatedResources.Tasks["main"].Memory.MemoryMaxMB; (more > 256) != (pool == "default") {
			t.Errorf("%s in pool %s may use %d MB", a.Name, pool, more)
		}
	}
	if len(used["default"]) != 1 || len(used["wide"]) != 3 {
		t.Errorf("nodes in use: %v", used)
	}
}
