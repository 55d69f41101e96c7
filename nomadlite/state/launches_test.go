package state

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func cronJob(id string, prohibitOverlap bool) *structs.Job {
	job := testJob(id, "batch", "g")
	job.Periodic = &structs.PeriodicConfig{Enabled: structs.Ptr(true), Spec: structs.Ptr("* * * * *"),
		SpecType: structs.Ptr("cron"), ProhibitOverlap: &prohibitOverlap, TimeZone: structs.Ptr("UTC")}
	return job
}

func templateJob(id string) *structs.Job {
	job := testJob(id, "batch", "g")
	job.Meta = map[string]string{"who": "nobody", "kept": "yes"}
	job.ParameterizedJob = &structs.ParameterizedJobConfig{Payload: "optional", MetaOptional: []string{"who"}}
	return job
}

func (w *world) launch(id string, at int64, force bool) (child *structs.Job, err error) {
	w.t.Helper()
	err = w.write(func(tx *Txn) (err error) {
		child, err = tx.LaunchPeriodic(PeriodicLaunch{Namespace: "default", JobID: id, Time: at * 1e9, Force: force,
			EvalID: fmt.Sprint("launch", w.index), Now: w.now()})
		return err
	})
	return child, err
}

func (w *world) dispatch(id, child string, d structs.Dispatch) (job *structs.Job, isNew bool, err error) {
	w.t.Helper()
	err = w.write(func(tx *Txn) (err error) {
		job, isNew, err = tx.DispatchJob(JobDispatch{Namespace: "default", JobID: id, ChildID: child, Dispatch: d,
			EvalID: fmt.Sprint("dispatch", w.index), Now: w.now()})
		return err
	})
	return job, isNew, err
}

func (w *world) children(id string) (ids []string) {
	for child := range w.store.Children(nil, "default", id) {
		ids = append(ids, structs.Val(child.ID))
	}
	return ids
}

func TestATimeIsLaunchedOnce(t *testing.T) {
	w := newWorld(t)
	w.register(cronJob("cron", false), nil)
	child, err := w.launch("cron", 60, false)
	if err != nil || structs.Val(child.ID) != "cron/periodic-60" || child.ParentID != "cron" || child.Periodic != nil {
		t.Fatalf("launched %+v, %v", child, err)
	}
	evals := w.store.EvalsByJob(nil, "default", "cron/periodic-60")
	if len(evals) != 1 || evals[0].TriggeredBy != structs.EvalTriggerPeriodicJob || evals[0].JobModifyIndex != child.JobModifyIndex {
		t.Fatalf("evaluations %+v", evals)
	}
	for _, at := range []int64{60, 30} {
		if _, err := w.launch("cron", at, false); structs.ErrorCode(err) != structs.CodeConflict {
			t.Errorf("a launch for %d after the one for 60: %v", at, err)
		}
	}
	if got := w.store.Launch(nil, "default", "cron").Time; got != 60e9 {
		t.Errorf("the schedule has come to %d", got)
	}
	if w.job("cron/periodic-60").Status != structs.JobStatusPending || w.job("cron").Status != structs.JobStatusRunning {
		t.Error("child or parent have the wrong status")
	}
	if _, err := w.launch("nope", 60, false); structs.ErrorCode(err) != structs.CodeNotFound {
		t.Errorf("a job that is not there: %v", err)
	}
	w.register(testJob("plain", "batch", "g"), nil)
	if _, err := w.launch("plain", 60, true); structs.ErrorCode(err) != structs.CodeInvalid {
		t.Errorf("a job without a schedule: %v", err)
	}
}

// TestALaunchLeavesOthersJobsAlone: somebody may have given a job the id that a child would have.
func TestALaunchLeavesOthersJobsAlone(t *testing.T) {
	w := newWorld(t)
	w.register(cronJob("cron", false), nil)
	w.register(testJob("cron/periodic-60", "service", "g"), nil)
	if _, err := w.launch("cron", 60, false); structs.ErrorCode(err) != structs.CodeConflict {
		t.Errorf("launched over a job of somebody else: %v", err)
	}
	if got := structs.Val(w.job("cron/periodic-60").Type); got != "service" {
		t.Errorf("the job became one of type %s", got)
	}
	if child, err := w.launch("cron", 61, false); err != nil || child == nil {
		t.Errorf("the next launch: %+v, %v", child, err)
	}
}

