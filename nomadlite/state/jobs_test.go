package state

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func (w *world) versions(id string) []uint64 {
	var out []uint64
	for _, v := range w.store.JobVersions(nil, "default", id) {
		out = append(out, v.Version)
	}
	return out
}

func TestRegisterMakesAVersionOnlyWhenTheSpecificationChanged(t *testing.T) {
	w := newWorld(t)
	first := w.register(testJob("web", "service", "g"), nil)
	again := w.register(testJob("web", "service", "g"), nil)
	if again.Version != 0 || again.JobModifyIndex != first.JobModifyIndex || again.CreateIndex != first.CreateIndex ||
		again.SubmitTime != first.SubmitTime || again.ModifyIndex == first.ModifyIndex {
		t.Errorf("the same specification became version %d, index %d", again.Version, again.JobModifyIndex)
	}
	if w.store.JobSpec("default", "web", first.JobModifyIndex) == nil {
		t.Error("the specification is gone")
	}
	changed := testJob("web", "service", "g")
	changed.Meta = map[string]string{"a": "b"}
	if row := w.register(changed, nil); row.Version != 1 || row.Stable {
		t.Errorf("a changed specification became version %d, stable %t", row.Version, row.Stable)
	}
	if got := w.versions("web"); !slices.Equal(got, []uint64{1, 0}) {
		t.Errorf("versions are %v", got)
	}
}

func TestVersionsArePruned(t *testing.T) {
	w := newWorld(t)
	for i := range structs.JobTrackedVersions + 5 {
		job := testJob("web", "service", "g")
		job.Priority = structs.Ptr(i + 1)
		w.must(func(tx *Txn) error {
			_, err := tx.RegisterJob(JobRegistration{Job: job, Submission: &structs.JobSubmission{Source: "x"}, Now: w.now()})
			return err
		})
		switch i {
		case 1:
			w.must(func(tx *Txn) error {
				return tx.TagJobVersion("default", "web", "golden", 1, &structs.JobVersionTag{Description: "d"})
			})
		case 2:
			w.must(func(tx *Txn) error { _, err := tx.SetJobStability("default", "web", 2, true); return err })
		}
	}
	// six untagged ones are kept, the stable one among them, and the tagged one beside
	if got, want := w.versions("web"), []uint64{10, 9, 8, 7, 6, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("versions are %v, want %v", got, want)
	}
	if w.store.JobSubmission(nil, "default", "web", 3) != nil || w.store.JobSubmission(nil, "default", "web", 2) == nil {
		t.Error("submissions do not go with their versions")
	}
	if tag := w.store.JobVersion(nil, "default", "web", 1).VersionTag; tag == nil || tag.Name != "golden" {
		t.Errorf("the tag is %+v", tag)
	}
}

func TestRegisterEnforcesTheIndex(t *testing.T) {
	w := newWorld(t)
	register := func(index uint64) error {
		return w.write(func(tx *Txn) error {
			_, err := tx.RegisterJob(JobRegistration{Job: testJob("web", "service", "g"), EnforceIndex: true, JobModifyIndex: index, Now: w.now()})
			return err
		})
	}
	if err := register(10); structs.ErrorCode(err) != structs.CodeConflict {
		t.Errorf("a job that is not there was updated: %v", err)
	}
	if err := register(0); err != nil {
		t.Fatal(err)
	}
	if err := register(0); structs.ErrorCode(err) != structs.CodeConflict {
		t.Errorf("a job that is there was created: %v", err)
	}
	if err := register(w.job("web").JobModifyIndex); err != nil {
		t.Error(err)
	}
}

func TestRegisterRefusesUnknownNamespaceAndPool(t *testing.T) {
	w := newWorld(t)
	for _, edit := range []func(*structs.Job){
		func(j *structs.Job) { j.Namespace = structs.Ptr("nope") },
		func(j *structs.Job) { j.NodePool = structs.Ptr("nope") },
	} {
		job := testJob("web", "service", "g")
		edit(job)
		err := w.write(func(tx *Txn) error {
			_, err := tx.RegisterJob(JobRegistration{Job: job, Eval: testEval("e", "web"), Now: w.now()})
			return err
		})
		if structs.ErrorCode(err) != structs.CodeValidation || w.store.Eval(nil, "e") != nil {
			t.Errorf("got %v; evaluation %v", err, w.store.Eval(nil, "e"))
		}
	}
	if w.store.Index() != w.index {
		t.Error("a refused entry does not count")
	}
}

