package scheduler_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/scheduler/schedtest"
	"github.com/nomadlite/nomadlite/structs"
)

func TestPlaceStopBlock(t *testing.T) {
	c := schedtest.New()
	p := &schedtest.Planner{Cluster: c}
	c.Fill("n", 2, nil)
	c.PutJob(schedtest.Job("a", "service", 20)) // 8 fit on each node
	eval, err := p.Evaluate("a", "service", structs.EvalTriggerJobRegister, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.Allocs()); n != 16 {
		t.Fatalf("placed %d, want 16", n)
	}
	if eval.QueuedAllocations["web"] != 4 || eval.BlockedEval == "" || eval.Status != structs.EvalStatusComplete {
		t.Fatalf("eval: %+v", eval)
	}
	metrics := eval.FailedTGAllocs["web"]
	if metrics.DimensionExhausted["cpu"] != 2 || metrics.CoalescedFailures != 3 || metrics.NodesExhausted != 2 {
		t.Fatalf("metrics: %+v", metrics)
	}
	// Room appears: the blocked evaluation places the rest and completes.
	c.Fill("m", 1, nil)
	blocked, err := p.Process(c.Eval(eval.BlockedEval))
	if err != nil {
		t.Fatal(err)
	}
	if blocked.Status != structs.EvalStatusComplete || len(c.Allocs()) != 20 {
		t.Fatalf("blocked eval: %+v, %d allocations", blocked, len(c.Allocs()))
	}
	// Stop.
	job := c.Job("default", "a").Copy()
	job.Stop = true
	c.PutJob(job)
	if _, err = p.Evaluate("a", "service", structs.EvalTriggerJobDeregister,
		func(e *structs.Evaluation) { e.NoShutdownDelay = true }); err != nil {
		t.Fatal(err)
	}
	for _, a := range c.Allocs() {
		if a.DesiredStatus != structs.AllocDesiredStatusStop || !structs.Val(a.DesiredTransition.NoShutdownDelay) {
			t.Fatalf("not stopped: %+v", a)
		}
	}
}

func TestNewRefusesUnknownTypes(t *testing.T) {
	for kind, code := range map[string]structs.Code{
		"nonsense": structs.CodeInvalid, "": structs.CodeInvalid, "_core": structs.CodeInvalid,
	} {
		if _, err := scheduler.New(kind, scheduler.Config{}); structs.ErrorCode(err) != code {
			t.Errorf("New(%q): %v", kind, err)
		}
	}
}

// harness is a cluster with nodes n-0000 and so on, and the planner to it.
func harness(nodes int) (*schedtest.Cluster, *schedtest.Planner) {
	c := schedtest.New()
	c.Fill("n", nodes, nil)
	return c, &schedtest.Planner{Cluster: c}
}

func evaluate(t *testing.T, p *schedtest.Planner, job string) *structs.Evaluation {
	t.Helper()
	eval, err := p.Evaluate(job, structs.Val(p.Cluster.Job("", job).Type), structs.EvalTriggerJobRegister, nil)
	if err != nil {
		t.Fatal(err)
	}
	return eval
}