// TestDeadChildrenAreCollected: children go as other jobs do, and their parent counts them no more.
func TestDeadChildrenAreCollected(t *testing.T) {
	w := newWorld(t)
	w.register(templateJob("form"), nil)
	child, _, err := w.dispatch("form", "form/dispatch-1-a", structs.Dispatch{IdempotencyToken: "once"})
	if err != nil {
		t.Fatal(err)
	}
	id := structs.Val(child.ID)
	w.must(func(tx *Txn) error {
		eval := *w.store.EvalsByJob(nil, "default", id)[0]
		eval.Status = structs.EvalStatusComplete
		tx.UpsertEval(&eval, w.now())
		return nil
	})
	if got := *w.store.JobSummary(nil, "default", "form").Children; got != (structs.JobChildrenSummary{Dead: 1}) {
		t.Errorf("children %+v", got)
	}
	w.must(func(tx *Txn) error {
		for _, eval := range w.store.EvalsByJob(nil, "default", id) {
			tx.ReapEval(eval.ID)
		}
		if !tx.ReapJob("default", id) || tx.ReapJob("default", "form") {
			t.Error("the child stays, or the parent goes")
		}
		return nil
	})
	if got := *w.store.JobSummary(nil, "default", "form").Children; got != (structs.JobChildrenSummary{}) {
		t.Errorf("children %+v", got)
	}
	if _, isNew, err := w.dispatch("form", "form/dispatch-2-b", structs.Dispatch{IdempotencyToken: "once"}); err != nil || !isNew {
		t.Errorf("the token of a child that is gone: new %v, %v", isNew, err)
	}
}

func TestForcedLaunchesKeepOutOfTheSchedule(t *testing.T) {
	w := newWorld(t)
	w.register(cronJob("cron", true), nil)
	begun := w.store.Launch(nil, "default", "cron").Time
	for range 3 { // in one second, although they overlap
		if child, err := w.launch("cron", 60, true); err != nil || child == nil {
			t.Fatalf("%+v, %v", child, err)
		}
	}
	if got := w.children("cron"); !slices.Equal(got, []string{"cron/periodic-58", "cron/periodic-59", "cron/periodic-60"}) {
		t.Errorf("children %q", got)
	}
	if got := w.store.Launch(nil, "default", "cron").Time; got != begun {
		t.Errorf("a forced launch moved the schedule to %d", got)
	}
	// The schedule finds its own time launched, and makes no second child.
	child, err := w.launch("cron", 60, false)
	if err != nil || child == nil || len(w.children("cron")) != 3 {
		t.Errorf("%+v, %v, children %q", child, err, w.children("cron"))
	}
}

func TestProhibitOverlapLeavesLaunchesOut(t *testing.T) {
	w := newWorld(t)
	w.register(cronJob("cron", true), nil)
	steps := []struct {
		at      int64
		child   bool
		skipped uint64
	}{{60, true, 0}, {120, false, 1}, {180, false, 2}}
	for _, step := range steps {
		child, err := w.launch("cron", step.at, false)
		if err != nil || (child != nil) != step.child {
			t.Fatalf("launch for %d: %+v, %v", step.at, child, err)
		}
		if row := w.store.Launch(nil, "default", "cron"); row.Skipped != step.skipped || row.Time != step.at*1e9 {
			t.Errorf("after %d: %+v", step.at, row)
		}
	}
	w.must(func(tx *Txn) error {
		tx.StopJob(JobStop{Namespace: "default", JobID: "cron/periodic-60", Now: w.now()})
		eval := *w.store.EvalsByJob(nil, "default", "cron/periodic-60")[0]
		eval.Status = structs.EvalStatusComplete
		tx.UpsertEval(&eval, w.now())
		return nil
	})
	if child, err := w.launch("cron", 240, false); err != nil || child == nil {
		t.Errorf("after the child's end: %+v, %v", child, err)
	}
	if row := w.store.Launch(nil, "default", "cron"); row.Skipped != 0 {
		t.Errorf("%+v", row)
	}
}

