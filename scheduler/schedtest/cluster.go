package schedtest

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/structs"
)

// Cluster is the state of a cluster. Reads give stored objects, which nobody may change; writes replace them.
type Cluster struct {
	Now    time.Time
	Config *structs.SchedulerConfiguration
	Pools  map[string]*structs.NodePool

	index       uint64
	ids         map[string]int
	jobs        map[string]*structs.Job
	nodes       map[string]*structs.Node
	nodeOrder   []*structs.Node
	allocs      map[string]*structs.Allocation
	allocOrder  []string
	byJob       map[string][]string
	byNode      map[string][]string
	usage       map[string]*structs.NodeUsage
	evals       map[string]*structs.Evaluation
	deployments []*structs.Deployment
}

// New makes an empty cluster at a fixed time.
func New() *Cluster {
	return &Cluster{
		Now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), ids: map[string]int{},
		jobs: map[string]*structs.Job{}, nodes: map[string]*structs.Node{}, allocs: map[string]*structs.Allocation{},
		byJob: map[string][]string{}, byNode: map[string][]string{}, usage: map[string]*structs.NodeUsage{},
		evals: map[string]*structs.Evaluation{}, index: 1,
	}
}

// NewID gives ids that are the same in every run: prefix and number.
func (c *Cluster) NewID(prefix string) string {
	c.ids[prefix]++
	return fmt.Sprintf("%s%d", prefix, c.ids[prefix])
}

func (c *Cluster) next() uint64 {
	c.index++
	return c.index
}

// The reads of scheduler.State and of what it may know more.

// Index is the index of the last write.
func (c *Cluster) Index() uint64 { return c.index }

// Job gives a job, nil when there is none.
func (c *Cluster) Job(_, id string) *structs.Job { return c.jobs[id] }

// AllocsByJob gives the allocations of a job.
func (c *Cluster) AllocsByJob(_, id string) []*structs.Allocation { return c.pick(c.byJob[id]) }

// AllocsByNode gives the allocations on a node.
func (c *Cluster) AllocsByNode(id string) []*structs.Allocation { return c.pick(c.byNode[id]) }

func (c *Cluster) pick(ids []string) []*structs.Allocation {
	out := make([]*structs.Allocation, len(ids))
	for i, id := range ids {
		out[i] = c.allocs[id]
	}
	return out
}

// Node gives a node, nil when there is none.
func (c *Cluster) Node(id string) *structs.Node { return c.nodes[id] }

// Nodes gives all nodes in the order of their ids.
func (c *Cluster) Nodes() iter.Seq[*structs.Node] { return slices.Values(c.nodeOrder) }

// NodeUsage gives what the allocations of a node hold.
func (c *Cluster) NodeUsage(id string) *structs.NodeUsage { return c.usage[id] }

// Fleet gives all nodes and their usages, as the servers' state does.
func (c *Cluster) Fleet() (*feasible.Fleet, []*structs.NodeUsage) {
	usages := make([]*structs.NodeUsage, len(c.nodeOrder))
	for i, n := range c.nodeOrder {
		usages[i] = c.usage[n.ID]
	}
	return feasible.NewFleet(c.Nodes()), usages
}

// Eval gives an evaluation, nil when there is none.
func (c *Cluster) Eval(id string) *structs.Evaluation { return c.evals[id] }

// LatestDeployment gives the newest deployment of a job, nil when there is none.
func (c *Cluster) LatestDeployment(_, jobID string) *structs.Deployment {
	for i := len(c.deployments) - 1; i >= 0; i-- {
		if c.deployments[i].JobID == jobID {
			return c.deployments[i]
		}
	}
	return nil
}

// NodePool gives a node pool, nil when there is none.
func (c *Cluster) NodePool(name string) *structs.NodePool { return c.Pools[name] }

// SchedulerConfig gives the configuration of the schedulers.
func (c *Cluster) SchedulerConfig() *structs.SchedulerConfiguration { return c.Config }

// Allocs gives all allocations in the order in which they were made.
func (c *Cluster) Allocs() []*structs.Allocation { return c.pick(c.allocOrder) }

// Evals gives all evaluations in the order of their ids.
func (c *Cluster) Evals() []*structs.Evaluation {
	var out []*structs.Evaluation
	for _, e := range c.evals {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *structs.Evaluation) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID))
	})
	return out
}