// TestBlockedTellsWhatCouldHelp looks at the classes of a blocked evaluation, and at one that is blocked again.
func TestBlockedTellsWhatCouldHelp(t *testing.T) {
	c, p := harness(1)
	c.EditNode("n-0000", func(n *structs.Node) { n.NodeClass = "full" })
	other := schedtest.Node("windows")
	other.Attributes["kernel.name"] = "windows"
	c.PutNode(other)
	job := schedtest.Job("a", "service", 9)
	job.Constraints = []*structs.Constraint{{LTarget: "${attr.kernel.name}", RTarget: "linux", Operand: "="}}
	c.PutJob(job)
	eval := evaluate(t, p, "a")
	blocked := c.Eval(eval.BlockedEval)
	want := map[string]bool{c.Node("n-0000").ComputedClass: true, c.Node("windows").ComputedClass: false}
	if !maps.Equal(blocked.ClassEligibility, want) || blocked.EscapedComputedClass {
		t.Fatalf("eligibility %v, escaped %v, want %v", blocked.ClassEligibility, blocked.EscapedComputedClass, want)
	}
	if blocked.Status != structs.EvalStatusBlocked || blocked.PreviousEval != eval.ID || blocked.SnapshotIndex == 0 ||
		blocked.TriggeredBy != structs.EvalTriggerQueuedAllocs || blocked.QueuedAllocations["web"] != 1 {
		t.Fatalf("blocked: %+v", blocked)
	}
	metrics := eval.FailedTGAllocs["web"]
	if metrics.NodesEvaluated != 2 || metrics.NodesFiltered != 1 || metrics.NodesExhausted != 1 || metrics.NodesInPool != 2 ||
		metrics.NodesAvailable["dc1"] != 2 || metrics.ConstraintFiltered["${attr.kernel.name} = linux"] != 1 ||
		metrics.ClassExhausted["full"] != 1 || metrics.DimensionExhausted["cpu"] != 1 {
		t.Fatalf("metrics: %+v", metrics)
	}
	// Run again without room: it is the same evaluation that stays blocked.
	before := len(c.Evals())
	again, err := p.Process(blocked)
	if err != nil {
		t.Fatal(err)
	}
	if again.ID != blocked.ID || again.Status != structs.EvalStatusBlocked || len(c.Evals()) != before {
		t.Fatalf("blocked again: %+v", again)
	}
}

func TestBlockedEscapesClasses(t *testing.T) {
	c, p := harness(1)
	job := schedtest.Job("a", "service", 1)
	job.Constraints = []*structs.Constraint{{LTarget: "${attr.unique.hostname}", RTarget: "elsewhere", Operand: "="}}
	c.PutJob(job)
	blocked := c.Eval(evaluate(t, p, "a").BlockedEval)
	if !blocked.EscapedComputedClass {
		t.Fatalf("a constraint on one node does not escape its class: %+v", blocked)
	}
}

