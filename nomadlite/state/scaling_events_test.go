package state

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func (w *world) scale(s JobScale) error {
	s.Namespace, s.JobID, s.Now = "default", "web", w.now()
	return w.write(func(tx *Txn) error { _, err := tx.ScaleJob(s); return err })
}

func TestScalingIsANewVersionWithAnEventAndAnEvaluation(t *testing.T) {
	w := oneAlloc(t)
	before := w.job("web")
	err := w.scale(JobScale{Group: "g", Count: structs.Ptr[int64](4), JobModifyIndex: before.JobModifyIndex, Eval: testEval("e9", "web"),
		Event: structs.ScalingEvent{Message: "load"}})
	if err != nil {
		t.Fatal(err)
	}
	after := w.job("web")
	if *after.TaskGroups[0].Count != 4 || after.Version != before.Version+1 || *before.TaskGroups[0].Count == 4 {
		t.Errorf("count %d, version %d", *after.TaskGroups[0].Count, after.Version)
	}
	if e := w.store.Eval(nil, "e9"); e == nil || e.CreateIndex != after.JobModifyIndex {
		t.Errorf("evaluation %+v", e)
	}
	events, index := w.store.ScalingEvents(nil, "default", "web")
	if index != after.JobModifyIndex || len(events["g"]) != 1 {
		t.Fatalf("events %+v at %d", events, index)
	}
	e := events["g"][0]
	if *e.Count != 4 || e.PreviousCount != 1 || *e.EvalID != "e9" || e.Message != "load" || e.Time == 0 || e.CreateIndex != index {
		t.Errorf("event %+v", e)
	}
}

func TestAWordAboutScalingChangesNothing(t *testing.T) {
	w := oneAlloc(t)
	before := w.job("web")
	for i := range keptScalingEvents + 5 {
		if err := w.scale(JobScale{Group: "g", Event: structs.ScalingEvent{Message: fmt.Sprint(i), Error: true}}); err != nil {
			t.Fatal(err)
		}
	}
	if w.job("web") != before {
		t.Error("the job was changed")
	}
	events, _ := w.store.ScalingEvents(nil, "default", "web")
	if g := events["g"]; len(g) != keptScalingEvents || g[0].Message != fmt.Sprint(keptScalingEvents+4) || g[0].Count != nil || g[0].EvalID != nil {
		t.Errorf("%d events, the newest %+v", len(g), g[0])
	}
	w.must(func(tx *Txn) error {
		tx.StopJob(JobStop{Namespace: "default", JobID: "web", Purge: true, Now: w.now()})
		return nil
	})
	if events, _ := w.store.ScalingEvents(nil, "default", "web"); events != nil {
		t.Error("a purged job has scaling events")
	}
}

func TestScalingOfWhatIsNotThereOrHasChanged(t *testing.T) {
	w := oneAlloc(t)
	index := w.job("web").JobModifyIndex
	for _, c := range []struct {
		s    JobScale
		code structs.Code
	}{
		{JobScale{Group: "other"}, structs.CodeInvalid},
		{JobScale{Group: "g", Count: structs.Ptr[int64](2), JobModifyIndex: index + 1}, structs.CodeConflict},
	} {
		var coded *structs.CodedError
		if err := w.scale(c.s); !errors.As(err, &coded) || coded.Code != c.code {
			t.Errorf("%+v: %v", c.s, err)
		}
	}
	if events, _ := w.store.ScalingEvents(nil, "default", "web"); events != nil || *w.job("web").TaskGroups[0].Count != 1 {
		t.Error("something was changed")
	}
}

// A second call with options shortens what the first one stopped, in that group alone.
func TestScalingAgainShortensStopsUnderWay(t *testing.T) {
	w := newWorld(t)
	w.must(func(tx *Txn) error { return tx.RegisterNode(testNode("n1"), w.now()) })
	w.register(testJob("web", "service", "g", "h"), nil)
	for id, group := range map[string]string{"stops": "g", "stays": "g", "ended": "g", "other": "h"} {
		a := testAlloc(id, group, "n1", 20000)
		a.AllocatedResources = nil
		w.place("web", a)
	}
	plan := w.plan("web")
	for _, id := range []string{"stops", "ended", "other"} {
		plan.Stops = map[string][]*structs.AllocStop{"n1": append(plan.Stops["n1"], &structs.AllocStop{ID: id, DesiredStatus: "stop"})}
	}
	w.must(func(tx *Txn) error { return tx.ApplyPlan(plan, w.now()) })
	w.observe("ended", "complete")
	eval := testEval("e9", "web")
	eval.NoShutdownDelay = true
	err := w.scale(JobScale{Group: "g", Count: structs.Ptr[int64](1), JobModifyIndex: w.job("web").JobModifyIndex, Eval: eval})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"stops", "stays", "ended", "other"} {
		if got := structs.Val(w.alloc(id).DesiredTransition.NoShutdownDelay); got != (id == "stops") {
			t.Errorf("%s: no shutdown delay is %v", id, got)
		}
	}
}