// Deployments gives all deployments, the oldest first.
func (c *Cluster) Deployments() []*structs.Deployment { return c.deployments }

// The writes.

// PutNode stores a node.
func (c *Cluster) PutNode(n *structs.Node) {
	n.Canonicalize()
	n.ComputeClass()
	n.ModifyIndex = c.next()
	if c.nodes[n.ID] == nil {
		n.CreateIndex = n.ModifyIndex
		i, _ := slices.BinarySearchFunc(c.nodeOrder, n, byID)
		c.nodeOrder = slices.Insert(c.nodeOrder, i, n)
	} else {
		i, _ := slices.BinarySearchFunc(c.nodeOrder, n, byID)
		c.nodeOrder[i] = n
	}
	c.nodes[n.ID] = n
}

func byID(a, b *structs.Node) int { return strings.Compare(a.ID, b.ID) }

// RemoveNode purges a node.
func (c *Cluster) RemoveNode(id string) {
	c.next()
	if n := c.nodes[id]; n != nil {
		i, _ := slices.BinarySearchFunc(c.nodeOrder, n, byID)
		c.nodeOrder = slices.Delete(c.nodeOrder, i, i+1)
		delete(c.nodes, id)
	}
}

// EditNode changes a copy of a node and stores it.
func (c *Cluster) EditNode(id string, edit func(*structs.Node)) {
	n := c.nodes[id].Copy()
	edit(n)
	c.PutNode(n)
}

// PutJob stores a job; one that differs from what was there gets a new version.
func (c *Cluster) PutJob(j *structs.Job) *structs.Job {
	j.Canonicalize()
	old := c.jobs[structs.Val(j.ID)]
	index := c.next()
	j.CreateIndex, j.Version, j.JobModifyIndex, j.ModifyIndex = index, 0, index, index
	if old != nil {
		j.CreateIndex, j.Version, j.JobModifyIndex = old.CreateIndex, old.Version, old.JobModifyIndex
		if !j.SpecEqual(old) {
			j.Version, j.JobModifyIndex = old.Version+1, index
		}
	}
	c.jobs[structs.Val(j.ID)] = j
	return j
}

// RemoveJob purges a job.
func (c *Cluster) RemoveJob(id string) {
	c.next()
	delete(c.jobs, id)
}

// PutEval stores an evaluation.
func (c *Cluster) PutEval(e *structs.Evaluation) {
	e.ModifyIndex = c.next()
	c.evals[e.ID] = e
}

// PutAlloc stores an allocation as it is; the public status follows from the facts.
func (c *Cluster) PutAlloc(a *structs.Allocation) {
	index := c.next()
	a.ModifyIndex = index
	a.ClientStatus = a.DeriveClientStatus()
	if old := c.allocs[a.ID]; old == nil {
		a.CreateIndex = index
		c.allocOrder = append(c.allocOrder, a.ID)
		c.byJob[a.JobID] = append(c.byJob[a.JobID], a.ID)
		c.byNode[a.NodeID] = append(c.byNode[a.NodeID], a.ID)
	} else if old.HoldsResources() {
		c.usageOf(a.NodeID).Remove(old)
	}
	if a.HoldsResources() {
		c.usageOf(a.NodeID).Add(a)
	}
	c.allocs[a.ID] = a
}

// usageOf gives the usage of a node for a write; a scheduler that looked at it before keeps what it saw.
func (c *Cluster) usageOf(node string) *structs.NodeUsage {
	u := c.usage[node].Copy()
	c.usage[node] = u
	return u
}

// EditAlloc changes a copy of an allocation and stores it.
func (c *Cluster) EditAlloc(id string, edit func(*structs.Allocation)) {
	a := c.allocs[id].Copy()
	edit(a)
	c.PutAlloc(a)
}

// EditDeployment changes a copy of a deployment and stores it.
func (c *Cluster) EditDeployment(id string, edit func(*structs.Deployment)) {
	for i, d := range c.deployments {
		if d.ID == id {
			d = d.Copy()
			edit(d)
			d.ModifyIndex = c.next()
			c.deployments[i] = d
		}
	}
}
