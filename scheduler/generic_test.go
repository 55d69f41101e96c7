package scheduler_test

import (
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
		"system": structs.CodeNotImplemented, "sysbatch": structs.CodeNotImplemented, "nonsense": structs.CodeInvalid,
	} {
		if _, err := scheduler.New(kind, scheduler.Config{}); structs.ErrorCode(err) != code {
			t.Errorf("New(%q): %v", kind, err)
		}
	}
}
