package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/structs"
)

// name is what a job is found by.
type name struct{ namespace, id string }

func nameOf(j *structs.Job) name { return name{structs.Val(j.Namespace), structs.Val(j.ID)} }

// cluster is the state. Stored objects are never written to, writes replace them.
type cluster struct {
	now    time.Time
	seed   uint64
	config *structs.SchedulerConfiguration
	pools  map[string]*structs.NodePool

	index       uint64
	ids         uint64
	jobs        map[name]*structs.Job
	nodes       map[string]*structs.Node
	nodeOrder   []*structs.Node // by id, once ordered has been called
	unordered   bool
	allocs      map[string]*structs.Allocation
	allocOrder  []string
	byJob       map[name][]string
	byNode      map[string][]string
	usage       map[string]*structs.NodeUsage
	evals       map[string]*structs.Evaluation
	deployments map[name][]*structs.Deployment
	// changed are the allocations which the nodes have not looked at since their last change.
	changed []string
}

var (
	_ scheduler.State      = (*cluster)(nil)
	_ scheduler.UsageState = (*cluster)(nil)
	_ scheduler.EvalState  = (*cluster)(nil)
	_ scheduler.PoolState  = (*cluster)(nil)
)

func newCluster(seed uint64, now time.Time) *cluster {
	return &cluster{
		now: now, seed: seed, index: 1, pools: map[string]*structs.NodePool{},
		config: &structs.SchedulerConfiguration{
			SchedulerAlgorithm: "binpack", PreemptionConfig: structs.PreemptionConfig{SystemSchedulerEnabled: true},
		},
		jobs: map[name]*structs.Job{}, nodes: map[string]*structs.Node{}, allocs: map[string]*structs.Allocation{},
		byJob: map[name][]string{}, byNode: map[string][]string{}, usage: map[string]*structs.NodeUsage{},
		evals: map[string]*structs.Evaluation{}, deployments: map[name][]*structs.Deployment{},
	}
}

// newID gives ids that follow from the seed.
func (c *cluster) newID() string {
	c.ids++
	var in [16]byte
	binary.BigEndian.PutUint64(in[:8], c.seed)
	binary.BigEndian.PutUint64(in[8:], c.ids)
	sum := sha256.Sum256(in[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func (c *cluster) next() uint64 {
	c.index++
	return c.index
}

// The reads of the schedulers.

func (c *cluster) Index() uint64 { return c.index }

func (c *cluster) Job(namespace, id string) *structs.Job { return c.jobs[name{namespace, id}] }

func (c *cluster) AllocsByJob(namespace, id string) []*structs.Allocation {
	return c.pick(c.byJob[name{namespace, id}])
}

func (c *cluster) AllocsByNode(id string) []*structs.Allocation { return c.pick(c.byNode[id]) }

func (c *cluster) pick(ids []string) []*structs.Allocation {
	out := make([]*structs.Allocation, len(ids))
	for i, id := range ids {
		out[i] = c.allocs[id]
	}
	return out
}

func (c *cluster) Node(id string) *structs.Node { return c.nodes[id] }

func (c *cluster) Nodes() iter.Seq[*structs.Node] { return slices.Values(c.ordered()) }

// ordered gives the nodes by id. They are put in order when that is needed, and not one by one.
func (c *cluster) ordered() []*structs.Node {
	if c.unordered {
		slices.SortFunc(c.nodeOrder, byID)
		c.unordered = false
	}
	return c.nodeOrder
}

func byID(a, b *structs.Node) int { return strings.Compare(a.ID, b.ID) }

func (c *cluster) NodeUsage(id string) *structs.NodeUsage { return c.usage[id] }

func (c *cluster) Eval(id string) *structs.Evaluation { return c.evals[id] }

func (c *cluster) NodePool(id string) *structs.NodePool { return c.pools[id] }

func (c *cluster) SchedulerConfig() *structs.SchedulerConfiguration { return c.config }

func (c *cluster) LatestDeployment(namespace, jobID string) *structs.Deployment {
	if all := c.deployments[name{namespace, jobID}]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// sortedJobs gives all jobs by namespace and id.
func (c *cluster) sortedJobs() []*structs.Job {
	return slices.SortedFunc(maps.Values(c.jobs), func(a, b *structs.Job) int {
		x, y := nameOf(a), nameOf(b)
		if n := strings.Compare(x.namespace, y.namespace); n != 0 {
			return n
		}
		return strings.Compare(x.id, y.id)
	})
}

// The writes.

func (c *cluster) putNode(n *structs.Node) {
	n.ModifyIndex = c.next()
	if c.nodes[n.ID] != nil {
		i, _ := slices.BinarySearchFunc(c.ordered(), n, byID)
		c.nodeOrder[i] = n
	} else {
		if n.CreateIndex == 0 {
			n.CreateIndex = n.ModifyIndex
		}
		c.nodeOrder, c.unordered = append(c.nodeOrder, n), true
	}
	c.nodes[n.ID] = n
}

// putJob stores a canonical job; one that differs from what was there gets a new version.
func (c *cluster) putJob(j *structs.Job) {
	index := c.next()
	old := c.jobs[nameOf(j)]
	j.CreateIndex, j.Version, j.JobModifyIndex, j.ModifyIndex = index, 0, index, index
	if old != nil {
		j.CreateIndex, j.Version, j.JobModifyIndex = old.CreateIndex, old.Version, old.JobModifyIndex
		if !j.SpecEqual(old) {
			j.Version, j.JobModifyIndex = old.Version+1, index
		}
	}
	c.jobs[nameOf(j)] = j
}

func (c *cluster) putEval(e *structs.Evaluation) {
	e.ModifyIndex = c.next()
	if e.CreateIndex == 0 {
		e.CreateIndex = e.ModifyIndex
	}
	c.evals[e.ID] = e
}

// putAlloc stores an allocation; its public status follows from the facts.
func (c *cluster) putAlloc(a *structs.Allocation) {
	index := c.next()
	a.ModifyIndex = index
	a.ClientStatus = a.DeriveClientStatus()
	old := c.allocs[a.ID]
	if old == nil {
		if a.CreateIndex == 0 {
			a.CreateIndex = index
		}
		job := name{a.Namespace, a.JobID}
		c.allocOrder = append(c.allocOrder, a.ID)
		c.byJob[job] = append(c.byJob[job], a.ID)
		c.byNode[a.NodeID] = append(c.byNode[a.NodeID], a.ID)
	}
	if (old != nil && old.HoldsResources()) || a.HoldsResources() {
		u := c.usage[a.NodeID].Copy() // a scheduler that looked at it keeps what it saw
		if old != nil && old.HoldsResources() {
			u.Remove(old)
		}
		if a.HoldsResources() {
			u.Add(a)
		}
		c.usage[a.NodeID] = u
	}
	c.allocs[a.ID] = a
	c.changed = append(c.changed, a.ID)
}

func (c *cluster) editAlloc(id string, edit func(*structs.Allocation)) {
	if old := c.allocs[id]; old != nil {
		a := *old
		edit(&a)
		c.putAlloc(&a)
	}
}

// editDeployment changes a copy of a job's deployment.
func (c *cluster) editDeployment(job name, id string, edit func(*structs.Deployment)) {
	for i, d := range c.deployments[job] {
		if d.ID == id {
			d = d.Copy()
			edit(d)
			d.ModifyIndex = c.next()
			c.deployments[job][i] = d
		}
	}
}
