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
}

// NewScope finds the nodes of a job's scope.
func NewScope(nodes iter.Seq[*structs.Node], job *structs.Job) *Scope {
	s := &Scope{Pool: structs.Val(job.NodePool), Available: map[string]int{}}
	if s.Pool == "" {
		s.Pool = structs.NodePoolDefault
	}
	in := datacenterMatcher(job.Datacenters)
	for node := range nodes {
		if !node.Ready() || !InPool(node, s.Pool) {
			continue
		}
		s.InPool++
		if in(node.Datacenter) {
			s.Nodes = append(s.Nodes, node)
			s.Available[node.Datacenter]++
		}
	}
	return s
}

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
