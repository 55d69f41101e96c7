package drain

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/scheduler/schedtest"
	"github.com/nomadlite/nomadlite/structs"
)

// drainedCluster is the core over a cluster with the real scheduler: jobs of each kind on four nodes, which drain.
type drainedCluster struct {
	*rapid.T
	c        *schedtest.Cluster
	planner  *schedtest.Planner
	core     *Drains
	seen     map[string]*structs.Allocation // as the core has them
	open     []*structs.Evaluation
	count    int
	parallel int
}

var clusterNodes = []string{"n0", "n1", "n2", "n3"}

func newDrainedCluster(t *rapid.T) *drainedCluster {
	d := &drainedCluster{T: t, c: schedtest.New(), core: NewDrains(), seen: map[string]*structs.Allocation{},
		count: rapid.IntRange(1, 6).Draw(t, "count"), parallel: rapid.IntRange(1, 3).Draw(t, "parallel")}
	d.planner = &schedtest.Planner{Cluster: d.c}
	for _, id := range clusterNodes {
		d.c.PutNode(schedtest.Node(id))
	}
	for id, kind := range map[string]string{"web": structs.JobTypeService, "work": structs.JobTypeBatch, "agent": structs.JobTypeSystem} {
		j := schedtest.Job(id, kind, 1)
		if id == "web" {
			g := j.TaskGroups[0]
			g.Count, g.Migrate = &d.count, &structs.MigrateStrategy{MaxParallel: &d.parallel}
			g.Update = &structs.UpdateStrategy{MaxParallel: structs.Ptr(0)}
		}
		d.c.PutJob(j)
	}
	d.evaluateAll()
	d.obey()
	return d
}

// notice tells the core what has changed, as the change feed does.
func (d *drainedCluster) notice() {
	for _, a := range d.c.Allocs() {
		if d.seen[a.ID] != a {
			d.seen[a.ID] = a
			d.core.Alloc(a)
		}
	}
}

func (d *drainedCluster) evaluate(job *structs.Job, trigger string) {
	d.open = append(d.open, &structs.Evaluation{ID: d.c.NewID("eval-"), Namespace: "default", JobID: *job.ID, Type: *job.Type,
		Priority: 50, TriggeredBy: trigger, Status: structs.EvalStatusPending})
}

// decide processes the i-th open evaluation, and then once more: that must change nothing.
func (d *drainedCluster) decide(i int) {
	e := d.open[i]
	d.open = slices.Delete(d.open, i, i+1)
	for again := range 2 {
		plans := len(d.planner.Plans)
		d.c.PutEval(e.Copy())
		if _, err := d.planner.Process(e.Copy()); err != nil {
			d.Fatal(err)
		}
		for _, plan := range d.planner.Plans[plans:] {
			if again == 1 && (len(plan.Stops) > 0 || len(plan.Places) > 0) {
				d.Fatalf("evaluation %s of %s changes more when it runs twice: %+v", e.ID, e.JobID, plan)
			}
		}
	}
	d.notice()
}

func (d *drainedCluster) evaluateAll() {
	for _, id := range []string{"web", "work", "agent"} {
		d.evaluate(d.c.Job("", id), structs.EvalTriggerNodeUpdate)
	}
	for len(d.open) > 0 {
		d.decide(0)
	}
}

// obey lets the nodes do what is wanted of all allocations; what runs is well.
func (d *drainedCluster) obey() {
	for _, a := range d.c.Allocs() {
		d.observe(a, true)
	}
}

func (d *drainedCluster) observe(a *structs.Allocation, well bool) {
	switch {
	case a.ObservedTerminal():
		return
	case a.ServerTerminal():
		d.c.EditAlloc(a.ID, func(a *structs.Allocation) { a.ObservedStatus = structs.AllocClientStatusComplete })
	default:
		d.c.EditAlloc(a.ID, func(a *structs.Allocation) {
			a.ObservedStatus = structs.AllocClientStatusRunning
			a.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: &well}
		})
	}
	d.notice()
}

