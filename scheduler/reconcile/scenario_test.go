package reconcile_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/internal/scenariotest"
	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/scheduler/reconcile"
	"github.com/nomadlite/nomadlite/scheduler/schedtest"
	"github.com/nomadlite/nomadlite/structs"
)

// TestScenarios plays the files of testdata. Together they must reach every rule. After each evaluation a second one is
// made, which must change nothing.
func TestScenarios(t *testing.T) {
	reached := map[string]bool{}
	scenariotest.Play(t, func(t *testing.T) func(scenariotest.Command) []string { return newStage(t, reached).do })
	for _, name := range reconcile.RuleNames() {
		if !reached[name] {
			t.Errorf("no scenario reaches the rule %q", name)
		}
	}
}

// stage is the cluster on which a scenario is played.
type stage struct {
	t       *testing.T
	c       *schedtest.Cluster
	p       *schedtest.Planner
	reached map[string]bool
	trace   strings.Builder
	played  map[string]bool // follow-up evaluations that have run
}

func newStage(t *testing.T, reached map[string]bool) *stage {
	c := schedtest.New()
	return &stage{t: t, c: c, p: &schedtest.Planner{Cluster: c}, reached: reached, played: map[string]bool{}}
}

func (st *stage) printf(format string, args ...any) { fmt.Fprintf(&st.trace, format+"\n", args...) }

// options are the key=value words of a command; a word without a value is "true".
type options map[string]string

func (o options) duration(t *testing.T, key string) *time.Duration {
	v, ok := o[key]
	if !ok {
		return nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		t.Fatal(err)
	}
	return &d
}

func (o options) number(t *testing.T, key string) *int {
	v, ok := o[key]
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatal(err)
	}
	return &n
}

func (o options) bool(key string) *bool {
	v, ok := o[key]
	if !ok {
		return nil
	}
	return structs.Ptr(v == "true")
}

// do does one command and gives what it said.
func (st *stage) do(c scenariotest.Command) []string {
	st.trace.Reset()
	opts, args := options(c.Args), c.Words
	switch c.Name {
	case "node":
		st.node(args[0], opts)
	case "purge-node":
		st.c.RemoveNode(args[0])
	case "job":
		st.job(args[0], args[1], opts)
	case "stop-job":
		job := st.c.Job("", args[0]).Copy()
		job.Stop = true
		st.c.PutJob(job)
	case "purge-job":
		st.c.RemoveJob(args[0])
	case "alloc":
		st.alloc(args[0], opts)
	case "deployment":
		st.deployment(args[0], opts)
	case "tick":
		st.c.Now = st.c.Now.Add(scenariotest.Duration(st.t, args[0]))
	case "eval":
		st.eval(args[0], opts)
	case "due":
		st.due()
	case "allocs":
		st.allocs()
	default:
		st.t.Fatalf("unknown command %q", c.Line)
	}
	if st.trace.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(st.trace.String(), "\n"), "\n")
}

func (st *stage) node(id string, opts options) {
	n := st.c.Node(id)
	if n == nil {
		n = schedtest.Node(id)
	} else {
		n = n.Copy()
	}
	for k, v := range opts {
		switch k {
		case "status":
			n.Status, n.StatusUpdatedAt = v, st.c.Now.Unix()
		case "dc":
			n.Datacenter = v
		case "cpu":
			n.NodeResources.Cpu.CpuShares = int64(*opts.number(st.t, "cpu"))
		case "eligibility":
			n.SchedulingEligibility = v
		case "drain":
			n.DrainStrategy, n.SchedulingEligibility = nil, structs.NodeEligible
			if v == "true" {
				n.DrainStrategy, n.SchedulingEligibility = &structs.DrainStrategy{}, structs.NodeIneligible
				n.DrainStrategy.NoShutdownDelay = opts["no_shutdown_delay"] == "true"
				n.DrainStrategy.KillTimeout = opts.duration(st.t, "kill_timeout")
			}
		case "no_shutdown_delay", "kill_timeout": // of the drain
		default:
			st.t.Fatalf("unknown option %q of node", k)
		}
	}
	st.c.PutNode(n)
}