func TestRegisterKeepsCountsAndResources(t *testing.T) {
	w := newWorld(t)
	first := testJob("web", "service", "g")
	first.TaskGroups[0].Count = structs.Ptr(7)
	first.TaskGroups[0].Tasks[0].Resources = &structs.Resources{CPU: structs.Ptr(900)}
	w.register(first, nil)
	next := testJob("web", "service", "g", "new")
	w.must(func(tx *Txn) error {
		_, err := tx.RegisterJob(JobRegistration{Job: next, PreserveCounts: true, PreserveResources: true, Now: w.now()})
		return err
	})
	groups := w.job("web").TaskGroups
	if *groups[0].Count != 7 || *groups[0].Tasks[0].Resources.CPU != 900 || *groups[1].Count != 1 {
		t.Errorf("groups are %+v %+v", groups[0], groups[1])
	}
	if *next.TaskGroups[0].Count != 1 {
		t.Error("the request was changed")
	}
}

// TestStopMarksExactlyTheLiveAllocations: a job stop with options sets them on those allocations whose end no node has
// reported, on no other job's, and a job that is run again has the delays it was written with.
func TestStopMarksExactlyTheLiveAllocations(t *testing.T) {
	w := newWorld(t)
	w.register(testJob("web", "service", "g"), nil)
	w.register(testJob("other", "service", "g"), nil)
	w.place("web", testAlloc("pending", "g", "n1", 1), testAlloc("running", "g", "n1", 2), testAlloc("done", "g", "n1", 3),
		testAlloc("unknown", "g", "n1", 4), testAlloc("stopping", "g", "n1", 5))
	w.place("other", testAlloc("foreign", "g", "n1", 6))
	for _, id := range []string{"running", "done", "stopping"} {
		w.observe(id, "running")
	}
	w.observe("done", "complete")
	w.must(func(tx *Txn) error {
		tx.setCondition(tx.alloc("unknown"), structs.Condition{Status: structs.ConditionUnknown}, w.now())
		return tx.ApplyPlan(&structs.Plan{Stops: map[string][]*structs.AllocStop{"n1": {{ID: "stopping", DesiredStatus: "stop"}}}}, w.now())
	})
	w.must(func(tx *Txn) error {
		tx.StopJob(JobStop{Namespace: "default", JobID: "web", NoShutdownDelay: true, KillTimeout: structs.Ptr(time.Second),
			Eval: testEval("stop", "web"), Now: w.now()})
		return nil
	})
	job := w.job("web")
	if !job.Stop || job.Version != 1 || w.store.Eval(nil, "stop").JobModifyIndex != job.JobModifyIndex {
		t.Errorf("job %+v, evaluation %+v", job, w.store.Eval(nil, "stop"))
	}
	for id, want := range map[string]bool{"pending": true, "running": true, "unknown": true, "stopping": true, "done": false, "foreign": false} {
		alloc := w.alloc(id)
		got := structs.Val(alloc.DesiredTransition.NoShutdownDelay) && structs.Val(alloc.DesiredTransition.KillTimeout) == time.Second
		if got != want {
			t.Errorf("%s has transition %+v", id, alloc.DesiredTransition)
		}
		if want && alloc.AllocModifyIndex != w.index {
			t.Errorf("the node of %s would not hear of it", id)
		}
	}
	w.register(testJob("web", "service", "g"), nil)
	for id, kept := range map[string]bool{"pending": false, "running": false, "unknown": false, "stopping": true} {
		if got := w.alloc(id).DesiredTransition.NoShutdownDelay != nil; got != kept {
			t.Errorf("after the job was started again %s has its option: %t", id, got)
		}
	}
}