func (d *drainedCluster) drain(id string, s *structs.DrainStrategy) {
	d.c.EditNode(id, func(n *structs.Node) {
		n.DrainStrategy, n.SchedulingEligibility = s, structs.NodeIneligible
		if s == nil {
			n.SchedulingEligibility = structs.NodeEligible
		}
	})
	d.core.Node(d.c.Node(id))
}

// forced says that a node's deadline has passed.
func (d *drainedCluster) forced(id string) bool {
	s := d.c.Node(id).DrainStrategy
	return s != nil && (s.Deadline < 0 || !s.ForceDeadline.IsZero() && !s.ForceDeadline.After(d.c.Now))
}

// settled counts the service's allocations that stay and whose health is known.
func (d *drainedCluster) settled() int {
	n := 0
	for _, a := range d.c.AllocsByJob("", "web") {
		if !a.TerminalStatus() && !a.DesiredTransition.ShouldMigrate() && isSettled(a) {
			n++
		}
	}
	return n
}

// due carries out what is due and checks it.
func (d *drainedCluster) due(limit int) bool {
	before := d.settled()
	round := d.core.Due(d.c.Now, d.c, limit)
	forced := 0 // of the service
	for id, t := range round.Marks {
		a := d.seen[id]
		d.check(a, t)
		if t.ShouldMigrate() && a.JobID == "web" && d.forced(a.NodeID) && isSettled(a) {
			forced++
		}
		d.c.EditAlloc(id, func(a *structs.Allocation) { a.DesiredTransition.Merge(t) })
	}
	if after, least := d.settled(), d.count-d.parallel; after < least && after < before-forced {
		d.Fatalf("%d of %d settled allocations stay, %d at a time may leave (%d by force)", after, d.count, d.parallel, forced)
	}
	for _, c := range round.Jobs {
		d.evaluate(c.Job, structs.EvalTriggerNodeDrain)
	}
	for _, n := range round.Over {
		for _, a := range d.c.AllocsByNode(n.ID) {
			if !a.ClientTerminal() && !(n.DrainStrategy.IgnoreSystemJobs && a.JobID == "agent") {
				d.Fatalf("the drain of %s is over, %s of %s is there", n.ID, a.ID, a.JobID)
			}
		}
		d.c.EditNode(n.ID, func(n *structs.Node) { n.DrainStrategy = nil })
		d.core.Node(d.c.Node(n.ID))
	}
	d.notice()
	return !round.Empty()
}

// check says whether one mark may be.
func (d *drainedCluster) check(a *structs.Allocation, t *structs.DesiredTransition) {
	n := d.c.Node(a.NodeID)
	switch {
	case n.DrainStrategy == nil:
		d.Fatalf("%s is marked, %s does not drain", a.ID, n.ID)
	case !t.ShouldMigrate():
		if !a.ServerTerminal() {
			d.Fatalf("%s is to run and gets options of a stop", a.ID)
		}
		return
	case a.TerminalStatus() || a.DesiredTransition.ShouldMigrate():
		d.Fatalf("%s is marked, and was before, or ends anyway", a.ID)
	case structs.Val(t.MigrateDisablePlacement) != (a.JobID == "work"):
		d.Fatalf("%s of %s is marked %+v", a.ID, a.JobID, t)
	case d.forced(n.ID) && !(n.DrainStrategy.IgnoreSystemJobs && a.JobID == "agent"):
		return
	}
	switch a.JobID {
	case "work":
		d.Fatalf("batch work is marked before its deadline")
	case "agent":
		for _, other := range d.c.AllocsByNode(n.ID) {
			if other.JobID != "agent" && !other.ClientTerminal() {
				d.Fatalf("a system job leaves %s before %s", n.ID, other.ID)
			}
		}
		if n.DrainStrategy.IgnoreSystemJobs {
			d.Fatal("a system job that is to be ignored is marked")
		}
	}
}

// options checks that exactly the stops of drains with options have them.
func (d *drainedCluster) options() {
	for _, a := range d.c.Allocs() {
		if a.DesiredTransition.NoShutdownDelay != nil && !a.ServerTerminal() {
			d.Fatalf("%s is to run without its shutdown delay", a.ID)
		}
	}
}