func (st *stage) job(id, kind string, opts options) {
	j := schedtest.Job(id, kind, 1)
	tg := j.TaskGroups[0]
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		v := opts[k]
		switch k {
		case "count":
			tg.Count = opts.number(st.t, k)
		case "group":
			tg.Name = structs.Ptr(v)
		case "cpu":
			tg.Tasks[0].Resources.CPU = opts.number(st.t, k)
		case "image", "env":
			tg.Tasks[0].Env = map[string]string{"image": v}
		case "kill_timeout":
			tg.Tasks[0].KillTimeout = opts.duration(st.t, k)
		case "dc":
			j.Datacenters = strings.Split(v, ",")
		case "max_parallel", "canary", "auto_promote", "stagger":
			if tg.Update == nil {
				tg.Update = &structs.UpdateStrategy{}
			}
			switch k {
			case "max_parallel":
				tg.Update.MaxParallel = opts.number(st.t, k)
			case "stagger":
				tg.Update.Stagger = opts.duration(st.t, k)
			case "canary":
				tg.Update.Canary = opts.number(st.t, k)
			default:
				tg.Update.AutoPromote = opts.bool(k)
			}
		case "lost_after", "stop_on_client_after", "replace", "reconcile":
			if tg.Disconnect == nil {
				tg.Disconnect = &structs.DisconnectStrategy{}
			}
			switch k {
			case "lost_after":
				tg.Disconnect.LostAfter = opts.duration(st.t, k)
			case "stop_on_client_after":
				tg.Disconnect.StopOnClientAfter = opts.duration(st.t, k)
			case "replace":
				tg.Disconnect.Replace = opts.bool(k)
			default:
				tg.Disconnect.Reconcile = structs.Ptr(v)
			}
		case "attempts", "interval", "delay", "max_delay", "delay_function", "unlimited":
			if tg.ReschedulePolicy == nil {
				tg.ReschedulePolicy = &structs.ReschedulePolicy{}
			}
			r := tg.ReschedulePolicy
			switch k {
			case "attempts":
				r.Attempts = opts.number(st.t, k)
				r.Unlimited = structs.Ptr(false)
			case "interval":
				r.Interval = opts.duration(st.t, k)
			case "delay":
				r.Delay = opts.duration(st.t, k)
			case "max_delay":
				r.MaxDelay = opts.duration(st.t, k)
			case "delay_function":
				r.DelayFunction = structs.Ptr(v)
			default:
				r.Unlimited = opts.bool(k)
			}
		case "also": // a second group of that name, without canaries
		default:
			st.t.Fatalf("unknown option %q of job", k)
		}
	}
	if name := opts["also"]; name != "" {
		second := tg.Copy()
		second.Name = &name
		if second.Update != nil {
			second.Update.Canary = nil
		}
		j.TaskGroups = append(j.TaskGroups, second)
	}
	st.c.PutJob(j)
}

// alloc changes allocations: one by its id, all that run on a node ("on:n1"), or all that want to run ("all").
func (st *stage) alloc(which string, opts options) {
	found := false
	for _, a := range st.c.Allocs() {
		node, on := strings.CutPrefix(which, "on:")
		switch {
		case on && a.NodeID == node, which == "all":
			if a.DesiredStatus != structs.AllocDesiredStatusRun || a.ClientTerminal() {
				continue
			}
		case a.ID == which:
		default:
			continue
		}
		found = true
		st.c.EditAlloc(a.ID, func(a *structs.Allocation) { st.editAlloc(a, opts) })
	}
	if !found {
		st.t.Fatalf("no allocation %q", which)
	}
}

func (st *stage) editAlloc(a *structs.Allocation, opts options) {
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		v := opts[k]
		switch k {
		case "observed":
			a.ObservedStatus = v
			ts := a.TaskStates["main"].Copy()
			if ts == nil {
				ts = &structs.TaskState{}
			}
			switch v {
			case "running":
				ts.StartedAt = st.c.Now
			case "failed", "complete":
				ts.FinishedAt, ts.Failed = st.c.Now, v == "failed"
				if a.ServerTerminal() && opts["by_itself"] == "" {
					ts.Events = append(ts.Events, &structs.TaskEvent{Type: structs.TaskKilled})
				}
			}
			a.TaskStates = map[string]*structs.TaskState{"main": ts}
		case "by_itself":
		case "desired":
			a.DesiredStatus = v
		case "fenced":
			a.Fenced = v == "true"
		case "departed":
			a.Departed = v == "true"
		case "condition":
			a.Condition = structs.Condition{Status: v, Since: st.c.Now}
			if d := opts.duration(st.t, "for"); d != nil {
				a.Condition.Until = st.c.Now.Add(*d)
			}
		case "for":
		case "canary":
			ds := *a.DeploymentStatus
			ds.Canary = v == "true"
			a.DeploymentStatus = &ds
		case "healthy":
			ds := &structs.AllocDeploymentStatus{Healthy: opts.bool(k)}
			if a.DeploymentStatus != nil {
				ds.Canary = a.DeploymentStatus.Canary
			}
			a.DeploymentStatus = ds
		case "migrate":
			a.DesiredTransition.Migrate = opts.bool(k)
		case "disable_placement":
			a.DesiredTransition.MigrateDisablePlacement = opts.bool(k)
		case "reschedule":
			a.DesiredTransition.Reschedule = opts.bool(k)
		case "force_reschedule":
			a.DesiredTransition.ForceReschedule = opts.bool(k)
		default:
			st.t.Fatalf("unknown option %q of alloc", k)
		}
	}
}

