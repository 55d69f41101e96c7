package endpoint

import (
	"iter"
	"net/http"
	"regexp"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func nodePoolRoutes(b *Backend) []route.Route {
	return []route.Route{
		read("/v1/node/pools", b.handler(b.listNodePools)),
		write("/v1/node/pools", b.handler(b.upsertNodePool)),
		read("/v1/node/pool/{pool}", b.handler(b.readNodePool)),
		write("/v1/node/pool/{pool}", b.handler(b.upsertNodePool)),
		remove("/v1/node/pool/{pool}", b.handler(b.deleteNodePool)),
		read("/v1/node/pool/{pool}/nodes", b.handler(b.listNodePoolNodes)),
		read("/v1/node/pool/{pool}/jobs", b.handler(b.listNodePoolJobs)),
	}
}

var nodePoolName = regexp.MustCompile(`^[a-zA-Z0-9-_]{1,128}$`)

func (b *Backend) listNodePools(w http.ResponseWriter, r *route.Request, q *query) error {
	var rows iter.Seq[*structs.NodePool]
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		rows = snap.NodePoolsByPrefix(ws, q.prefix)
		return max(1, snap.TableIndex(state.TableNodePools)) // there always are some
	})
	if err != nil {
		return err
	}
	return answerList(w, q, list[*structs.NodePool]{
		rows:  rows,
		token: func(p *structs.NodePool) string { return p.Name },
		show:  func(p *structs.NodePool) any { return p },
	})
}

// pool reads the node pool which the path names.
func (b *Backend) pool(w http.ResponseWriter, r *route.Request, q *query) (*structs.NodePool, error) {
	name := r.Param("pool")
	var pool *structs.NodePool
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		pool = snap.NodePool(ws, name)
		if pool == nil {
			return snap.TableIndex(state.TableNodePools)
		}
		return pool.ModifyIndex
	})
	if err == nil && pool == nil {
		err = notFound("node pool")
	}
	return pool, err
}

func (b *Backend) readNodePool(w http.ResponseWriter, r *route.Request, q *query) error {
	pool, err := b.pool(w, r, q)
	if err != nil {
		return err
	}
	return answer(w, q, pool)
}

func (b *Backend) upsertNodePool(w http.ResponseWriter, r *route.Request, q *query) error {
	var pool structs.NodePool
	if err := decode(r, &pool); err != nil {
		return err
	}
	if name := r.Param("pool"); name != "" {
		if pool.Name != "" && pool.Name != name {
			return structs.Errorf(structs.CodeInvalid, "name %q does not match the path's %q", pool.Name, name)
		}
		pool.Name = name
	}
	switch {
	case pool.Name == "":
		return structs.Errorf(structs.CodeInvalid, "missing node pool name")
	case pool.Name == structs.NodePoolDefault || pool.Name == structs.NodePoolAll:
		return structs.Errorf(structs.CodeInvalid, "modifying node pool %q is not allowed", pool.Name)
	case !nodePoolName.MatchString(pool.Name):
		return structs.Errorf(structs.CodeInvalid, "invalid name %q, must match regex %s", pool.Name, nodePoolName)
	case len(pool.Description) > 256:
		return structs.Errorf(structs.CodeInvalid, "description longer than 256 characters")
	}
	if cfg := pool.SchedulerConfiguration; cfg != nil && cfg.SchedulerAlgorithm != "" {
		if err := checkAlgorithm(cfg.SchedulerAlgorithm); err != nil {
			return err
		}
	}
	_, index, err := b.apply(r.Context(), fsm.KindNodePoolUpsert, &fsm.NodePoolUpsert{Pools: []*structs.NodePool{&pool}})
	if err != nil {
		return err
	}
	return answerWrite(w, q, index, nil)
}

func (b *Backend) deleteNodePool(w http.ResponseWriter, r *route.Request, q *query) error {
	name := r.Param("pool")
	snap := b.Store.Snapshot()
	if snap.NodePool(nil, name) == nil {
		return structs.Errorf(structs.CodeNotFound, "node pool %q not found", name)
	}
	if name == structs.NodePoolDefault || name == structs.NodePoolAll {
		return structs.Errorf(structs.CodeInvalid, "node pool %q can not be deleted", name)
	}
	_, index, err := b.apply(r.Context(), fsm.KindNodePoolDelete, &fsm.NodePoolDelete{Names: []string{name}})
	if err != nil {
		return err
	}
	return answerWrite(w, q, index, nil)
}

func (b *Backend) listNodePoolNodes(w http.ResponseWriter, r *route.Request, q *query) error {
	pool, err := b.pool(w, r, q)
	if err != nil {
		return err
	}
	return b.answerNodes(w, r, q, func(n *structs.Node) bool {
		return pool.Name == structs.NodePoolAll || n.NodePool == pool.Name
	})
}

func (b *Backend) listNodePoolJobs(w http.ResponseWriter, r *route.Request, q *query) error {
	pool, err := b.pool(w, r, q)
	if err != nil {
		return err
	}
	return b.answerJobs(w, r, q, func(j *structs.Job) bool { return structs.Val(j.NodePool) == pool.Name })
}