func (d *drainedCluster) actions() map[string]func(*rapid.T) {
	node := func(t *rapid.T) string { return rapid.SampledFrom(clusterNodes).Draw(t, "node") }
	return map[string]func(*rapid.T){
		"drain": func(t *rapid.T) {
			s := &structs.DrainStrategy{DrainSpec: structs.DrainSpec{IgnoreSystemJobs: rapid.Bool().Draw(t, "ignore"),
				NoShutdownDelay: rapid.Bool().Draw(t, "no delay"),
				Deadline:        rapid.SampledFrom([]time.Duration{0, -1, 10 * time.Minute}).Draw(t, "deadline")}}
			if s.Deadline > 0 {
				s.ForceDeadline = d.c.Now.Add(s.Deadline)
			}
			d.drain(node(t), s)
		},
		"cancel":  func(t *rapid.T) { d.drain(node(t), nil) },
		"due":     func(t *rapid.T) { d.due(rapid.IntRange(1, 5).Draw(t, "limit")) },
		"restart": func(*rapid.T) { d.newLeader() },
		"tick": func(t *rapid.T) {
			d.c.Now = d.c.Now.Add(time.Duration(rapid.IntRange(1, 6).Draw(t, "minutes")) * time.Minute)
		},
		"decide": func(t *rapid.T) {
			if len(d.open) > 0 {
				d.decide(rapid.IntRange(0, len(d.open)-1).Draw(t, "evaluation"))
			}
		},
		"observe": func(t *rapid.T) {
			all := d.c.Allocs()
			d.observe(all[rapid.IntRange(0, len(all)-1).Draw(t, "allocation")], rapid.IntRange(0, 3).Draw(t, "well") > 0)
		},
		"": func(*rapid.T) { d.options() },
	}
}

func (d *drainedCluster) newLeader() {
	d.core = NewDrains()
	for n := range d.c.Nodes() {
		d.core.Node(n)
	}
}

// settle lets everything go on until nothing changes any more.
func (d *drainedCluster) settle() {
	for range 200 {
		busy := d.due(100)
		for len(d.open) > 0 {
			d.decide(0)
		}
		index := d.c.Index()
		for _, a := range d.c.Allocs() {
			if a.ServerTerminal() && !a.ObservedTerminal() || !a.ServerTerminal() && a.ObservedStatus == structs.AllocClientStatusPending {
				d.observe(a, true)
			}
		}
		if changed := d.c.Index() != index; changed {
			d.evaluateAll() // what was blocked is woken by what has ended
		} else if !busy {
			return
		}
	}
	d.Fatal("it never comes to rest")
}

// TestDrainsKeepTheirPromises drives the core with the real scheduler in any order of drains, their ends, evaluations,
// reports, deadlines and changes of the leader. In the end all drains are over that can be.
func TestDrainsKeepTheirPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDrainedCluster(t)
		t.Repeat(d.actions())
		d.evaluateAll()
		d.settle()
		d.c.Now = d.c.Now.Add(time.Hour)
		d.settle()
		if rapid.Bool().Draw(t, "another leader") {
			d.newLeader()
			d.settle()
		}
		for n := range d.c.Nodes() {
			if n.DrainStrategy == nil {
				continue
			}
			var left []string
			for _, a := range d.c.AllocsByNode(n.ID) {
				if !a.ClientTerminal() {
					left = append(left, fmt.Sprint(a.JobID, " desired ", a.DesiredStatus, " ", a.ClientStatus))
				}
			}
			// Without a deadline batch work may stay, services that find no other node, and a system job behind them.
			work := func(a *structs.Allocation) bool { return a.JobID == "work" && !a.ClientTerminal() }
			if n.DrainStrategy.Deadline != 0 || !slices.ContainsFunc(d.c.AllocsByNode(n.ID), work) && d.anyEligible() {
				t.Fatalf("the drain of %s (%+v) does not end: %q", n.ID, n.DrainStrategy, left)
			}
		}
	})
}

func (d *drainedCluster) anyEligible() bool {
	for n := range d.c.Nodes() {
		if n.Ready() {
			return true
		}
	}
	return false
}