func (st *stage) deployment(id string, opts options) {
	st.c.EditDeployment(id, func(d *structs.Deployment) {
		if v, ok := opts["status"]; ok {
			d.Status = v
		}
		for name, s := range d.TaskGroups {
			if v := opts["promoted"]; v == "true" || v == name {
				s.Promoted = true
			}
		}
	})
}

func (st *stage) eval(job string, opts options) {
	kind := cmp.Or(opts["type"], structs.JobTypeService)
	if j := st.c.Job("", job); j != nil {
		kind = *j.Type
	}
	st.process(&structs.Evaluation{
		ID: st.c.NewID("eval-"), Namespace: "default", JobID: job, Type: kind, Priority: 50,
		TriggeredBy: cmp.Or(opts["trigger"], structs.EvalTriggerJobRegister), Status: structs.EvalStatusPending,
		NoShutdownDelay: opts["no_shutdown_delay"] == "true", AnnotatePlan: opts["annotate"] == "true",
	})
}

// due processes the follow-up evaluations whose time has come.
func (st *stage) due() {
	for _, e := range st.c.Evals() {
		if e.Status == structs.EvalStatusPending && !e.WaitUntil.IsZero() && !e.WaitUntil.After(st.c.Now) && !st.played[e.ID] {
			st.played[e.ID] = true
			st.process(e)
		}
	}
}

// process decides an evaluation, tells what it did, and checks that the same evaluation changes nothing more.
func (st *stage) process(e *structs.Evaluation) {
	st.c.PutEval(e)
	before := map[string]bool{}
	for _, old := range st.c.Evals() {
		before[old.ID] = true
	}
	decided := st.decide(e)
	for _, h := range decided.Held {
		st.reached["brake: "+h.Brake] = true
		st.printf("  %s: %d of an older version wait: %s", h.Group, h.Waiting, h.Brake)
	}
	for _, d := range decided.Decisions {
		if isSystem(e.Type) {
			st.reached["system: "+d.Rule] = true
		} else {
			st.reached[d.Rule] = true
		}
		st.printf("  %s %s: %s (%s: %s)", d.Alloc.ID, d.Alloc.Name, d.Bucket, d.Rule, d.Reason)
	}
	plans := len(st.p.Plans)
	done, err := st.p.Process(e)
	if err != nil {
		st.t.Fatal(err)
	}
	for _, plan := range st.p.Plans[plans:] {
		st.plan(plan)
	}
	st.printf("%s: %s queued=%v%s", done.ID, done.Status, done.QueuedAllocations, failures(done))
	for _, e := range st.c.Evals() {
		if !before[e.ID] {
			wait := ""
			if e.NodeID != "" {
				wait = " for " + e.NodeID
			}
			if !e.WaitUntil.IsZero() {
				wait += " in " + e.WaitUntil.Sub(st.c.Now).String()
			}
			st.printf("%s: new, %s, %s, %s%s", e.ID, e.Status, e.TriggeredBy, e.StatusDescription, wait)
		}
	}
	if !e.AnnotatePlan {
		st.again(done)
	}
}

func failures(e *structs.Evaluation) string {
	out := ""
	for _, name := range slices.Sorted(maps.Keys(e.FailedTGAllocs)) {
		m := e.FailedTGAllocs[name]
		out += fmt.Sprintf(" failed=%s:%v%v", name, m.ConstraintFiltered, m.DimensionExhausted)
	}
	return out
}

