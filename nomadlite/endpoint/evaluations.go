package endpoint

import (
	"iter"
	"net/http"
	"slices"

	"github.com/hashicorp/go-bexpr"
	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func evaluationRoutes(b *Backend) []route.Route {
	return []route.Route{
		read("/v1/evaluations", b.handler(b.listEvaluations)),
		read("/v1/evaluations/count", b.handler(b.countEvaluations)),
		remove("/v1/evaluations", b.handler(b.deleteEvaluations)),
		read("/v1/evaluation/{eval_id}", b.handler(b.readEvaluation)),
		read("/v1/evaluation/{eval_id}/allocations", b.handler(b.listEvaluationAllocations)),
	}
}

func evalAge(e *structs.Evaluation) age { return age{e.CreateIndex, e.ID} }

// evaluationList shows evaluations, in the order of their age.
func evaluationList(rows iter.Seq[*structs.Evaluation], keep func(*structs.Evaluation) bool) list[*structs.Evaluation] {
	return list[*structs.Evaluation]{
		rows:  rows,
		token: func(e *structs.Evaluation) string { return evalAge(e).token() },
		keep:  keep,
		show:  func(e *structs.Evaluation) any { return e },
	}
}

// evaluationsAsked gives the rows which a list or a count is about.
func (b *Backend) evaluationsAsked(w http.ResponseWriter, r *route.Request, q *query) (list[*structs.Evaluation], error) {
	if err := q.checkIDPrefix(); err != nil {
		return list[*structs.Evaluation]{}, err
	}
	var rows iter.Seq[*structs.Evaluation]
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		if q.prefix != "" {
			rows = snap.EvalsByPrefix(ws, q.namespace, q.prefix)
		} else {
			rows = snap.EvalsByCreate(ws, q.namespace, q.reverse)
		}
		return snap.TableIndex(state.TableEvals)
	})
	job, status := q.values.Get("job"), q.values.Get("status")
	keep := func(e *structs.Evaluation) bool {
		return (job == "" || e.JobID == job) && (status == "" || e.Status == status)
	}
	if q.prefix != "" {
		l := evaluationList(rows, keep)
		l.token = func(e *structs.Evaluation) string { return e.ID }
		return l, err
	}
	l := evaluationList(rows, keep)
	l.sorted = true
	return l, err
}

func (b *Backend) listEvaluations(w http.ResponseWriter, r *route.Request, q *query) error {
	l, err := b.evaluationsAsked(w, r, q)
	if err != nil {
		return err
	}
	return answerList(w, q, l)
}

func (b *Backend) countEvaluations(w http.ResponseWriter, r *route.Request, q *query) error {
	l, err := b.evaluationsAsked(w, r, q)
	if err != nil {
		return err
	}
	rows, err := l.selected(q)
	if err != nil {
		return err
	}
	var out structs.EvalCountResponse
	for _, err := range rows {
		if err != nil {
			return err
		}
		out.Count++
	}
	return answer(w, q, out)
}

func (b *Backend) readEvaluation(w http.ResponseWriter, r *route.Request, q *query) error {
	related, err := q.flag("related")
	if err != nil {
		return err
	}
	var eval *structs.Evaluation
	var at *state.Snapshot
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		eval, at = snap.Eval(ws, r.Param("eval_id")), snap
		if eval == nil {
			return snap.TableIndex(state.TableEvals)
		}
		return eval.ModifyIndex
	})
	if err != nil {
		return err
	}
	if eval == nil {
		return notFound("eval")
	}
	if related {
		eval = eval.Copy()
		eval.RelatedEvals = []*structs.EvaluationStub{}
		for _, other := range at.RelatedEvals(nil, eval.ID) {
			eval.RelatedEvals = append(eval.RelatedEvals, other.Stub())
		}
	}
	return answer(w, q, eval)
}

func (b *Backend) listEvaluationAllocations(w http.ResponseWriter, r *route.Request, q *query) error {
	var allocs []*structs.Allocation
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		allocs = snap.AllocsByEval(ws, r.Param("eval_id"))
		return snap.TableIndex(state.TableAllocs)
	})
	if err != nil {
		return err
	}
	return answerList(w, q, allocationList(slices.Values(allocs), true, nil))
}

// deleteEvaluations removes evaluations by id or by filter, in one raft entry. That is a tool for a cluster in trouble:
// the broker must be paused, so that nothing works on what goes away.
func (b *Backend) deleteEvaluations(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.EvalDeleteRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	if (len(req.EvalIDs) == 0) == (req.Filter == "") {
		return structs.Errorf(structs.CodeInvalid, "either EvalIDs or Filter must be given, and not both")
	}
	snap := b.Store.Snapshot()
	if cfg := snap.SchedulerConfig(nil); cfg == nil || !cfg.PauseEvalBroker {
		return structs.Errorf(structs.CodeInvalid, "eval broker is enabled; eval broker must be paused to delete evals")
	}
	ids := req.EvalIDs
	if req.Filter != "" {
		var err error
		if ids, err = evalsByFilter(snap, q.namespace, req.Filter); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := deletable(snap, id); err != nil {
			return err
		}
	}
	index := snap.Index()
	if len(ids) > 0 {
		var err error
		if _, index, err = b.apply(r.Context(), fsm.KindEvalDelete, &fsm.EvalDelete{IDs: ids}); err != nil {
			return err
		}
	}
	return answerWrite(w, q, index, structs.EvalDeleteResponse{Count: len(ids)})
}

func evalsByFilter(snap *state.Snapshot, namespace, filter string) ([]string, error) {
	match, err := bexpr.CreateEvaluator(filter)
	if err != nil {
		return nil, filterError(err)
	}
	var ids []string
	for eval := range snap.Evals(nil, namespace) {
		ok, err := match.Evaluate(eval)
		if err != nil {
			return nil, filterError(err)
		}
		if ok {
			ids = append(ids, eval.ID)
		}
	}
	return ids, nil
}

// deletable refuses an evaluation whose allocations still run: they would lose the reason why they exist.
func deletable(snap *state.Snapshot, id string) error {
	if snap.Eval(nil, id) == nil {
		return notFound("eval")
	}
	for _, alloc := range snap.AllocsByEval(nil, id) {
		if !alloc.TerminalStatus() {
			return structs.Errorf(structs.CodeInvalid, "evaluation %s cannot be deleted: its allocation %s is %s",
				id, alloc.ID, alloc.ClientStatus)
		}
	}
	return nil
}
