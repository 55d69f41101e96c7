package endpoint

import (
	"iter"
	"net/http"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func nodeRoutes(b *Backend) []route.Route {
	return []route.Route{
		read("/v1/nodes", b.handler(b.listNodes)),
		read("/v1/node/{node_id}", b.handler(b.readNode)),
		read("/v1/node/{node_id}/allocations", b.handler(b.listNodeAllocations)),
	}
}

func (b *Backend) listNodes(w http.ResponseWriter, r *route.Request, q *query) error {
	if err := q.checkIDPrefix(); err != nil {
		return err
	}
	return b.answerNodes(w, r, q, func(*structs.Node) bool { return true })
}

// answerNodes lists the nodes that keep accepts.
func (b *Backend) answerNodes(w http.ResponseWriter, r *route.Request, q *query, keep func(*structs.Node) bool) error {
	resources, err := q.flag("resources")
	if err != nil {
		return err
	}
	withOS, err := q.flag("os")
	if err != nil {
		return err
	}
	var rows iter.Seq[*structs.Node]
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		if q.prefix != "" {
			rows = snap.NodesByPrefix(ws, q.prefix)
		} else {
			rows = snap.Nodes(ws)
		}
		return snap.TableIndex(state.TableNodes)
	})
	if err != nil {
		return err
	}
	return answerList(w, q, list[*structs.Node]{
		rows:  rows,
		token: func(n *structs.Node) string { return n.ID },
		keep:  keep,
		show: func(n *structs.Node) any {
			stub := n.Stub()
			stub.NodeResources, stub.ReservedResources, stub.Attributes = nil, nil, nil
			if resources {
				stub.NodeResources, stub.ReservedResources = n.NodeResources, n.ReservedResources
			}
			if withOS {
				stub.Attributes = map[string]string{"os.name": n.Attributes["os.name"]}
			}
			return stub
		},
	})
}

// nodeView is a node as it is answered: the name of its secret is part of the interface, its value never is.
type nodeView struct {
	*structs.Node
	SecretID string
}

func (b *Backend) readNode(w http.ResponseWriter, r *route.Request, q *query) error {
	var node *structs.Node
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		node = snap.Node(ws, r.Param("node_id"))
		if node == nil {
			return snap.TableIndex(state.TableNodes)
		}
		return node.ModifyIndex
	})
	if err != nil {
		return err
	}
	if node == nil {
		return notFound("node")
	}
	return answer(w, q, nodeView{Node: node})
}

// listNodeAllocations gives whole allocations, of all namespaces.
func (b *Backend) listNodeAllocations(w http.ResponseWriter, r *route.Request, q *query) error {
	var allocs []*structs.Allocation
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		allocs = snap.AllocsByNode(ws, r.Param("node_id"))
		return snap.TableIndex(state.TableAllocs)
	})
	if err != nil {
		return err
	}
	namespace := q.values.Get("namespace")
	return answerList(w, q, list[*structs.Allocation]{
		rows:  byAge(slices.Values(allocs), allocAge),
		token: func(a *structs.Allocation) string { return allocAge(a).token() },
		keep: func(a *structs.Allocation) bool {
			return namespace == "" || namespace == structs.AllNamespaces || a.Namespace == namespace
		},
		show: func(a *structs.Allocation) any { return a },
	})
}
