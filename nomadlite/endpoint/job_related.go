package endpoint

import (
	"net/http"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func jobRelatedRoutes(b *Backend) []route.Route {
	return []route.Route{
		read("/v1/job/{job_id}/allocations", b.handler(b.listJobAllocations)),
		read("/v1/job/{job_id}/actions", b.handler(b.listJobActions)),
		read("/v1/job/{job_id}/evaluations", b.handler(b.listJobEvaluations)),
		read("/v1/job/{job_id}/deployments", b.handler(b.listJobDeployments)),
		read("/v1/job/{job_id}/deployment", b.handler(b.readJobDeployment)),
	}
}

func (b *Backend) listJobAllocations(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	all, err := q.flag("all")
	if err != nil {
		return err
	}
	var job *structs.Job
	var allocs []*structs.Allocation
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		job = snap.Job(nil, ns, r.Param("job_id"))
		allocs = snap.AllocsByJob(ws, ns, r.Param("job_id"))
		return snap.TableIndex(state.TableAllocs)
	})
	if err != nil {
		return err
	}
	return answerList(w, q, allocationList(slices.Values(allocs), true, func(a *structs.Allocation) bool {
		return all || job == nil || a.Job == nil || a.Job.CreateIndex == job.CreateIndex
	}))
}

func (b *Backend) listJobEvaluations(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	var evals []*structs.Evaluation
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		evals = snap.EvalsByJob(ws, ns, r.Param("job_id"))
		return snap.TableIndex(state.TableEvals)
	})
	if err != nil {
		return err
	}
	return answerList(w, q, evaluationList(byAge(slices.Values(evals), evalAge), nil))
}

func (b *Backend) listJobDeployments(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	all, err := q.flag("all")
	if err != nil {
		return err
	}
	var job *structs.Job
	var deployments []*structs.Deployment
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		job = snap.Job(nil, ns, r.Param("job_id"))
		deployments = snap.DeploymentsByJob(ws, ns, r.Param("job_id"))
		return snap.TableIndex(state.TableDeployments)
	})
	if err != nil {
		return err
	}
	return answerList(w, q, deploymentList(byAge(slices.Values(deployments), deploymentAge),
		func(d *structs.Deployment) bool { return all || job == nil || d.JobCreateIndex == job.CreateIndex }))
}

func (b *Backend) readJobDeployment(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	var deployment *structs.Deployment
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		deployment = snap.LatestDeployment(ws, ns, r.Param("job_id"))
		if deployment == nil {
			return snap.TableIndex(state.TableDeployments)
		}
		return deployment.ModifyIndex
	})
	if err != nil {
		return err
	}
	return answer(w, q, deployment) // null when there is none
}