// TestConflict lets another worker take the room first: the scheduler looks again, and gives up when that never ends.
func TestConflict(t *testing.T) {
	for _, tc := range []struct {
		kind      string
		conflicts int
		status    string
		plans     int
	}{
		{"service", 1, structs.EvalStatusComplete, 2},
		{"service", 100, structs.EvalStatusFailed, 5},
		{"batch", 100, structs.EvalStatusFailed, 2},
	} {
		c, p := harness(100)
		c.PutJob(schedtest.Job("a", tc.kind, 1))
		p.Before = func(plan *structs.Plan) {
			for node := range plan.Places {
				if len(p.Plans) < tc.conflicts {
					c.EditNode(node, func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
				}
			}
		}
		eval := evaluate(t, p, "a")
		if eval.Status != tc.status || len(p.Plans) != tc.plans {
			t.Errorf("%s, %d conflicts: %s after %d plans: %s", tc.kind, tc.conflicts, eval.Status, len(p.Plans), eval.StatusDescription)
		}
		if tc.status == structs.EvalStatusFailed {
			b := c.Eval(eval.BlockedEval)
			if b == nil || b.TriggeredBy != structs.EvalTriggerMaxPlans || !b.EscapedComputedClass {
				t.Errorf("%s: blocked %+v", tc.kind, b)
			}
		}
	}
}

// TestProgressIsNoConflict commits one allocation of each plan: such an evaluation goes on to its end.
func TestProgressIsNoConflict(t *testing.T) {
	c, p := harness(12)
	job := schedtest.Job("a", "service", 8)
	job.Constraints = []*structs.Constraint{{Operand: "distinct_hosts"}}
	c.PutJob(job)
	p.Before = func(plan *structs.Plan) {
		for i, node := range slices.Sorted(maps.Keys(plan.Places)) {
			full := i > 0 && len(p.Plans) < 7
			c.EditNode(node, func(n *structs.Node) { n.NodeMaxAllocs = map[bool]int{true: -1, false: 0}[full] })
			if full {
				c.EditNode(node, func(n *structs.Node) { n.NodeResources.Cpu.CpuShares = 100 })
			} else {
				c.EditNode(node, func(n *structs.Node) { n.NodeResources.Cpu.CpuShares = 4000 })
			}
		}
	}
	eval := evaluate(t, p, "a")
	if eval.Status != structs.EvalStatusComplete || len(p.Plans) < 2 {
		t.Fatalf("%+v after %d plans", eval, len(p.Plans))
	}
}

func TestNetworks(t *testing.T) {
	c, p := harness(2)
	c.EditNode("n-0001", func(n *structs.Node) {
		n.HostNetworks = map[string]*structs.HostNetworkInfo{"public": {CIDR: "10.1.2.3/32", ReservedPorts: "9000"}}
	})
	job := schedtest.Job("a", "service", 1)
	tg := job.TaskGroups[0]
	tg.Networks = []*structs.NetworkResource{{
		ReservedPorts: []structs.Port{{Label: "http", Value: 8080, To: 80}},
		DynamicPorts:  []structs.Port{{Label: "rpc", To: -1}, {Label: "public", HostNetwork: "public"}},
	}}
	tg.Tasks[0].Resources.Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "old"}}}}
	c.PutJob(job)
	evaluate(t, p, "a")
	a := c.Allocs()[0]
	shared := a.AllocatedResources.Shared
	if a.NodeID != "n-0001" || len(shared.Ports) != 3 || len(shared.Networks) != 1 {
		t.Fatalf("on %s: %+v", a.NodeID, shared)
	}
	http, rpc, public := shared.Ports[0], shared.Ports[1], shared.Ports[2]
	if http != (structs.PortMapping{Label: "http", Value: 8080, To: 80, HostIP: "192.168.0.100"}) {
		t.Errorf("http: %+v", http)
	}
	if rpc.Value < 20000 || rpc.Value > 32000 || rpc.To != rpc.Value || rpc.HostIP != "192.168.0.100" {
		t.Errorf("rpc: %+v", rpc)
	}
	if public.Value == rpc.Value || public.To != 0 || public.HostIP != "10.1.2.3" {
		t.Errorf("public: %+v", public)
	}
	if n := shared.Networks[0]; n.IP != "192.168.0.100" || n.Device != "eth0" || len(n.ReservedPorts) != 1 || len(n.DynamicPorts) != 2 {
		t.Errorf("network: %+v", n)
	}
	old := a.AllocatedResources.Tasks["main"].Networks
	if len(old) != 1 || len(old[0].DynamicPorts) != 1 || old[0].DynamicPorts[0].Value == 0 {
		t.Errorf("network of the task: %+v", old)
	}
	// A second one cannot have the static port, and the metrics say so.
	job = job.Copy()
	job.TaskGroups[0].Count = structs.Ptr(2)
	c.PutJob(job)
	metrics := evaluate(t, p, "a").FailedTGAllocs["web"]
	if metrics == nil || metrics.DimensionExhausted["network: reserved port collision http=8080"] != 1 {
		t.Fatalf("metrics: %+v", metrics)
	}
}

func TestScoresAreTold(t *testing.T) {
	c, p := harness(8)
	c.PutJob(schedtest.Job("a", "service", 2))
	evaluate(t, p, "a")
	for _, a := range c.Allocs() {
		m := a.Metrics
		if len(m.ScoreMetaData) != 5 || m.NodesEvaluated != 8 || m.ScoreMetaData[0].NodeID != a.NodeID {
			t.Fatalf("metrics: %+v", m)
		}
		for i, s := range m.ScoreMetaData {
			if _, ok := s.Scores["binpack"]; !ok || (i > 0 && s.NormScore > m.ScoreMetaData[i-1].NormScore) {
				t.Fatalf("score %d: %+v", i, s)
			}
		}
	}
}

func TestOversubscription(t *testing.T) {
	for _, on := range []bool{false, true} {
		c, p := harness(1)
		c.Config = &structs.SchedulerConfiguration{MemoryOversubscriptionEnabled: on}
		job := schedtest.Job("a", "service", 1)
		job.TaskGroups[0].Tasks[0].Resources.MemoryMaxMB = structs.Ptr(1024)
		c.PutJob(job)
		evaluate(t, p, "a")
		if got := c.Allocs()[0].AllocatedResources.Tasks["main"].Memory.MemoryMaxMB; (got == 1024) != on {
			t.Errorf("oversubscription %v: memory_max %d", on, got)
		}
	}
}

