package endpoint

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/plan"
	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/scheduler/schedtest"
	"github.com/nomadlite/nomadlite/structs"
)

// decider decides evaluations over the server's store as a worker does: plans are verified and applied.
type decider struct {
	*server
	result *structs.Evaluation
}

func (w *decider) SubmitPlan(_ context.Context, p *structs.Plan) (*structs.PlanResult, scheduler.State, error) {
	v := plan.Verify(w.backend.Store.Snapshot().Scheduler(), &plan.Overlay{}, p)
	if !v.Full() {
		w.t.Errorf("the plan does not fit: %v %s", v.Rejected, v.Stale)
	}
	w.server.apply(fsm.KindPlanApply, &fsm.PlanApply{Plans: []*structs.Plan{v.Plan}, Now: time.Now().UnixNano()})
	return &structs.PlanResult{Stops: v.Plan.Stops, Places: v.Plan.Places, Deployment: v.Plan.Deployment}, nil, nil
}

func (w *decider) UpdateEval(_ context.Context, e *structs.Evaluation) error {
	w.result = e
	return w.CreateEval(context.Background(), e)
}

func (w *decider) CreateEval(_ context.Context, e *structs.Evaluation) error {
	w.server.apply(fsm.KindEvalUpdate, &fsm.EvalUpdate{Evals: []*structs.Evaluation{e}, Now: time.Now().UnixNano()})
	return nil
}

func (w *decider) ReblockEval(ctx context.Context, e *structs.Evaluation) error {
	return w.CreateEval(ctx, e)
}

// decide lets the scheduler decide a stored evaluation and gives how it ended.
func (s *server) decide(id string) *structs.Evaluation {
	s.t.Helper()
	eval := s.backend.Store.Eval(nil, id).Copy()
	eval.AnnotatePlan = true
	w := &decider{server: s}
	sched, err := scheduler.New(eval.Type, scheduler.Config{
		State: s.backend.Store.Snapshot().Scheduler(), Planner: w, Now: time.Now(), NewID: uuid.New,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := sched.Process(s.t.Context(), eval); err != nil {
		s.t.Fatal(err)
	}
	return w.result
}

func (s *server) run(j *structs.Job) *structs.Evaluation {
	s.t.Helper()
	return s.decide(s.register(j.Copy()).EvalID)
}

func (s *server) plan(j *structs.Job) *structs.JobPlanResponse {
	s.t.Helper()
	out := &structs.JobPlanResponse{}
	s.call("PUT", "/v1/job/"+structs.Val(j.ID)+"/plan", structs.JobPlanRequest{Job: j, Diff: true}).want(200, out)
	return out
}

// addNodes registers nodes on which the jobs of package schedtest can run.
func (s *server) addNodes(count int) {
	s.t.Helper()
	for i := range count {
		node := schedtest.Node(uuid.New())
		node.SecretID, node.Name = uuid.New(), fmt.Sprintf("node-%d", i)
		node.Canonicalize()
		node.ComputeClass()
		s.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: node, Now: time.Now().UnixNano()})
	}
}

// outcome counts what became of a group's allocations.
type outcome struct{ placed, stopped, updated, kept int }

// outcomes compares a job's allocations before and after, by group.
func outcomes(before, after []*structs.Allocation) map[string]outcome {
	out := map[string]outcome{}
	was := map[string]*structs.Allocation{}
	for _, a := range before {
		was[a.ID] = a
	}
	for _, a := range after {
		o, old := out[a.TaskGroup], was[a.ID]
		switch {
		case old == nil:
			o.placed++
		case old.DesiredStatus != a.DesiredStatus:
			o.stopped++
		case old.JobModifyIndex != a.JobModifyIndex:
			o.updated++
		case !a.TerminalStatus():
			o.kept++
		}
		out[a.TaskGroup] = o
	}
	maps.DeleteFunc(out, func(_ string, o outcome) bool { return o == outcome{} })
	return out
}

// foretold is what a plan says will become of them.
func foretold(p *structs.JobPlanResponse) map[string]outcome {
	out := map[string]outcome{}
	for name, d := range p.Annotations.DesiredTGUpdates {
		failed := 0
		if m := p.FailedTGAllocs[name]; m != nil {
			failed = m.CoalescedFailures + 1
		}
		fresh, replaced := int(d.Place+d.Canary), int(d.DestructiveUpdate+d.Migrate)
		o := outcome{placed: fresh + replaced - failed, updated: int(d.InPlaceUpdate)}
		// What has no room is not placed; what it would have replaced goes on.
		keeps := max(0, failed-fresh)
		o.stopped, o.kept = int(d.Stop)+replaced-keeps, int(d.Ignore)+keeps
		if (o != outcome{}) {
			out[name] = o
		}
	}
	return out
}

