package endpoint

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/structs"
)

func jobExplainRoutes(b *Backend) []route.Route {
	return []route.Route{read("/v1/job/{job_id}/explain", b.handler(b.explainJob))}
}

// explainJob tells why a job is as it is: its evaluations as a tree, and where what is queued could run.
func (b *Backend) explainJob(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	var out *structs.JobExplanation
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		job := snap.Job(ws, ns, r.Param("job_id"))
		if job == nil {
			out = nil
			return snap.TableIndex(state.TableJobs)
		}
		out = explanation(ws, snap, job)
		return max(snap.TableIndex(state.TableJobs), snap.TableIndex(state.TableEvals), snap.TableIndex(state.TableAllocs),
			snap.TableIndex(state.TableDeployments))
	})
	if err != nil {
		return err
	}
	if out == nil {
		return notFound("job")
	}
	return answer(w, q, out)
}

func explanation(ws memdb.WatchSet, snap *state.Snapshot, job *structs.Job) *structs.JobExplanation {
	ns, id := structs.Val(job.Namespace), structs.Val(job.ID)
	evals := snap.EvalsByJob(ws, ns, id)
	out := &structs.JobExplanation{
		Namespace: ns, JobID: id, Version: job.Version, Status: job.Status,
		Evaluations: evalTree(evals, classNames(snap)),
		Deployment:  snap.LatestDeployment(ws, ns, id).Explain(),
	}
	if job.Stopped() || !job.HasOwnAllocations() {
		return out
	}
	running := map[string]int{}
	for _, a := range snap.AllocsByJob(ws, ns, id) {
		if a.ClientStatus == structs.AllocClientStatusRunning && !a.ServerTerminal() {
			running[a.TaskGroup]++
		}
	}
	queued := queuedBy(evals)
	for _, tg := range job.TaskGroups {
		g := scheduler.ExplainGroup(snap.Scheduler(), job, tg)
		g.Running, g.Queued = running[g.Name], queued[g.Name]
		out.Groups = append(out.Groups, g)
	}
	return out
}

// queuedBy gives what the newest evaluation that was decided could not place, by group.
func queuedBy(evals []*structs.Evaluation) map[string]int {
	var newest *structs.Evaluation
	for _, e := range evals {
		decided := e.Status == structs.EvalStatusComplete || e.Status == structs.EvalStatusBlocked || e.Status == structs.EvalStatusFailed
		if decided && (newest == nil || e.ModifyIndex > newest.ModifyIndex) {
			newest = e
		}
	}
	if newest == nil {
		return nil
	}
	return newest.QueuedAllocations
}

// evalTree puts evaluations under those that led to them.
func evalTree(evals []*structs.Evaluation, names map[string]string) []*structs.EvalExplanation {
	nodes := make(map[string]*structs.EvalExplanation, len(evals))
	for _, e := range evals {
		nodes[e.ID] = explainEval(e, names)
	}
	var roots []*structs.EvalExplanation
	for _, e := range evals {
		before := nodes[e.PreviousEval]
		if before == nil || e.PreviousEval == e.ID {
			roots = append(roots, nodes[e.ID])
			continue
		}
		before.Next = append(before.Next, nodes[e.ID])
	}
	older := func(a, b *structs.EvalExplanation) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
	}
	for _, n := range nodes {
		slices.SortFunc(n.Next, older)
	}
	slices.SortFunc(roots, older)
	return roots
}

// failedReasons says in words why an evaluation could not place what it could not, by group; nil when it could.
func failedReasons(e *structs.Evaluation) map[string][]structs.Reason {
	if len(e.FailedTGAllocs) == 0 {
		return nil
	}
	out := make(map[string][]structs.Reason, len(e.FailedTGAllocs))
	for group, m := range e.FailedTGAllocs {
		out[group] = m.Explain()
	}
	return out
}

func explainEval(e *structs.Evaluation, names map[string]string) *structs.EvalExplanation {
	out := &structs.EvalExplanation{ID: e.ID, TriggeredBy: e.TriggeredBy, Status: e.Status, StatusDescription: e.StatusDescription,
		CreateIndex: e.CreateIndex, NodeID: e.NodeID}
	if !e.WaitUntil.IsZero() {
		out.WaitUntil = e.WaitUntil.UnixNano()
	}
	out.Failed = failedReasons(e)
	if e.Status != structs.EvalStatusBlocked || e.EscapedComputedClass {
		return out
	}
	for _, class := range slices.Sorted(maps.Keys(e.ClassEligibility)) {
		if e.ClassEligibility[class] {
			out.WokenBy = append(out.WokenBy, cmp.Or(names[class], "nodes of a class that has none now"))
		}
	}
	return out
}

// classNames describes each class of nodes by an example.
func classNames(snap *state.Snapshot) map[string]string {
	count, first := map[string]int{}, map[string]string{}
	for n := range snap.Nodes(nil) {
		if count[n.ComputedClass]++; count[n.ComputedClass] == 1 {
			first[n.ComputedClass] = cmp.Or(n.Name, n.ID)
		}
	}
	names := make(map[string]string, len(count))
	for class, n := range count {
		if names[class] = "node " + first[class]; n > 1 {
			names[class] = fmt.Sprintf("%d nodes like %s", n, first[class])
		}
	}
	return names
}