func TestStopOfAMissingJobStoresItsEvaluation(t *testing.T) {
	w := newWorld(t)
	w.must(func(tx *Txn) error {
		if job := tx.StopJob(JobStop{Namespace: "default", JobID: "nope", Eval: testEval("e", "nope"), Now: w.now()}); job != nil {
			t.Errorf("got job %+v", job)
		}
		return nil
	})
	if w.store.Eval(nil, "e") == nil {
		t.Error("there is no evaluation")
	}
}

// TestPurgeAndRunAgain: allocations of a purged job keep the specification they run, and a new job of that id does not
// count them.
func TestPurgeAndRunAgain(t *testing.T) {
	w := newWorld(t)
	old := w.register(testJob("web", "service", "g"), nil)
	w.place("web", testAlloc("a1", "g", "n1", 1))
	w.must(func(tx *Txn) error {
		tx.StopJob(JobStop{Namespace: "default", JobID: "web", Purge: true, Now: w.now()})
		return nil
	})
	if w.job("web") != nil || w.store.JobSummary(nil, "default", "web") != nil || len(w.versions("web")) != 0 {
		t.Error("something of the job was left")
	}
	if w.alloc("a1").Job == nil || w.store.JobSpec("default", "web", old.JobModifyIndex) == nil {
		t.Error("the allocation lost its specification")
	}
	w.register(testJob("web", "service", "g"), nil)
	w.observe("a1", "running")
	if got := w.store.JobSummary(nil, "default", "web").Summary["g"]; got != (structs.TaskGroupSummary{}) {
		t.Errorf("the new job counts the old one's allocation: %+v", got)
	}
	w.observe("a1", "complete")
	w.must(func(tx *Txn) error { tx.ReapAlloc("a1"); return nil })
	if w.store.JobSpec("default", "web", old.JobModifyIndex) != nil {
		t.Error("the old specification is kept though nothing refers to it")
	}
}

