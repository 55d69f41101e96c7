package drain

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/internal/scenariotest"
	"github.com/nomadlite/nomadlite/structs"
)

func TestScenarios(t *testing.T) {
	scenariotest.Play(t, func(t *testing.T) func(scenariotest.Command) []string { return newWorld(t).run })
}

// world is the state which the commands of a scenario change, and the core that follows it.
type world struct {
	*testing.T
	core   *Drains
	now    time.Time
	nodes  map[string]*structs.Node
	jobs   map[string]*structs.Job
	allocs map[string]*structs.Allocation
	order  []string // of allocs
}

func newWorld(t *testing.T) *world {
	return &world{T: t, core: NewDrains(), now: time.Unix(1e9, 0).UTC(), nodes: map[string]*structs.Node{},
		jobs: map[string]*structs.Job{}, allocs: map[string]*structs.Allocation{}}
}

func (w *world) Node(id string) *structs.Node  { return w.nodes[id] }
func (w *world) Job(_, id string) *structs.Job { return w.jobs[id] }
func (w *world) AllocsByNode(id string) []*structs.Allocation {
	return w.list(func(a *structs.Allocation) bool { return a.NodeID == id })
}
func (w *world) AllocsByJob(_, id string) []*structs.Allocation {
	return w.list(func(a *structs.Allocation) bool { return a.JobID == id })
}

func (w *world) list(keep func(*structs.Allocation) bool) (out []*structs.Allocation) {
	for _, id := range w.order {
		if keep(w.allocs[id]) {
			out = append(out, w.allocs[id])
		}
	}
	return out
}

func (w *world) run(c scenariotest.Command) []string {
	w.Helper()
	names, a := c.Words, c.Args
	switch c.Name {
	case "job": // ID TYPE count= parallel= stop=
		w.job(names[0], names[1], a)
	case "purge":
		delete(w.jobs, names[0])
	case "alloc": // JOB NODE ID... health= status= stop= migrate= canary=
		for _, id := range names[2:] {
			w.alloc(id, &structs.Allocation{ID: id, Namespace: "default", JobID: names[0], NodeID: names[1], TaskGroup: "g",
				Job: w.jobs[names[0]], DesiredStatus: structs.AllocDesiredStatusRun,
				ClientStatus: structs.AllocClientStatusRunning}, a)
		}
	case "edit":
		for _, id := range names {
			w.alloc(id, w.allocs[id].Copy(), a)
		}
	case "stopped": // what is marked was stopped by a plan
		for _, al := range w.list(func(a *structs.Allocation) bool { return a.DesiredTransition.ShouldMigrate() && !a.TerminalStatus() }) {
			w.alloc(al.ID, al.Copy(), scenariotest.Args{"stop": "yes"})
		}
	case "drain": // NODE deadline= ignore-system= no-shutdown-delay= kill-timeout=
		w.drain(names[0], a)
	case "cancel":
		w.node(&structs.Node{ID: names[0]})
	case "gone":
		w.core.RemoveNode(names[0])
		delete(w.nodes, names[0])
	case "retry":
		w.core.Retry(names[0], w.now.Add(a.Duration(w.T, "in")))
	case "restart": // another leader
		w.core = NewDrains()
		for _, n := range w.nodes {
			w.core.Node(n)
		}
	case "tick":
		w.now = w.now.Add(scenariotest.Duration(w.T, names[0]))
	case "due":
		return w.due(a.Number(w.T, "limit"), a["lost"] != "")
	default:
		w.Fatalf("unknown command %q", c.Line)
	}
	return nil
}

func (w *world) job(id, kind string, a scenariotest.Args) {
	count := a.Number(w.T, "count")
	g := &structs.TaskGroup{Name: structs.Ptr("g"), Count: &count}
	if n := a.Number(w.T, "parallel"); n != 0 {
		g.Migrate = &structs.MigrateStrategy{MaxParallel: &n}
	}
	w.jobs[id] = &structs.Job{ID: &id, Namespace: structs.Ptr("default"), Type: &kind, Stop: a["stop"] != "",
		TaskGroups: []*structs.TaskGroup{g}}
}

func (w *world) alloc(id string, al *structs.Allocation, a scenariotest.Args) {
	if s := a["status"]; s != "" {
		al.ClientStatus = s
	}
	if a["stop"] != "" {
		al.DesiredStatus = structs.AllocDesiredStatusStop
	}
	if a["migrate"] != "" {
		al.DesiredTransition.Migrate = structs.Ptr(true)
	}
	if h := a["health"]; h != "" {
		al.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: structs.Ptr(h == "good"), Canary: a["canary"] != ""}
	}
	if w.allocs[id] == nil {
		w.order = append(w.order, id)
	}
	w.allocs[id] = al
	w.core.Alloc(al)
}

func (w *world) drain(id string, a scenariotest.Args) {
	s := &structs.DrainStrategy{DrainSpec: structs.DrainSpec{IgnoreSystemJobs: a["ignore-system"] != "",
		NoShutdownDelay: a["no-shutdown-delay"] != ""}}
	if text := a["deadline"]; text != "" {
		if s.Deadline = scenariotest.Duration(w.T, text); s.Deadline > 0 {
			s.ForceDeadline = w.now.Add(s.Deadline)
		}
	}
	if text := a["kill-timeout"]; text != "" {
		s.KillTimeout = structs.Ptr(scenariotest.Duration(w.T, text))
	}
	w.node(&structs.Node{ID: id, DrainStrategy: s})
}

func (w *world) node(n *structs.Node) {
	w.nodes[n.ID] = n
	w.core.Node(n)
}

// due carries out what is due, unless it is lost on its way, and asks again whether that changes anything more.
func (w *world) due(limit int, lost bool) []string {
	if limit == 0 {
		limit = 100
	}
	round := w.core.Due(w.now, w, limit)
	var out []string
	for _, id := range slices.Sorted(maps.Keys(round.Marks)) {
		out = append(out, "mark "+id+options(round.Marks[id]))
	}
	for _, c := range round.Jobs {
		out = append(out, fmt.Sprintf("evaluate %s for %s", *c.Job.ID, c.Node.ID))
	}
	for _, n := range round.Over {
		out = append(out, "over: "+n.ID)
	}
	if !lost {
		w.carryOut(round)
	}
	switch next, ok := w.core.Next(); {
	case ok && next.After(w.now):
		out = append(out, fmt.Sprintf("next in %s", next.Sub(w.now)))
	case ok:
		out = append(out, "next at once")
	}
	return out
}

func options(t *structs.DesiredTransition) string {
	out := ""
	if !t.ShouldMigrate() {
		out += " (stops already)"
	}
	if structs.Val(t.MigrateDisablePlacement) {
		out += " for good"
	}
	if structs.Val(t.NoShutdownDelay) {
		out += " no_shutdown_delay"
	}
	if t.KillTimeout != nil {
		out += " kill_timeout=" + t.KillTimeout.String()
	}
	return out
}

func (w *world) carryOut(round *Round) {
	for id, t := range round.Marks {
		al := w.allocs[id].Copy()
		al.DesiredTransition.Merge(t)
		w.allocs[id] = al
	}
	for _, n := range round.Over {
		w.node(&structs.Node{ID: n.ID})
	}
	// What was done is not due again, whoever looks: here a leader that knows nothing but the state.
	fresh := NewDrains()
	for _, n := range w.nodes {
		fresh.Node(n)
	}
	again := fresh.Due(w.now, w, 1000)
	for id := range round.Marks {
		if again.Marks[id] != nil {
			w.Errorf("%s is marked twice", id)
		}
		w.core.Alloc(w.allocs[id])
	}
}