// planThenRun plans a job, runs it, and wants the two to agree.
func (s *server) planThenRun(j *structs.Job) *structs.JobPlanResponse {
	s.t.Helper()
	ns, id := structs.DefaultNamespace, structs.Val(j.ID)
	index := s.backend.Store.Index()
	before := s.backend.Store.AllocsByJob(nil, ns, id)
	entries := len(s.raft.entries)
	p := s.plan(j)
	if s.backend.Store.Index() != index || len(s.raft.entries) != entries {
		s.t.Fatal("the plan wrote something")
	}
	decided := s.run(j)
	if want := decided.PlanAnnotations.DesiredTGUpdates; !reflect.DeepEqual(p.Annotations.DesiredTGUpdates, want) {
		s.t.Errorf("the plan says %s, the run %s", counts(p.Annotations.DesiredTGUpdates), counts(want))
	}
	wantReasons(s.t, p)
	if got, want := foretold(p), outcomes(before, s.backend.Store.AllocsByJob(nil, ns, id)); !maps.Equal(got, want) {
		s.t.Errorf("the plan foretells %+v, the run did %+v", got, want)
	}
	for name, m := range decided.FailedTGAllocs {
		said := p.FailedTGAllocs[name]
		if said == nil || said.CoalescedFailures != m.CoalescedFailures || !maps.Equal(said.ConstraintFiltered, m.ConstraintFiltered) ||
			!maps.Equal(said.DimensionExhausted, m.DimensionExhausted) {
			s.t.Errorf("group %s: the plan fails by %+v, the run by %+v", name, said, m)
		}
	}
	if len(p.FailedTGAllocs) != len(decided.FailedTGAllocs) {
		s.t.Errorf("%d groups fail in the plan, %d in the run", len(p.FailedTGAllocs), len(decided.FailedTGAllocs))
	}
	blocked := decided.BlockedEval != ""
	if said := slices.ContainsFunc(p.CreatedEvals, func(e *structs.Evaluation) bool { return e.Status == structs.EvalStatusBlocked }); said != blocked {
		s.t.Errorf("the plan makes a blocked evaluation: %t, the run: %t", said, blocked)
	}
	return p
}

// wantReasons wants a reason for each allocation that a plan counts, in words that job explain has too.
func wantReasons(t testing.TB, p *structs.JobPlanResponse) {
	t.Helper()
	for name, d := range p.Annotations.DesiredTGUpdates {
		told := map[string]uint64{}
		for _, u := range p.Annotations.Reasons[name] {
			told[u.Update] += u.Allocs
			if u.Reason == "" || u.Update == structs.UpdateDestructive && len(u.Differs) == 0 {
				t.Errorf("group %s: nothing is said about %+v", name, *u)
			}
		}
		want := map[string]uint64{structs.UpdateIgnore: d.Ignore, structs.UpdateInPlace: d.InPlaceUpdate, structs.UpdateDestroy: d.Stop,
			structs.UpdateDestructive: d.DestructiveUpdate, structs.UpdateCanary: d.Canary}
		maps.DeleteFunc(want, func(_ string, n uint64) bool { return n == 0 })
		if !maps.Equal(told, want) {
			t.Errorf("group %s: reasons for %v, updates %v", name, told, want)
		}
	}
	if len(p.FailedReasons) != len(p.FailedTGAllocs) {
		t.Errorf("%d groups fail, reasons for %d", len(p.FailedTGAllocs), len(p.FailedReasons))
	}
	for name, m := range p.FailedTGAllocs {
		if !slices.Equal(p.FailedReasons[name], m.Explain()) || len(p.FailedReasons[name]) == 0 {
			t.Errorf("group %s: reasons are %+v, want %+v", name, p.FailedReasons[name], m.Explain())
		}
	}
}

func counts(m map[string]*structs.DesiredUpdates) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s %+v", name, *m[name]))
	}
	return strings.Join(out, "; ")
}

// start observes that the job's allocations run, healthy if they are part of a deployment.
func (s *server) start(jobID string) {
	s.t.Helper()
	for _, a := range s.backend.Store.AllocsByJob(nil, structs.DefaultNamespace, jobID) {
		if !a.TerminalStatus() && a.ObservedStatus == structs.AllocClientStatusPending {
			s.observe(a, structs.AllocClientStatusRunning)
		}
	}
}