func TestJobStatusFollowsItsWork(t *testing.T) {
	type step struct {
		do   string
		want string
	}
	for _, tc := range []struct {
		name, kind string
		steps      []step
	}{
		{"service", "service", []step{{"eval pending", "pending"}, {"place", "running"}, {"eval complete", "running"}, {"stop", "running"},
			{"plan stop", "dead"}, {"register", "pending"}}},
		{"service that failed and will be rescheduled", "service", []step{{"place", "running"}, {"fail and follow up", "pending"}}},
		{"service scaled to nothing", "service", []step{{"eval pending", "pending"}, {"eval complete", "dead"}, {"reap", "dead"}}},
		{"service that waits for room", "service", []step{{"eval blocked", "pending"}}},
		{"batch", "batch", []step{{"register", "pending"}, {"place", "running"}, {"eval complete", "running"}, {"complete", "dead"}, {"reap", "dead"}}},
		{"system", "system", []step{{"register", "running"}, {"eval complete", "running"}, {"stop", "dead"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.register(testJob("x", tc.kind, "g"), nil)
			for _, s := range tc.steps {
				w.must(func(tx *Txn) error {
					eval := testEval("e", "x")
					switch s.do {
					case "eval pending":
						tx.UpsertEval(eval, w.now())
					case "eval complete":
						eval.Status = "complete"
						tx.UpsertEval(eval, w.now())
					case "eval blocked":
						eval.Status = "blocked"
						tx.UpsertEval(eval, w.now())
					case "place":
						plan := w.plan("x")
						plan.Places["n1"] = []*structs.Allocation{testAlloc("a1", "g", "n1", 1)}
						return tx.ApplyPlan(plan, w.now())
					case "fail and follow up":
						tx.ObserveAlloc(&structs.AllocObservation{AllocID: "a1", ObservedStatus: "failed"}, w.now())
						tx.UpsertEval(testEval("e2", "x"), w.now())
					case "complete":
						tx.ObserveAlloc(&structs.AllocObservation{AllocID: "a1", ObservedStatus: "complete"}, w.now())
					case "stop":
						tx.StopJob(JobStop{Namespace: "default", JobID: "x", Now: w.now()})
					case "plan stop":
						return tx.ApplyPlan(&structs.Plan{Stops: map[string][]*structs.AllocStop{"n1": {{ID: "a1", DesiredStatus: "stop"}}}}, w.now())
					case "register":
						_, err := tx.RegisterJob(JobRegistration{Job: testJob("x", tc.kind, "g"), Eval: eval, Now: w.now()})
						return err
					case "reap":
						tx.ReapAlloc("a1")
						tx.ReapEval("e")
					}
					return nil
				})
				if got := w.job("x").Status; got != s.want {
					t.Errorf("after %s the job is %s, want %s", s.do, got, s.want)
				}
				if got := w.store.JobVersions(nil, "default", "x")[0].Status; got != s.want {
					t.Errorf("after %s the version is %s, want %s", s.do, got, s.want)
				}
			}
		})
	}
}

func TestReapJobLeavesWhatIsAlive(t *testing.T) {
	w := newWorld(t)
	w.register(testJob("idle", "service", "g"), nil)
	w.register(testJob("batch", "batch", "g"), nil)
	for _, id := range []string{"idle", "batch"} {
		w.must(func(tx *Txn) error {
			eval := testEval("e-"+id, id)
			eval.Status = "complete"
			tx.UpsertEval(eval, w.now())
			return nil
		})
	}
	w.must(func(tx *Txn) error {
		if tx.ReapJob("default", "idle") || !tx.ReapJob("default", "batch") || tx.ReapJob("default", "batch") {
			t.Error("the wrong jobs were reaped")
		}
		return nil
	})
}

func TestChildrenAreCountedInTheParentsSummary(t *testing.T) {
	w := newWorld(t)
	parent := testJob("cron", "batch", "g")
	parent.Periodic = &structs.PeriodicConfig{Enabled: structs.Ptr(true)}
	if row := w.register(parent, nil); row.Status != structs.JobStatusRunning {
		t.Errorf("the parent is %s", row.Status)
	}
	child := testJob("cron/periodic-1", "batch", "g")
	child.ParentID = "cron"
	w.register(child, testEval("e", "cron/periodic-1"))
	children := func() structs.JobChildrenSummary { return *w.store.JobSummary(nil, "default", "cron").Children }
	if got := children(); got != (structs.JobChildrenSummary{Pending: 1}) {
		t.Errorf("children are %+v", got)
	}
	w.place("cron/periodic-1", testAlloc("a1", "g", "n1", 1))
	if got := children(); got != (structs.JobChildrenSummary{Running: 1}) {
		t.Errorf("children are %+v", got)
	}
	w.must(func(tx *Txn) error {
		tx.StopJob(JobStop{Namespace: "default", JobID: "cron/periodic-1", Purge: true, Now: w.now()})
		return nil
	})
	if got := children(); got != (structs.JobChildrenSummary{}) {
		t.Errorf("children are %+v", got)
	}
}

func TestTagsAreUnique(t *testing.T) {
	w := newWorld(t)
	w.register(testJob("web", "service", "g"), nil)
	w.register(testJob("web", "service", "g", "h"), nil)
	tag := func(name string, version uint64, tag *structs.JobVersionTag) error {
		return w.write(func(tx *Txn) error { return tx.TagJobVersion("default", "web", name, version, tag) })
	}
	if err := errors.Join(tag("a", 1, &structs.JobVersionTag{}), tag("a", 1, &structs.JobVersionTag{Description: "new"})); err != nil {
		t.Error(err)
	}
	if w.job("web").VersionTag.Description != "new" {
		t.Error("the current job does not show its tag")
	}
	if err := tag("a", 0, &structs.JobVersionTag{}); structs.ErrorCode(err) != structs.CodeValidation {
		t.Errorf("two versions have one tag: %v", err)
	}
	if err := tag("b", 9, &structs.JobVersionTag{}); structs.ErrorCode(err) != structs.CodeNotFound {
		t.Error(err)
	}
	if err := tag("a", 0, nil); err != nil || w.job("web").VersionTag != nil {
		t.Errorf("the tag was not removed: %v", err)
	}
	if err := tag("a", 0, nil); structs.ErrorCode(err) != structs.CodeNotFound {
		t.Error(err)
	}
}