// TestTemplatesRunNothing evaluates a periodic and a parameterized job.
func TestTemplatesRunNothing(t *testing.T) {
	c, p := harness(1)
	job := schedtest.Job("a", "batch", 1)
	job.Periodic = &structs.PeriodicConfig{Spec: structs.Ptr("@daily")}
	c.PutJob(job)
	job = schedtest.Job("b", "batch", 1)
	job.ParameterizedJob = &structs.ParameterizedJobConfig{}
	c.PutJob(job)
	for _, id := range []string{"a", "b"} {
		if eval := evaluate(t, p, id); eval.Status != structs.EvalStatusComplete || len(c.Allocs()) != 0 {
			t.Errorf("%s: %+v, %d allocations", id, eval, len(c.Allocs()))
		}
	}
}

// TestStickyDiskStays updates a job with a sticky disk: the new allocation goes where the old one's data is.
func TestStickyDiskStays(t *testing.T) {
	c, p := harness(10)
	job := schedtest.Job("a", "service", 1)
	job.TaskGroups[0].EphemeralDisk.Sticky = structs.Ptr(true)
	c.PutJob(job)
	evaluate(t, p, "a")
	job = job.Copy()
	job.TaskGroups[0].Tasks[0].Env = map[string]string{"v": "2"}
	c.PutJob(job)
	evaluate(t, p, "a")
	if all := c.Allocs(); len(all) != 2 || all[1].NodeID != all[0].NodeID || all[1].PreviousAllocation != all[0].ID {
		t.Fatalf("allocations %+v", all)
	}
}

// TestPoolConfiguration lets a node pool place by another algorithm than the cluster.
func TestPoolConfiguration(t *testing.T) {
	for pool, nodes := range map[string]int{"": 1, "spread": 4} {
		c, p := harness(4)
		c.Config = &structs.SchedulerConfiguration{SchedulerAlgorithm: "binpack"}
		c.Pools = map[string]*structs.NodePool{"default": {SchedulerConfiguration: &structs.NodePoolSchedulerConfiguration{SchedulerAlgorithm: pool}}}
		for _, id := range []string{"a", "b", "c", "d"} {
			c.PutJob(schedtest.Job(id, "service", 1))
			evaluate(t, p, id)
		}
		used := map[string]bool{}
		for _, a := range c.Allocs() {
			used[a.NodeID] = true
		}
		if len(used) != nodes {
			t.Errorf("algorithm of the pool %q: %d nodes, want %d", pool, len(used), nodes)
		}
	}
}

// TestEvalsForNothing answers evaluations of a job that never was.
func TestEvalsForNothing(t *testing.T) {
	_, p := harness(1)
	eval, err := p.Evaluate("none", "service", structs.EvalTriggerNodeUpdate, nil)
	if err != nil || eval.Status != structs.EvalStatusComplete || len(p.Plans) != 0 {
		t.Fatalf("%+v, %v", eval, err)
	}
}

type failingPlanner struct{ *schedtest.Planner }

func (failingPlanner) SubmitPlan(context.Context, *structs.Plan) (*structs.PlanResult, scheduler.State, error) {
	return nil, nil, structs.ErrNoLeader
}

// TestErrorsAreHandedUp leaves the evaluation as it was when the plan cannot be submitted.
func TestErrorsAreHandedUp(t *testing.T) {
	c, p := harness(1)
	c.PutJob(schedtest.Job("a", "service", 1))
	s, err := scheduler.New("service", scheduler.Config{State: c, Planner: failingPlanner{p}, NewID: func() string { return "id" }})
	if err != nil {
		t.Fatal(err)
	}
	eval := &structs.Evaluation{ID: "e", Namespace: "default", JobID: "a", Type: "service", Status: structs.EvalStatusPending}
	if err := s.Process(context.Background(), eval); !errors.Is(err, structs.ErrNoLeader) || eval.Status != structs.EvalStatusPending {
		t.Fatalf("%v, %+v", err, eval)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Process(ctx, eval); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
}