// planCase is one change of a job of three allocations.
type planCase struct {
	name   string
	kind   string               // "": service
	before func(j *structs.Job) // nil: the job is new
	change func(j *structs.Job)
	stop   bool   // the job is stopped before
	group  string // whose updates are looked at; "": web
	want   structs.DesiredUpdates
	fails  bool
}

// check makes the change, planned first, on a server of its own.
func (c *planCase) check(t *testing.T) {
	s := newServer(t)
	s.addNodes(4)
	kind := c.kind
	if kind == "" {
		kind = structs.JobTypeService
	}
	if c.before != nil {
		j := schedtest.Job("web", kind, 3)
		c.before(j)
		s.run(j)
		s.start("web")
	}
	if c.stop {
		var out structs.JobDeregisterResponse
		s.call("DELETE", "/v1/job/web", nil).want(200, &out)
		s.decide(out.EvalID)
		for _, a := range s.backend.Store.AllocsByJob(nil, "default", "web") {
			s.observe(a, structs.AllocClientStatusComplete)
		}
	}
	j := schedtest.Job("web", kind, 3)
	c.change(j)
	p := s.planThenRun(j)
	name := c.group
	if name == "" {
		name = "web"
	}
	if got := p.Annotations.DesiredTGUpdates[name]; got == nil || *got != c.want {
		t.Errorf("the plan for %s is %s, want %+v", name, counts(p.Annotations.DesiredTGUpdates), c.want)
	}
	if (len(p.FailedTGAllocs) > 0) != c.fails {
		t.Errorf("failures: %+v", p.FailedTGAllocs)
	}
}

