package state

import (
	"iter"
	"slices"
	"strings"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

// Indexes of table evals beside id.
const (
	indexJob     = "job"     // by namespace and job
	indexOpen    = "open"    // the same of those that are not terminal
	indexBlocked = "blocked" // the same of those that are blocked
	indexCreate  = "create"  // by create index
)

func evalJobKey(e *structs.Evaluation) string { return joinKey(e.Namespace, e.JobID, "") }

func evalsTable() *table {
	return plainTable(TableEvals, func(e *structs.Evaluation) string { return e.ID },
		manyIndex(indexJob, func(e *structs.Evaluation) (string, bool) { return evalJobKey(e), true }),
		manyIndex(indexOpen, func(e *structs.Evaluation) (string, bool) { return evalJobKey(e), !e.TerminalStatus() }),
		manyIndex(indexBlocked, func(e *structs.Evaluation) (string, bool) { return evalJobKey(e), e.ShouldBlock() }),
		manyIndex(indexCreate, func(e *structs.Evaluation) (string, bool) { return withNumber("", e.CreateIndex), true }),
	)
}

// Eval gives an evaluation by id, nil when there is none.
func (r Reader) Eval(ws memdb.WatchSet, id string) *structs.Evaluation {
	return get[*structs.Evaluation](r.at(), ws, TableEvals, indexID, id)
}

// Evals gives the evaluations of a namespace (structs.AllNamespaces: of all), by id.
func (r Reader) Evals(ws memdb.WatchSet, namespace string) iter.Seq[*structs.Evaluation] {
	return r.EvalsByPrefix(ws, namespace, "")
}

// EvalsByPrefix gives the evaluations whose id begins with prefix, by id.
func (r Reader) EvalsByPrefix(ws memdb.WatchSet, namespace, prefix string) iter.Seq[*structs.Evaluation] {
	return inNamespace(namespace, scan[*structs.Evaluation](r.at(), ws, TableEvals, indexID, prefix))
}

// EvalsByCreate gives the evaluations in the order in which they were made, or the newest first.
func (r Reader) EvalsByCreate(ws memdb.WatchSet, namespace string, newestFirst bool) iter.Seq[*structs.Evaluation] {
	if newestFirst {
		return inNamespace(namespace, scanReverse[*structs.Evaluation](r.at(), ws, TableEvals, indexCreate, ""))
	}
	return inNamespace(namespace, scan[*structs.Evaluation](r.at(), ws, TableEvals, indexCreate, ""))
}

func inNamespace(namespace string, seq iter.Seq[*structs.Evaluation]) iter.Seq[*structs.Evaluation] {
	if namespace == structs.AllNamespaces {
		return seq
	}
	return filter(seq, func(e *structs.Evaluation) bool { return e.Namespace == namespace })
}

// EvalsByJob gives the evaluations of a job id.
func (r Reader) EvalsByJob(ws memdb.WatchSet, namespace, jobID string) []*structs.Evaluation {
	return slices.Collect(scan[*structs.Evaluation](r.at(), ws, TableEvals, indexJob, joinKey(namespace, jobID, "")))
}

// RelatedEvals gives the evaluations which an evaluation is linked with, both ways, itself left out, the oldest first.
func (r Reader) RelatedEvals(ws memdb.WatchSet, id string) []*structs.Evaluation {
	seen := map[string]bool{id: true, "": true}
	var out []*structs.Evaluation
	todo := []string{id}
	for len(todo) > 0 {
		eval := r.Eval(ws, todo[0])
		todo = todo[1:]
		if eval == nil {
			continue
		}
		if eval.ID != id {
			out = append(out, eval)
		}
		for _, next := range []string{eval.NextEval, eval.PreviousEval, eval.BlockedEval} {
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	slices.SortFunc(out, func(a, b *structs.Evaluation) int {
		if a.CreateIndex != b.CreateIndex {
			return int(int64(a.CreateIndex) - int64(b.CreateIndex))
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// UpsertEval stores an evaluation. Its queued allocations go into the job's summary; once it completes with all
// placed, what was blocked for the same job before it is cancelled, since it has nothing to wait for.
func (tx *Txn) UpsertEval(eval *structs.Evaluation, now int64) {
	row := *eval
	row.CreateIndex, row.ModifyIndex, row.ModifyTime = tx.index, tx.index, now
	if old := lookup[*structs.Evaluation](tx, TableEvals, eval.ID); old != nil {
		row.CreateIndex, row.CreateTime = old.CreateIndex, old.CreateTime
	}
	if row.CreateTime == 0 {
		row.CreateTime = now
	}
	tx.putEval(&row)
	tx.queueFrom(&row)
	if row.JobID == "" {
		return
	}
	if row.Status == structs.EvalStatusComplete && len(row.FailedTGAllocs) == 0 && row.BlockedEval == "" {
		tx.cancelBlocked(&row, now)
	}
	tx.touchJob(row.Namespace, row.JobID)
}

func (tx *Txn) cancelBlocked(by *structs.Evaluation, now int64) {
	for blocked := range scan[*structs.Evaluation](tx.base, nil, TableEvals, indexBlocked, evalJobKey(by)) {
		if c := tx.changes[TableEvals][blocked.ID]; c != nil && c.after != any(blocked) {
			continue // this transaction decides about it otherwise
		}
		if blocked.ID == by.ID || blocked.CreateIndex > max(by.SnapshotIndex, by.CreateIndex) {
			continue
		}
		row := *blocked
		row.Status = structs.EvalStatusCancelled
		row.StatusDescription = "evaluation " + by.ID + " placed everything"
		row.ModifyIndex, row.ModifyTime = tx.index, now
		tx.putEval(&row)
	}
}

func (tx *Txn) putEval(row *structs.Evaluation) {
	if key := evalJobKey(row); tx.changes[TableEvals][row.ID] == nil {
		tx.evalsOf[key] = append(tx.evalsOf[key], row.ID)
	}
	tx.put(TableEvals, row)
}

// DeleteEval deletes an evaluation, whatever its status.
func (tx *Txn) DeleteEval(id string) {
	if old := lookup[*structs.Evaluation](tx, TableEvals, id); old != nil {
		tx.remove(TableEvals, id)
		tx.touchJob(old.Namespace, old.JobID)
	}
}

// ReapEval deletes a terminal evaluation. It says whether it did.
func (tx *Txn) ReapEval(id string) bool {
	old := lookup[*structs.Evaluation](tx, TableEvals, id)
	if old == nil || !old.TerminalStatus() {
		return false
	}
	tx.DeleteEval(id)
	return true
}

func (tx *Txn) hasOpenEval(namespace, jobID string) bool {
	return tx.anyEval(indexOpen, namespace, jobID, func(e *structs.Evaluation) bool { return !e.TerminalStatus() })
}

func (tx *Txn) hasEval(namespace, jobID string) bool {
	return tx.anyEval(indexJob, namespace, jobID, func(*structs.Evaluation) bool { return true })
}

// anyEval looks for an evaluation of the job, as this transaction sees them, for which want holds. index must list at
// least those of the base.
func (tx *Txn) anyEval(index, namespace, jobID string, want func(*structs.Evaluation) bool) bool {
	changes := tx.changes[TableEvals]
	for eval := range scan[*structs.Evaluation](tx.base, nil, TableEvals, index, joinKey(namespace, jobID, "")) {
		if changes[eval.ID] == nil {
			return true
		}
	}
	for _, id := range tx.evalsOf[joinKey(namespace, jobID, "")] {
		if eval, ok := changes[id].after.(*structs.Evaluation); ok && want(eval) {
			return true
		}
	}
	return false
}
