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

func deploymentRoutes(b *Backend) []route.Route {
	return []route.Route{
		read("/v1/deployments", b.handler(b.listDeployments)),
		read("/v1/deployment/{deployment_id}", b.handler(b.readDeployment)),
		read("/v1/deployment/allocations/{deployment_id}", b.handler(b.listDeploymentAllocations)),
	}
}

func deploymentAge(d *structs.Deployment) age { return age{d.CreateIndex, d.ID} }

// deploymentList shows deployments, in the order of their age.
func deploymentList(rows iter.Seq[*structs.Deployment], keep func(*structs.Deployment) bool) list[*structs.Deployment] {
	return list[*structs.Deployment]{
		rows:  rows,
		token: func(d *structs.Deployment) string { return deploymentAge(d).token() },
		keep:  keep,
		show:  func(d *structs.Deployment) any { return d },
	}
}

func (b *Backend) listDeployments(w http.ResponseWriter, r *route.Request, q *query) error {
	if err := q.checkIDPrefix(); err != nil {
		return err
	}
	var rows iter.Seq[*structs.Deployment]
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		rows = snap.Deployments(ws, q.namespace)
		return snap.TableIndex(state.TableDeployments)
	})
	if err != nil {
		return err
	}
	return answerList(w, q, deploymentList(byAge(rows, deploymentAge), func(d *structs.Deployment) bool {
		return hasPrefix(d.ID, q.prefix)
	}))
}

func (b *Backend) readDeployment(w http.ResponseWriter, r *route.Request, q *query) error {
	var deployment *structs.Deployment
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		deployment = snap.Deployment(ws, r.Param("deployment_id"))
		if deployment == nil {
			return snap.TableIndex(state.TableDeployments)
		}
		return deployment.ModifyIndex
	})
	if err != nil {
		return err
	}
	if deployment == nil {
		return notFound("deployment")
	}
	return answer(w, q, deployment)
}

func (b *Backend) listDeploymentAllocations(w http.ResponseWriter, r *route.Request, q *query) error {
	var allocs []*structs.Allocation
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		allocs = snap.AllocsByDeployment(ws, r.Param("deployment_id"))
		return snap.TableIndex(state.TableAllocs)
	})
	if err != nil {
		return err
	}
	return answerList(w, q, allocationList(slices.Values(allocs), true, nil))
}