func TestWhatThePlanSaysIsWhatTheRunDoes(t *testing.T) {
	group := func(j *structs.Job) *structs.TaskGroup { return j.TaskGroups[0] }
	other := func(j *structs.Job) {
		tg := group(j).Copy()
		tg.Name = structs.Ptr("api")
		j.TaskGroups = append(j.TaskGroups, tg)
	}
	for _, c := range []planCase{
		{name: "new job", change: func(*structs.Job) {}, want: structs.DesiredUpdates{Place: 3}},
		{name: "the same again", before: func(*structs.Job) {}, change: func(*structs.Job) {}, want: structs.DesiredUpdates{Ignore: 3}},
		{name: "more", before: func(*structs.Job) {}, change: func(j *structs.Job) { group(j).Count = structs.Ptr(5) },
			want: structs.DesiredUpdates{Place: 2, InPlaceUpdate: 3}},
		{name: "less", before: func(*structs.Job) {}, change: func(j *structs.Job) { group(j).Count = structs.Ptr(1) },
			want: structs.DesiredUpdates{Stop: 2, InPlaceUpdate: 1}},
		{name: "none", before: func(*structs.Job) {}, change: func(j *structs.Job) { group(j).Count = structs.Ptr(0) },
			want: structs.DesiredUpdates{Stop: 3}},
		{name: "in place", before: func(*structs.Job) {}, change: func(j *structs.Job) { group(j).Tasks[0].KillTimeout = structs.Ptr(time.Minute) },
			want: structs.DesiredUpdates{InPlaceUpdate: 3}},
		{name: "meta", before: func(*structs.Job) {}, change: func(j *structs.Job) { j.Meta = map[string]string{"a": "b"} },
			want: structs.DesiredUpdates{DestructiveUpdate: 1, Ignore: 2}},
		{name: "destructive, all at once", before: func(*structs.Job) {}, change: func(j *structs.Job) {
			j.Update = &structs.UpdateStrategy{MaxParallel: structs.Ptr(0)}
			group(j).Tasks[0].Env = map[string]string{"A": "1"}
		}, want: structs.DesiredUpdates{DestructiveUpdate: 3}},
		{name: "two at a time", before: func(*structs.Job) {}, change: func(j *structs.Job) {
			j.Update = &structs.UpdateStrategy{MaxParallel: structs.Ptr(2)}
			group(j).Tasks[0].Env = map[string]string{"A": "1"}
		}, want: structs.DesiredUpdates{DestructiveUpdate: 2, Ignore: 1}},
		{name: "canary", before: func(*structs.Job) {}, change: func(j *structs.Job) {
			j.Update = &structs.UpdateStrategy{MaxParallel: structs.Ptr(1), Canary: structs.Ptr(1)}
			group(j).Tasks[0].Env = map[string]string{"A": "1"}
		}, want: structs.DesiredUpdates{Canary: 1, Ignore: 3}},
		{name: "new group", before: func(*structs.Job) {}, change: other, group: "api", want: structs.DesiredUpdates{Place: 3}},
		{name: "removed group", before: other, change: func(*structs.Job) {}, group: "api", want: structs.DesiredUpdates{Stop: 3}},
		{name: "fits nowhere", change: func(j *structs.Job) {
			j.Constraints = []*structs.Constraint{{LTarget: "${attr.kernel.name}", Operand: "=", RTarget: "plan9"}}
		}, want: structs.DesiredUpdates{Place: 3}, fails: true},
		{name: "does not fit any more", before: func(*structs.Job) {}, change: func(j *structs.Job) {
			j.Constraints = []*structs.Constraint{{LTarget: "${attr.kernel.name}", Operand: "=", RTarget: "plan9"}}
		}, want: structs.DesiredUpdates{DestructiveUpdate: 3}, fails: true},
		{name: "no room", before: func(*structs.Job) {}, change: func(j *structs.Job) { group(j).Count = structs.Ptr(40) },
			want: structs.DesiredUpdates{Place: 37, InPlaceUpdate: 3}, fails: true},
		{name: "a stopped job again", before: func(*structs.Job) {}, change: func(*structs.Job) {}, stop: true,
			want: structs.DesiredUpdates{Place: 3}},
		{name: "stop by the job", before: func(*structs.Job) {}, change: func(j *structs.Job) { j.Stop = true },
			want: structs.DesiredUpdates{Stop: 3}},
		{name: "batch", kind: structs.JobTypeBatch, change: func(*structs.Job) {}, want: structs.DesiredUpdates{Place: 3}},
		{name: "more batch", kind: structs.JobTypeBatch, before: func(*structs.Job) {}, change: func(j *structs.Job) { group(j).Count = structs.Ptr(4) },
			want: structs.DesiredUpdates{Place: 1, InPlaceUpdate: 3}},
		{name: "system", kind: structs.JobTypeSystem, change: func(j *structs.Job) { group(j).Count = structs.Ptr(1) },
			want: structs.DesiredUpdates{Place: 4}},
		{name: "system update", kind: structs.JobTypeSystem, before: func(j *structs.Job) { group(j).Count = structs.Ptr(1) },
			change: func(j *structs.Job) {
				group(j).Count = structs.Ptr(1)
				group(j).Tasks[0].Env = map[string]string{"A": "1"}
			}, want: structs.DesiredUpdates{DestructiveUpdate: 1, Ignore: 3}},
	} {
		t.Run(c.name, c.check)
	}
}

// A job that is changed at random again and again, with nodes too small for it at times, does what its plans say.
func TestPlansOfRandomChangesComeTrue(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			s := newServer(t)
			s.addNodes(3)
			j := schedtest.Job("web", structs.JobTypeService, 2)
			for step := range 15 {
				g := j.TaskGroups[random.IntN(len(j.TaskGroups))]
				switch random.IntN(8) {
				case 0:
					g.Count = structs.Ptr(random.IntN(12))
				case 1:
					g.Tasks[0].Env = map[string]string{"STEP": fmt.Sprint(step)}
				case 2:
					g.Tasks[0].KillTimeout = structs.Ptr(time.Duration(step+1) * time.Second)
				case 3:
					g.Tasks[0].Resources.CPU = structs.Ptr(100 + random.IntN(1000))
				case 4:
					extra := j.TaskGroups[0].Copy()
					extra.Name = structs.Ptr(fmt.Sprintf("extra-%d", step))
					j.TaskGroups = append(j.TaskGroups, extra)
				case 5:
					if len(j.TaskGroups) > 1 {
						j.TaskGroups = j.TaskGroups[1:]
					}
				case 6:
					j.Update = &structs.UpdateStrategy{MaxParallel: structs.Ptr(random.IntN(3)), Canary: structs.Ptr(random.IntN(2))}
				}
				s.planThenRun(j)
				if t.Failed() {
					t.Fatalf("step %d", step)
				}
				if random.IntN(3) > 0 {
					s.start("web")
				}
				for _, a := range s.backend.Store.AllocsByJob(nil, "default", "web") {
					if a.ServerTerminal() && !a.ClientTerminal() && random.IntN(2) == 0 {
						s.observe(a, structs.AllocClientStatusComplete)
					}
				}
			}
		})
	}
}