func (st *stage) decide(e *structs.Evaluation) *reconcile.Result {
	n := 0
	job := st.c.Job("", e.JobID)
	in := reconcile.Input{
		Namespace: e.Namespace, JobID: e.JobID, Job: job,
		Batch:  e.Type == structs.JobTypeBatch || e.Type == structs.JobTypeSysBatch,
		Allocs: st.c.AllocsByJob("", e.JobID), Node: st.c.Node, Deployment: st.c.LatestDeployment("", e.JobID), Eval: e,
		Pending: func(id string) bool { other := st.c.Eval(id); return other != nil && !other.TerminalStatus() },
		Now:     st.c.Now, NewID: func() string { n++; return "x-" + strconv.Itoa(n) },
	}
	if !isSystem(e.Type) {
		return reconcile.Run(in)
	}
	sys := reconcile.SystemInput{Input: in}
	if !job.Stopped() {
		sys.Scope = feasible.NewScope(st.c.Nodes(), job).Nodes
		sys.Fits = func(tg *structs.TaskGroup, node *structs.Node) bool {
			ok, _ := feasible.NewGroup(job, tg).Check(node)
			return ok && feasible.Contains(job, node)
		}
	}
	return reconcile.RunSystem(sys)
}

func isSystem(kind string) bool {
	return kind == structs.JobTypeSystem || kind == structs.JobTypeSysBatch
}

// again makes the same evaluation once more: it must change nothing, but for what could not be placed before.
func (st *stage) again(first *structs.Evaluation) {
	e := first.Copy()
	e.Status = structs.EvalStatusPending
	r := st.decide(e)
	if len(first.FailedTGAllocs) == 0 && (len(r.Places) > 0 || len(r.InPlace) > 0 || r.Deployment != nil) {
		st.t.Errorf("%s run again places more: %+v", first.ID, r.Places)
	}
	if len(first.FailedTGAllocs) == 0 && (len(r.Stops) > 0 || len(r.Follow) > 0 || len(r.DeploymentUpdates) > 0) {
		st.t.Errorf("%s run again stops more: %+v", first.ID, r.Stops)
	}
}

func (st *stage) plan(plan *structs.Plan) {
	for _, node := range slices.Sorted(maps.Keys(plan.Stops)) {
		for _, s := range plan.Stops[node] {
			line := fmt.Sprintf("stop %s on %s: desired=%q %s", s.ID, node, s.DesiredStatus, s.DesiredDescription)
			if s.Condition != nil {
				line += " condition=" + s.Condition.Status
			}
			if s.FollowupEvalID != "" {
				line += " follow=" + s.FollowupEvalID
			}
			if s.NoShutdownDelay {
				line += " no_shutdown_delay"
			}
			if s.KillTimeout != nil {
				line += " kill_timeout=" + s.KillTimeout.String()
			}
			st.printf("%s", line)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(plan.Places)) {
		for _, a := range plan.Places[node] {
			line := fmt.Sprintf("place %s %s v%d", a.ID, a.Name, a.JobVersion)
			if a.PreviousAllocation != "" {
				line += " after " + a.PreviousAllocation
			}
			for _, w := range a.Awaits {
				line += " awaits " + w.ID
			}
			if a.DeploymentID != "" {
				line += " in " + a.DeploymentID
			}
			if a.DeploymentStatus != nil && a.DeploymentStatus.Canary {
				line += " canary"
			}
			if a.RescheduleTracker != nil {
				line += fmt.Sprintf(" reschedules=%d", len(a.RescheduleTracker.Events))
			}
			st.printf("%s", line)
		}
	}
	if d := plan.Deployment; d != nil {
		st.printf("deployment %s v%d: %s, %s", d.ID, d.JobVersion, d.Status, d.StatusDescription)
	}
	for _, u := range plan.DeploymentUpdates {
		st.printf("deployment %s: %s, %s", u.DeploymentID, u.Status, u.StatusDescription)
	}
	if plan.Annotations != nil {
		for _, name := range slices.Sorted(maps.Keys(plan.Annotations.DesiredTGUpdates)) {
			st.printf("annotation %s: %+v", name, *plan.Annotations.DesiredTGUpdates[name])
		}
	}
}

func (st *stage) allocs() {
	for _, a := range st.c.Allocs() {
		st.printf("%s %s v%d desired=%s client=%s", a.ID, a.Name, a.JobVersion, a.DesiredStatus, a.ClientStatus)
	}
}
