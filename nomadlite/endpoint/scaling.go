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

// Scaling policies are no table of their own: they are the scaling blocks of the jobs which are not stopped.
func scalingRoutes(b *Backend) []route.Route {
	return []route.Route{
		read("/v1/scaling/policies", b.handler(b.listScalingPolicies)),
		read("/v1/scaling/policy/{id}", b.handler(b.readScalingPolicy)),
	}
}

func policyAge(p *structs.ScalingPolicy) age { return age{p.CreateIndex, p.ID} }

// listScalingPolicies lists the policies of a namespace, those of one job or of one type when that is asked for. Its
// index is that of the last change of any job, since a policy goes with its job.
func (b *Backend) listScalingPolicies(w http.ResponseWriter, r *route.Request, q *query) error {
	if err := q.checkIDPrefix(); err != nil {
		return err
	}
	job, kind := q.values.Get("job"), q.values.Get("type")
	var rows iter.Seq[*structs.ScalingPolicy]
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		var jobs iter.Seq[*structs.Job]
		if job != "" && q.namespace != structs.AllNamespaces {
			jobs = slices.Values([]*structs.Job{snap.Job(ws, q.namespace, job)})
		} else {
			jobs = snap.Jobs(ws, q.namespace)
		}
		rows = policiesOf(jobs)
		return snap.TableIndex(state.TableJobs)
	})
	if err != nil {
		return err
	}
	return answerList(w, q, list[*structs.ScalingPolicy]{
		rows:  byAge(rows, policyAge),
		token: func(p *structs.ScalingPolicy) string { return policyAge(p).token() },
		keep: func(p *structs.ScalingPolicy) bool {
			return (job == "" || p.Target["Job"] == job) && (kind == "" || p.Type == kind) && hasPrefix(p.ID, q.prefix)
		},
		show: func(p *structs.ScalingPolicy) any { return p.Stub() },
	})
}

// readScalingPolicy finds a policy by its id alone, in whichever namespace it is.
func (b *Backend) readScalingPolicy(w http.ResponseWriter, r *route.Request, q *query) error {
	var policy *structs.ScalingPolicy
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		policy = nil
		for p := range policiesOf(snap.Jobs(ws, structs.AllNamespaces)) {
			if p.ID == r.Param("id") {
				policy = p
				return p.ModifyIndex
			}
		}
		return snap.TableIndex(state.TableJobs)
	})
	if err != nil {
		return err
	}
	if policy == nil {
		return notFound("policy")
	}
	return answer(w, q, policy)
}

func policiesOf(jobs iter.Seq[*structs.Job]) iter.Seq[*structs.ScalingPolicy] {
	return func(yield func(*structs.ScalingPolicy) bool) {
		for job := range jobs {
			for _, p := range job.ScalingPolicies() {
				if !yield(p) {
					return
				}
			}
		}
	}
}