func TestPlanAnswersTheDifferenceAndItsIndex(t *testing.T) {
	s := newServer(t)
	s.addNodes(2)
	j := schedtest.Job("web", structs.JobTypeService, 1)
	if p := s.plan(j); p.JobModifyIndex != 0 || p.Diff.Type != structs.DiffTypeAdded || p.Diff.TaskGroups[0].Updates["create"] != 1 ||
		!slices.Equal(p.Diff.TaskGroups[0].Tasks[0].Annotations, []string{"forces create"}) {
		t.Errorf("plan of a new job: %+v", p.Diff)
	}
	registered := s.register(j.Copy())
	s.decide(registered.EvalID)
	changed := schedtest.Job("web", structs.JobTypeService, 2)
	p := s.plan(changed)
	if p.JobModifyIndex != registered.JobModifyIndex || p.Diff.Type != structs.DiffTypeEdited ||
		p.Diff.TaskGroups[0].Fields[0].Name != "Count" || !slices.Equal(p.Diff.TaskGroups[0].Fields[0].Annotations, []string{"forces create"}) {
		t.Errorf("plan of another count: index %d, %+v", p.JobModifyIndex, p.Diff.TaskGroups[0])
	}
	a := s.call("POST", "/v1/job/web/plan", structs.JobPlanRequest{Job: changed}).want(200, nil)
	if !strings.Contains(a.body, `"Diff":null`) || a.header.Get("X-Nomad-Index") == "" {
		t.Errorf("without a difference: %s %v", a.body, a.header)
	}
}

func TestPlanRefusesWhatARegistrationRefuses(t *testing.T) {
	s := newServer(t)
	s.call("PUT", "/v1/job/web/plan", nil).says(400, "empty")
	s.call("PUT", "/v1/job/web/plan", "{}").says(400, "Job must be specified")
	s.call("PUT", "/v1/job/other/plan", structs.JobPlanRequest{Job: job("web")}).says(400, "does not match")
	bad := job("web", func(j *structs.Job) { j.TaskGroups[0].Tasks = nil })
	want := s.call("PUT", "/v1/jobs", structs.JobRegisterRequest{Job: bad})
	if got := s.call("PUT", "/v1/job/web/plan", structs.JobPlanRequest{Job: bad}); got.status != want.status || got.body != want.body {
		t.Errorf("the plan answers %d %q, the registration %d %q", got.status, got.body, want.status, want.body)
	}
	s.register(job("web"))
	of := job("web", func(j *structs.Job) { j.Type = structs.Ptr(structs.JobTypeSystem) })
	s.call("PUT", "/v1/job/web/plan", structs.JobPlanRequest{Job: of}).says(500, `from type "service" to "system"`)
	s.call("PUT", "/v1/jobs", structs.JobRegisterRequest{Job: of}).says(500, `from type "service" to "system"`)
	s.call("PUT", "/v1/job/web/plan?namespace=nope", structs.JobPlanRequest{Job: job("web")}).says(500, "nonexistent namespace")
}

func TestPlanOfAPeriodicJobTellsItsNextLaunch(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
	s := newServer(t, func(b *Backend) { b.Now = func() time.Time { return now } })
	j := job("nightly", func(j *structs.Job) {
		j.Type = structs.Ptr(structs.JobTypeBatch)
		j.Periodic = &structs.PeriodicConfig{Specs: []string{"0 3 * * *", "0 22 * * *"}, TimeZone: structs.Ptr("Europe/Berlin")}
	})
	p := s.plan(j)
	if want := time.Date(2026, 3, 1, 21, 0, 0, 0, time.UTC); !p.NextPeriodicLaunch.Equal(want) {
		t.Errorf("next launch %s, want %s", p.NextPeriodicLaunch, want)
	}
	if task := p.Diff.TaskGroups[0].Tasks[0]; len(task.Annotations) > 0 {
		t.Errorf("its task %v", task.Annotations)
	}
	if p.Annotations == nil || len(p.Annotations.DesiredTGUpdates) != 0 || len(p.CreatedEvals) != 0 {
		t.Errorf("a job that only launches others plans %+v", p.Annotations)
	}
	j.Periodic.Enabled = structs.Ptr(false)
	if p = s.plan(j); !p.NextPeriodicLaunch.IsZero() {
		t.Errorf("next launch %s of a job that is not enabled", p.NextPeriodicLaunch)
	}
}