func TestAScheduleBeginsWithItsRegistration(t *testing.T) {
	w := newWorld(t)
	at := func() time.Duration {
		if row := w.store.Launch(nil, "default", "cron"); row != nil {
			return time.Duration(row.Time)
		}
		return -1
	}
	off := cronJob("cron", false)
	off.Periodic.Enabled = structs.Ptr(false)
	other := cronJob("cron", false)
	other.Periodic.Spec = structs.Ptr("5 * * * *")
	meta := cronJob("cron", false)
	meta.Meta = map[string]string{"a": "b"}
	for _, step := range []struct {
		name string
		job  *structs.Job
		want string // new, same, none
	}{
		{"registered", cronJob("cron", false), "new"},
		{"again", cronJob("cron", false), "same"},
		{"something else changed", meta, "same"},
		{"another schedule", other, "new"},
		{"disabled", off, "none"},
		{"enabled", other, "new"},
	} {
		before := at()
		w.register(step.job, nil)
		want := map[string]time.Duration{"new": time.Duration(w.now()), "same": before, "none": -1}[step.want]
		if got := at(); got != want {
			t.Errorf("%s: the schedule is at %s, want %s", step.name, got, want)
		}
	}
	w.must(func(tx *Txn) error {
		tx.StopJob(JobStop{Namespace: "default", JobID: "cron", Now: w.now()})
		return nil
	})
	if at() != -1 || w.job("cron").Status != structs.JobStatusDead {
		t.Errorf("a stopped job has a schedule (%s), status %s", at(), w.job("cron").Status)
	}
}

func TestDispatch(t *testing.T) {
	w := newWorld(t)
	parent := w.register(templateJob("form"), nil)
	if parent.Status != structs.JobStatusRunning {
		t.Errorf("the template is %s", parent.Status)
	}
	d := structs.Dispatch{Payload: []byte("in"), Meta: map[string]string{"who": "me"}, Priority: 70, IdempotencyToken: "once"}
	child, isNew, err := w.dispatch("form", "form/dispatch-1-a", d)
	if err != nil || !isNew || !child.Dispatched || child.Meta["who"] != "me" || child.Meta["kept"] != "yes" ||
		string(child.Payload) != "in" || structs.Val(child.Priority) != 70 || child.IsParameterized() {
		t.Fatalf("%+v, %v", child, err)
	}
	if w.job("form").Meta["who"] != "nobody" {
		t.Error("the dispatch changed its template")
	}
	again, isNew, err := w.dispatch("form", "form/dispatch-2-b", d)
	if err != nil || isNew || structs.Val(again.ID) != "form/dispatch-1-a" {
		t.Errorf("the same token: %+v, new %v, %v", again, isNew, err)
	}
	if _, _, err := w.dispatch("form", "form/dispatch-1-a", structs.Dispatch{}); structs.ErrorCode(err) != structs.CodeConflict {
		t.Errorf("the same id: %v", err)
	}
	if _, _, err := w.dispatch("form", "x", structs.Dispatch{Meta: map[string]string{"other": "1"}}); structs.ErrorCode(err) != structs.CodeInvalid {
		t.Errorf("an unknown key: %v", err)
	}
	if _, _, err := w.dispatch("nope", "x", structs.Dispatch{}); structs.ErrorCode(err) != structs.CodeNotFound {
		t.Errorf("no template: %v", err)
	}
	got := w.restored() // the index of tokens is made anew
	if same := get[*structs.Job](got.Snapshot().at(), nil, TableJobs, indexToken, joinKey("default", "form", "once")); same == nil {
		t.Error("the token is forgotten after a restore")
	}
}

