package state

import (
	"maps"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

func summariesTable() *table {
	return plainTable(TableSummaries, func(s *structs.JobSummary) string { return joinKey(s.Namespace, s.JobID) })
}

// JobSummary gives a job's summary, nil when there is no such job.
func (r Reader) JobSummary(ws memdb.WatchSet, namespace, id string) *structs.JobSummary {
	return get[*structs.JobSummary](r.at(), ws, TableSummaries, indexID, joinKey(namespace, id))
}

// summary gives a summary which this transaction may change, nil when the job has none.
func (tx *Txn) summary(namespace, id string) *structs.JobSummary {
	key := joinKey(namespace, id)
	if s, ok := tx.summaries[key]; ok {
		return s
	}
	var own *structs.JobSummary
	if old := lookup[*structs.JobSummary](tx, TableSummaries, key); old != nil {
		own = copySummary(old)
	}
	tx.summaries[key] = own
	return own
}

func copySummary(s *structs.JobSummary) *structs.JobSummary {
	out := *s
	out.Summary = maps.Clone(s.Summary)
	if s.Children != nil {
		out.Children = structs.Ptr(*s.Children)
	}
	return &out
}

// ensureSummary makes sure that the job has a summary which names all its groups.
func (tx *Txn) ensureSummary(job *structs.Job) {
	namespace, id := structs.Val(job.Namespace), structs.Val(job.ID)
	s := tx.summary(namespace, id)
	if s == nil {
		s = &structs.JobSummary{JobID: id, Namespace: namespace, Summary: make(map[string]structs.TaskGroupSummary),
			Children: tx.countChildren(job), CreateIndex: job.CreateIndex}
		tx.summaries[joinKey(namespace, id)] = s
	}
	for _, group := range job.TaskGroups {
		name := structs.Val(group.Name)
		if _, ok := s.Summary[name]; !ok {
			s.Summary[name] = structs.TaskGroupSummary{}
		}
	}
}

func (tx *Txn) removeSummary(namespace, id string) {
	key := joinKey(namespace, id)
	delete(tx.summaries, key)
	tx.remove(TableSummaries, key)
}

// countAlloc moves an allocation from one place in its job's summary to another; either may be nil. Allocations of
// an earlier job of the same name do not count.
func (tx *Txn) countAlloc(before, after *structs.Allocation) {
	either := after
	if either == nil {
		either = before
	}
	if before != nil && after != nil && before.ClientStatus == after.ClientStatus && before.Job == after.Job {
		return
	}
	s := tx.summary(either.Namespace, either.JobID)
	if s == nil {
		return
	}
	for _, side := range []struct {
		alloc *structs.Allocation
		n     int
	}{{before, -1}, {after, 1}} {
		if side.alloc == nil || !countedIn(s, side.alloc) {
			continue
		}
		group := s.Summary[side.alloc.TaskGroup]
		addStatus(&group, side.alloc.ClientStatus, side.n)
		s.Summary[side.alloc.TaskGroup] = group
	}
}

func countedIn(s *structs.JobSummary, alloc *structs.Allocation) bool {
	return alloc.Job != nil && alloc.Job.CreateIndex == s.CreateIndex
}

func addStatus(g *structs.TaskGroupSummary, status string, n int) {
	switch status {
	case structs.AllocClientStatusPending:
		g.Starting += n
	case structs.AllocClientStatusRunning:
		g.Running += n
	case structs.AllocClientStatusComplete:
		g.Complete += n
	case structs.AllocClientStatusFailed:
		g.Failed += n
	case structs.AllocClientStatusLost:
		g.Lost += n
	case structs.AllocClientStatusUnknown:
		g.Unknown += n
	}
}

// queueFrom takes over what the newest evaluation could not place.
func (tx *Txn) queueFrom(eval *structs.Evaluation) {
	if eval.QueuedAllocations == nil {
		return
	}
	s := tx.summary(eval.Namespace, eval.JobID)
	if s == nil {
		return
	}
	for name, n := range eval.QueuedAllocations {
		if group, ok := s.Summary[name]; ok {
			group.Queued = n
			s.Summary[name] = group
		}
	}
}

// childStatus tells the parent's summary what became of a child; before and after may be nil.
func (tx *Txn) childStatus(before, after *structs.Job) {
	either := after
	if either == nil {
		either = before
	}
	if either.ParentID == "" || before != nil && after != nil && before.Status == after.Status {
		return
	}
	s := tx.summary(structs.Val(either.Namespace), either.ParentID)
	if s == nil {
		return
	}
	if s.Children == nil {
		s.Children = &structs.JobChildrenSummary{}
	}
	if before != nil {
		addChild(s.Children, before.Status, -1)
	}
	if after != nil {
		addChild(s.Children, after.Status, 1)
	}
}

func addChild(c *structs.JobChildrenSummary, status string, n int64) {
	switch status {
	case structs.JobStatusPending:
		c.Pending += n
	case structs.JobStatusRunning:
		c.Running += n
	case structs.JobStatusDead:
		c.Dead += n
	}
}

// finishSummaries stores the summaries that changed.
func (tx *Txn) finishSummaries() {
	for _, key := range slices.Sorted(maps.Keys(tx.summaries)) {
		s := tx.summaries[key]
		if s == nil {
			continue
		}
		if old := lookup[*structs.JobSummary](tx, TableSummaries, key); old != nil && sameSummary(old, s) {
			continue
		}
		s.ModifyIndex = tx.index
		tx.put(TableSummaries, s)
	}
	clear(tx.summaries)
}

func sameSummary(a, b *structs.JobSummary) bool {
	if a.CreateIndex != b.CreateIndex || !maps.Equal(a.Summary, b.Summary) || (a.Children == nil) != (b.Children == nil) {
		return false
	}
	return a.Children == nil || *a.Children == *b.Children
}

// ReconcileSummaries computes all summaries anew.
func (tx *Txn) ReconcileSummaries() {
	for job := range scan[*structs.Job](tx.base, nil, TableJobs, indexID, "") {
		fresh := tx.recomputeSummary(job)
		tx.summaries[joinKey(fresh.Namespace, fresh.JobID)] = fresh
	}
}

// recomputeSummary counts a job's summary from nothing. Groups that only older versions had keep their line.
func (tx *Txn) recomputeSummary(job *structs.Job) *structs.JobSummary {
	namespace, id := structs.Val(job.Namespace), structs.Val(job.ID)
	s := &structs.JobSummary{JobID: id, Namespace: namespace, Summary: make(map[string]structs.TaskGroupSummary),
		Children: tx.countChildren(job), CreateIndex: job.CreateIndex}
	for _, group := range job.TaskGroups {
		s.Summary[structs.Val(group.Name)] = structs.TaskGroupSummary{}
	}
	if old := lookup[*structs.JobSummary](tx, TableSummaries, joinKey(namespace, id)); old != nil {
		s.ModifyIndex = old.ModifyIndex
		for name, group := range old.Summary {
			s.Summary[name] = structs.TaskGroupSummary{Queued: group.Queued}
		}
	}
	for _, alloc := range tx.allocsByJob(namespace, id) {
		if countedIn(s, alloc) {
			group := s.Summary[alloc.TaskGroup]
			addStatus(&group, alloc.ClientStatus, 1)
			s.Summary[alloc.TaskGroup] = group
		}
	}
	var latest *structs.Evaluation
	for eval := range scan[*structs.Evaluation](tx.base, nil, TableEvals, indexJob, joinKey(namespace, id, "")) {
		if eval.QueuedAllocations != nil && (latest == nil || eval.ModifyIndex > latest.ModifyIndex) {
			latest = eval
		}
	}
	if latest != nil {
		for name, n := range latest.QueuedAllocations {
			if group, ok := s.Summary[name]; ok {
				group.Queued = n
				s.Summary[name] = group
			}
		}
	}
	return s
}

// countChildren counts the children that a job has, also those which an earlier job of the same name left behind.
func (tx *Txn) countChildren(job *structs.Job) *structs.JobChildrenSummary {
	out := &structs.JobChildrenSummary{}
	if job.HasOwnAllocations() {
		return out
	}
	namespace, id := structs.Val(job.Namespace), structs.Val(job.ID)
	for child := range scan[*structs.Job](tx.base, nil, TableJobs, indexID, joinKey(namespace, id+"/")) {
		if child.ParentID == id {
			addChild(out, child.Status, 1)
		}
	}
	return out
}
