package gc

import (
	"iter"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

// State is what garbage is looked for in.
type State interface {
	Job(ws memdb.WatchSet, namespace, id string) *structs.Job
	Jobs(ws memdb.WatchSet, namespace string) iter.Seq[*structs.Job]
	Node(ws memdb.WatchSet, id string) *structs.Node
	Nodes(ws memdb.WatchSet) iter.Seq[*structs.Node]
	Evals(ws memdb.WatchSet, namespace string) iter.Seq[*structs.Evaluation]
	Allocs
	Deployments
}

// Allocs are the reads of allocations.
type Allocs interface {
	Allocs(ws memdb.WatchSet, namespace string) iter.Seq[*structs.Allocation]
	AllocsByJob(ws memdb.WatchSet, namespace, id string) []*structs.Allocation
	AllocsByNode(ws memdb.WatchSet, nodeID string) []*structs.Allocation
	AllocsByEval(ws memdb.WatchSet, evalID string) []*structs.Allocation
	AllocsByDeployment(ws memdb.WatchSet, id string) []*structs.Allocation
	EvalsByJob(ws memdb.WatchSet, namespace, id string) []*structs.Evaluation
}

// Deployments are the reads of deployments.
type Deployments interface {
	Deployments(ws memdb.WatchSet, namespace string) iter.Seq[*structs.Deployment]
	DeploymentsByJob(ws memdb.WatchSet, namespace, id string) []*structs.Deployment
}

// Thresholds say how long what has ended is kept.
type Thresholds struct {
	Eval       time.Duration // default 1 h
	BatchEval  time.Duration // of batch jobs; default 24 h
	Job        time.Duration // default 4 h
	Node       time.Duration // default 24 h
	Deployment time.Duration // default 1 h
}

// DefaultThresholds are the public defaults.
func DefaultThresholds() Thresholds {
	return Thresholds{Eval: time.Hour, BatchEval: 24 * time.Hour, Job: 4 * time.Hour, Node: 24 * time.Hour,
		Deployment: time.Hour}
}

// Garbage is what may be deleted, as units that must go in one entry each.
type Garbage struct {
	Evals       []Unit // an evaluation and its allocations
	Jobs        []Unit // a job and all that is its own
	Nodes       []Unit // a node and its orphans
	Deployments []Unit
}

// Unit is rows that go together.
type Unit struct {
	Evals, Allocs, Deployments, Nodes []string
	Jobs                              []structs.NamespacedID
}

// Find looks for garbage.
func Find(state State, limits Thresholds, now time.Time) Garbage {
	f := finder{state: state, limits: limits, now: now, jobs: map[structs.NamespacedID]bool{},
		newest: map[structs.NamespacedID]map[string]uint64{}}
	var g Garbage
	for job := range state.Jobs(nil, structs.AllNamespaces) {
		if unit, ok := f.job(job); ok {
			f.jobs[unit.Jobs[0]] = true
			g.Jobs = append(g.Jobs, unit)
		}
	}
	for eval := range state.Evals(nil, structs.AllNamespaces) {
		if unit, ok := f.eval(eval); ok {
			g.Evals = append(g.Evals, unit)
		}
	}
	for d := range state.Deployments(nil, structs.AllNamespaces) {
		if f.deployment(d) {
			g.Deployments = append(g.Deployments, Unit{Deployments: []string{d.ID}})
		}
	}
	for node := range state.Nodes(nil) {
		if unit, ok := f.node(node); ok {
			g.Nodes = append(g.Nodes, unit)
		}
	}
	return g
}

type finder struct {
	state  State
	limits Thresholds
	now    time.Time
	jobs   map[structs.NamespacedID]bool // to be deleted
	// newest are the create indexes of the newest allocation of each name, canaries aside, of the jobs that were asked about.
	newest map[structs.NamespacedID]map[string]uint64
}

// old says whether unix nanoseconds lie further back than limit.
func (f *finder) old(nanos int64, limit time.Duration) bool {
	return !time.Unix(0, nanos).Add(limit).After(f.now)
}

// job gives a dead job with all that is its own. A periodic or parameterized parent is dead only once it was stopped.
func (f *finder) job(job *structs.Job) (Unit, bool) {
	if job.Status != structs.JobStatusDead || (!job.Stop && !job.HasOwnAllocations()) {
		return Unit{}, false
	}
	id := structs.NamespacedID{Namespace: structs.Val(job.Namespace), ID: structs.Val(job.ID)}
	unit := Unit{Jobs: []structs.NamespacedID{id}}
	newest := job.SubmitTime
	for _, eval := range f.state.EvalsByJob(nil, id.Namespace, id.ID) {
		if !eval.TerminalStatus() {
			return Unit{}, false
		}
		newest = max(newest, eval.ModifyTime)
		unit.Evals = append(unit.Evals, eval.ID)
	}
	for _, a := range f.state.AllocsByJob(nil, id.Namespace, id.ID) {
		if !f.ended(a) {
			return Unit{}, false
		}
		newest = max(newest, a.ModifyTime)
		unit.Allocs = append(unit.Allocs, a.ID)
	}
	for _, d := range f.state.DeploymentsByJob(nil, id.Namespace, id.ID) {
		if d.Active() && !job.Stop {
			return Unit{}, false
		}
		unit.Deployments = append(unit.Deployments, d.ID)
	}
	return unit, f.old(newest, f.limits.Job)
}

// eval gives a finished evaluation with its allocations, when none of them is needed.
func (f *finder) eval(eval *structs.Evaluation) (Unit, bool) {
	id := structs.NamespacedID{Namespace: eval.Namespace, ID: eval.JobID}
	if !eval.TerminalStatus() || f.jobs[id] {
		return Unit{}, false
	}
	limit := f.limits.Eval
	job := f.state.Job(nil, eval.Namespace, eval.JobID)
	if eval.Type == structs.JobTypeBatch {
		limit = f.limits.BatchEval
	}
	if !f.old(eval.ModifyTime, limit) {
		return Unit{}, false
	}
	unit := Unit{Evals: []string{eval.ID}}
	for _, a := range f.state.AllocsByEval(nil, eval.ID) {
		if !f.ended(a) || !f.old(a.ModifyTime, limit) || f.needed(job, a) {
			return Unit{}, false
		}
		unit.Allocs = append(unit.Allocs, a.ID)
	}
	return unit, true
}

// needed says whether the scheduler still decides by an allocation that has ended.
func (f *finder) needed(job *structs.Job, a *structs.Allocation) bool {
	if job.Stopped() || job.CreateIndex > a.CreateIndex {
		return false // the job, or this life of it, is over
	}
	switch structs.Val(job.Type) {
	case structs.JobTypeBatch, structs.JobTypeSysBatch:
		// Its end is what says that the work was done, for as long as the job is of the same version.
		return a.JobVersion == job.Version
	}
	if a.Taken() && !a.Canary() {
		return f.lastOfName(a) // what its group is to get again when there is room
	}
	// A failed one that nothing replaced yet may still be rescheduled, and carries its history on.
	return a.DesiredStatus == structs.AllocDesiredStatusRun && a.NextAllocation == "" &&
		a.ClientStatus == structs.AllocClientStatusFailed
}

// lastOfName says that no allocation of its job took its name after it, canaries aside.
func (f *finder) lastOfName(a *structs.Allocation) bool {
	id := structs.NamespacedID{Namespace: a.Namespace, ID: a.JobID}
	newest := f.newest[id]
	if newest == nil {
		newest = map[string]uint64{}
		for _, other := range f.state.AllocsByJob(nil, id.Namespace, id.ID) {
			if !other.Canary() {
				newest[other.Name] = max(newest[other.Name], other.CreateIndex)
			}
		}
		f.newest[id] = newest
	}
	return a.CreateIndex >= newest[a.Name]
}

// ended says that an allocation can be deleted: its node reported its end, or nobody can report on it any more.
func (f *finder) ended(a *structs.Allocation) bool {
	if a.ObservedTerminal() {
		return true
	}
	if a.Condition.Status != structs.ConditionLost {
		return false
	}
	node := f.state.Node(nil, a.NodeID)
	return node == nil || (node.Status == structs.NodeStatusDown && f.old(node.StatusUpdatedAt*int64(time.Second), f.limits.Node))
}

// deployment says that it has ended and nothing live refers to it.
func (f *finder) deployment(d *structs.Deployment) bool {
	if d.Active() || !f.old(d.ModifyTime, f.limits.Deployment) || f.jobs[structs.NamespacedID{Namespace: d.Namespace, ID: d.JobID}] {
		return false
	}
	for _, a := range f.state.AllocsByDeployment(nil, d.ID) {
		if !a.TerminalStatus() {
			return false
		}
	}
	// The newest deployment of a live job tells which version is stable.
	newest := true
	for _, other := range f.state.DeploymentsByJob(nil, d.Namespace, d.JobID) {
		newest = newest && other.CreateIndex <= d.CreateIndex
	}
	return !newest || f.state.Job(nil, d.Namespace, d.JobID).Stopped()
}

// node gives a node that has been down for long, with the orphans that only it could report on.
func (f *finder) node(node *structs.Node) (Unit, bool) {
	if node.Status != structs.NodeStatusDown || !f.old(node.StatusUpdatedAt*int64(time.Second), f.limits.Node) {
		return Unit{}, false
	}
	unit := Unit{Nodes: []string{node.ID}}
	for _, a := range f.state.AllocsByNode(nil, node.ID) {
		switch {
		case a.ObservedTerminal():
			// It goes with its evaluation or its job.
		case a.Condition.Status != structs.ConditionLost:
			return Unit{}, false
		case !a.ServerTerminal(), f.needed(f.state.Job(nil, a.Namespace, a.JobID), a):
			return Unit{}, false // its replacement has not been decided yet, or waits for room
		default:
			unit.Allocs = append(unit.Allocs, a.ID)
		}
	}
	return unit, true
}
