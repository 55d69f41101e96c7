package feasible

import (
	"iter"
	"path"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// Scope is the set of nodes that a job may look at at all.
type Scope struct {
	Pool      string
	Nodes     []*structs.Node // ready, in the pool and in one of the datacenters
	InPool    int             // ready nodes of the pool, in whatever datacenter
	Available map[string]int  // Nodes by datacenter

	fleet *Fleet  // nil when the scope was made by hand
	at    []int32 // places of Nodes in the fleet
}

// NewScope finds the nodes of a job's scope.
func NewScope(nodes iter.Seq[*structs.Node], job *structs.Job) *Scope {
	return NewFleet(nodes).Scope(job)
}

// Scope finds the nodes of a job's scope.
func (f *Fleet) Scope(job *structs.Job) *Scope {
	s := &Scope{Pool: structs.Val(job.NodePool), Available: map[string]int{}, fleet: f}
	if s.Pool == "" {
		s.Pool = structs.NodePoolDefault
	}
	inPool, inDatacenter := make([]bool, len(f.pools)), make([]bool, len(f.datacenters))
	for i, pool := range f.pools {
		inPool[i] = s.Pool == structs.NodePoolAll || s.Pool == pool
	}
	matches := datacenterMatcher(job.Datacenters)
	for i, datacenter := range f.datacenters {
		inDatacenter[i] = matches(datacenter)
	}
	available := make([]int, len(f.datacenters))
	s.Nodes, s.at = make([]*structs.Node, 0, len(f.Sites)), make([]int32, 0, len(f.Sites))
	for i := range f.Sites {
		site := &f.Sites[i]
		if !site.Ready || !inPool[site.pool] {
			continue
		}
		s.InPool++
		if inDatacenter[site.datacenter] {
			s.Nodes, s.at = append(s.Nodes, site.Node), append(s.at, int32(i))
			available[site.datacenter]++
		}
	}
	for i, n := range available {
		if n > 0 {
			s.Available[f.datacenters[i]] = n
		}
	}
	return s
}

// Site gives what is known of the node at a place in Nodes.
func (s *Scope) Site(i int) *Site {
	if s.fleet == nil {
		site := NewSite(s.Nodes[i])
		return &site
	}
	return &s.fleet.Sites[s.at[i]]
}

// Classes is how many classes the nodes are numbered by.
func (s *Scope) Classes() int {
	if s.fleet == nil {
		return 0
	}
	return s.fleet.Classes
}

// At is the place of a node of a fleet in the fleet.
func (s *Site) At() int { return int(s.at) }

// InPool says whether a node belongs to a pool; "all" has every node.
func InPool(node *structs.Node, pool string) bool {
	return pool == structs.NodePoolAll || node.NodePool == pool ||
		(node.NodePool == "" && pool == structs.NodePoolDefault)
}

// Contains says whether the job's scope, readiness aside, holds the node.
func Contains(job *structs.Job, node *structs.Node) bool {
	pool := structs.Val(job.NodePool)
	if pool == "" {
		pool = structs.NodePoolDefault
	}
	return InPool(node, pool) && datacenterMatcher(job.Datacenters)(node.Datacenter)
}

// datacenterMatcher answers for a list of names and globs; an empty list means everywhere. It remembers its answers.
func datacenterMatcher(patterns []string) func(string) bool {
	if len(patterns) == 0 {
		patterns = []string{"*"}
	}
	known := map[string]bool{}
	return func(dc string) bool {
		answer, ok := known[dc]
		if !ok {
			for _, p := range patterns {
				if answer = matchGlob(p, dc); answer {
					break
				}
			}
			known[dc] = answer
		}
		return answer
	}
}

func matchGlob(pattern, name string) bool {
	if pattern == name || pattern == "*" {
		return true
	}
	if !strings.ContainsAny(pattern, "*?[") {
		return false
	}
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}