func TestAJobStaysOfItsKind(t *testing.T) {
	w := newWorld(t)
	kinds := []func() *structs.Job{
		func() *structs.Job { return testJob("x", "batch", "g") }, func() *structs.Job { return cronJob("x", false) },
		func() *structs.Job { return templateJob("x") }, func() *structs.Job { return testJob("x", "system", "g") },
		func() *structs.Job { return testJob("x", "service", "g") },
	}
	for i, from := range kinds {
		w.register(from(), nil)
		for k, to := range kinds {
			err := w.write(func(tx *Txn) error {
				_, err := tx.RegisterJob(JobRegistration{Job: to(), SameKind: true, Now: w.now()})
				return err
			})
			if (i == k) != (err == nil) || i != k && structs.ErrorCode(err) != structs.CodeValidation {
				t.Errorf("from kind %d to %d: %v", i, k, err)
			}
		}
		w.must(func(tx *Txn) error {
			tx.StopJob(JobStop{Namespace: "default", JobID: "x", Purge: true, Now: w.now()})
			return nil
		})
	}
}

// TestAJobOfBothKinds is a template whose instances are launched by the clock, with what they were dispatched with.
func TestAJobOfBothKinds(t *testing.T) {
	w := newWorld(t)
	both := templateJob("form")
	both.Periodic = cronJob("x", false).Periodic
	w.register(both, nil)
	if _, err := w.launch("form", 60, true); structs.ErrorCode(err) != structs.CodeInvalid || w.store.Launch(nil, "default", "form") != nil {
		t.Errorf("the template has a schedule itself: %v", err)
	}
	instance, _, err := w.dispatch("form", "form/dispatch-1-a", structs.Dispatch{Payload: []byte("in"), Meta: map[string]string{"who": "me"},
		IdempotencyToken: "once"})
	if err != nil || !instance.IsPeriodicActive() || instance.IsParameterized() || len(w.store.EvalsByJob(nil, "default", "form/dispatch-1-a")) != 0 {
		t.Fatalf("the instance is %+v, %v", instance, err)
	}
	if w.store.Launch(nil, "default", "form/dispatch-1-a") == nil || w.job("form/dispatch-1-a").Status != structs.JobStatusRunning {
		t.Error("the instance has no schedule, or does not run")
	}
	child, err := w.launch("form/dispatch-1-a", 60, false)
	if err != nil || structs.Val(child.ID) != "form/dispatch-1-a/periodic-60" || string(child.Payload) != "in" || child.Meta["who"] != "me" ||
		child.DispatchIdempotencyToken != "" || len(w.store.EvalsByJob(nil, "default", structs.Val(child.ID))) != 1 {
		t.Errorf("launched %+v, %v", child, err)
	}
	if got := w.children("form"); !slices.Equal(got, []string{"form/dispatch-1-a"}) {
		t.Errorf("children of the template: %q", got)
	}
}

// TestChildrenOfAPurgedParentCountAgain: a parent that comes back finds the children which it had.
func TestChildrenOfAPurgedParentCountAgain(t *testing.T) {
	w := newWorld(t)
	w.register(cronJob("cron", true), nil)
	if _, err := w.launch("cron", 60, false); err != nil {
		t.Fatal(err)
	}
	w.must(func(tx *Txn) error {
		tx.StopJob(JobStop{Namespace: "default", JobID: "cron", Purge: true, Now: w.now()})
		return nil
	})
	w.register(cronJob("cron", true), nil)
	children := func() structs.JobChildrenSummary { return *w.store.JobSummary(nil, "default", "cron").Children }
	if got := children(); got != (structs.JobChildrenSummary{Pending: 1}) {
		t.Errorf("children are %+v", got)
	}
	w.must(func(tx *Txn) error {
		tx.StopJob(JobStop{Namespace: "default", JobID: "cron/periodic-60", Purge: true, Now: w.now()})
		return nil
	})
	if got := children(); got != (structs.JobChildrenSummary{}) {
		t.Errorf("children are %+v", got)
	}
}
