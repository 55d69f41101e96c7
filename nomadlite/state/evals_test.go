package state

import (
	"slices"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func TestCompletedEvaluationCancelsWhatWasBlocked(t *testing.T) {
	w := newWorld(t)
	w.register(testJob("web", "service", "g"), nil)
	upsert := func(evals ...*structs.Evaluation) {
		w.must(func(tx *Txn) error {
			for _, eval := range evals {
				tx.UpsertEval(eval, w.now())
			}
			return nil
		})
	}
	blocked, foreign, done := testEval("b", "web"), testEval("f", "db"), testEval("done", "web")
	blocked.Status, foreign.Status = structs.EvalStatusBlocked, structs.EvalStatusBlocked
	upsert(blocked, foreign)
	done.Status, done.FailedTGAllocs = structs.EvalStatusComplete, map[string]*structs.AllocationMetric{"g": {}}
	upsert(done)
	if got := w.store.Eval(nil, "b").Status; got != structs.EvalStatusBlocked {
		t.Errorf("an evaluation that placed not all made the blocked one %s", got)
	}
	done.FailedTGAllocs = nil
	upsert(done)
	if got := w.store.Eval(nil, "b"); got.Status != structs.EvalStatusCancelled || got.ModifyIndex != w.index {
		t.Errorf("the blocked one is %s", got.Status)
	}
	if got := w.store.Eval(nil, "f").Status; got != structs.EvalStatusBlocked {
		t.Errorf("another job's evaluation is %s", got)
	}
}

func TestEvaluationsInOrderOfCreation(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"c", "a", "b"} {
		w.must(func(tx *Txn) error { tx.UpsertEval(testEval(id, "web"), w.now()); return nil })
	}
	w.must(func(tx *Txn) error { tx.UpsertEval(testEval("c", "web"), w.now()); return nil })
	ids := func(newest bool) (out []string) {
		for eval := range w.store.EvalsByCreate(nil, "default", newest) {
			out = append(out, eval.ID)
		}
		return out
	}
	if got := ids(false); !slices.Equal(got, []string{"c", "a", "b"}) {
		t.Errorf("got %v", got)
	}
	if got := ids(true); !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Errorf("newest first: %v", got)
	}
	if n := len(slices.Collect(w.store.Evals(nil, "apps"))); n != 0 {
		t.Errorf("%d evaluations in another namespace", n)
	}
}

func TestRelatedEvaluations(t *testing.T) {
	w := newWorld(t)
	first, second, third := testEval("1", "web"), testEval("2", "web"), testEval("3", "web")
	first.NextEval, second.PreviousEval, second.BlockedEval, third.PreviousEval = "2", "1", "3", "2"
	w.must(func(tx *Txn) error {
		for _, eval := range []*structs.Evaluation{first, second, third} {
			tx.UpsertEval(eval, w.now())
		}
		return nil
	})
	var got []string
	for _, eval := range w.store.RelatedEvals(nil, "1") {
		got = append(got, eval.ID)
	}
	if !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("got %v", got)
	}
}

func TestQueuedComesFromTheNewestEvaluation(t *testing.T) {
	w := newWorld(t)
	w.register(testJob("web", "service", "g"), nil)
	for _, n := range []int{3, 0, 2} {
		w.must(func(tx *Txn) error {
			eval := testEval("e", "web")
			eval.QueuedAllocations = map[string]int{"g": n, "no such group": 9}
			tx.UpsertEval(eval, w.now())
			return nil
		})
		s := w.store.JobSummary(nil, "default", "web")
		if s.Summary["g"].Queued != n || len(s.Summary) != 1 {
			t.Errorf("summary is %+v, want %d queued", s.Summary, n)
		}
	}
	w.must(func(tx *Txn) error { tx.ReconcileSummaries(); return nil })
	if got := w.store.JobSummary(nil, "default", "web").Summary["g"].Queued; got != 2 {
		t.Errorf("%d queued after the summaries were reconciled", got)
	}
}

func TestReapLeavesWhatIsOpen(t *testing.T) {
	w := oneAlloc(t)
	w.must(func(tx *Txn) error { tx.UpsertEval(testEval("e", "web"), w.now()); return nil })
	w.must(func(tx *Txn) error {
		if tx.ReapEval("e") || tx.ReapAlloc("a1") || tx.ReapEval("none") || tx.ReapAlloc("none") || tx.ReapDeployment("none") {
			t.Error("something open was reaped")
		}
		return nil
	})
}
