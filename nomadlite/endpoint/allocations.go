package endpoint

import (
	"iter"
	"net/http"
	"strings"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func allocationRoutes(b *Backend) []route.Route {
	return []route.Route{
		read("/v1/allocations", b.handler(b.listAllocations)),
		read("/v1/allocation/{alloc_id}", b.handler(b.readAllocation)),
		write("/v1/allocation/{alloc_id}/stop", b.handler(b.stopAllocation)),
	}
}

func (b *Backend) listAllocations(w http.ResponseWriter, r *route.Request, q *query) error {
	resources, err := q.flag("resources")
	if err != nil {
		return err
	}
	states := true // unless the sender says that he does without
	if q.values.Has("task_states") {
		if states, err = q.flag("task_states"); err != nil {
			return err
		}
	}
	if err := q.checkIDPrefix(); err != nil {
		return err
	}
	var rows iter.Seq[*structs.Allocation]
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		if q.prefix != "" {
			rows = snap.AllocsByPrefix(ws, q.namespace, q.prefix)
		} else {
			rows = snap.Allocs(ws, q.namespace)
		}
		return snap.TableIndex(state.TableAllocs)
	})
	if err != nil {
		return err
	}
	l := allocationList(rows, resources, nil)
	if q.prefix != "" {
		l.rows = rows // by id
		l.token = func(a *structs.Allocation) string { return a.ID }
	}
	if !states {
		show := l.show
		l.show = func(a *structs.Allocation) any {
			stub := show(a).(*structs.AllocationListStub)
			stub.TaskStates = nil
			return stub
		}
	}
	return answerList(w, q, l)
}

func allocAge(a *structs.Allocation) age { return age{a.CreateIndex, a.ID} }

// allocationList shows allocations as stubs, the oldest first.
func allocationList(
	rows iter.Seq[*structs.Allocation], resources bool, keep func(*structs.Allocation) bool,
) list[*structs.Allocation] {
	return list[*structs.Allocation]{
		rows:  byAge(rows, allocAge),
		token: func(a *structs.Allocation) string { return allocAge(a).token() },
		keep:  keep,
		show: func(a *structs.Allocation) any {
			stub := a.Stub()
			stub.AllocatedResources = nil
			if resources {
				stub.AllocatedResources = a.AllocatedResources
			}
			return stub
		},
	}
}

func (b *Backend) readAllocation(w http.ResponseWriter, r *route.Request, q *query) error {
	var alloc *structs.Allocation
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		alloc = snap.Alloc(ws, r.Param("alloc_id"))
		if alloc == nil {
			return snap.TableIndex(state.TableAllocs)
		}
		return alloc.ModifyIndex
	})
	if err != nil {
		return err
	}
	if alloc == nil {
		return notFound("alloc")
	}
	return answer(w, q, alloc)
}

// stopAllocation asks that one allocation be stopped and replaced: the transition and the evaluation that acts on it
// are one raft entry.
func (b *Backend) stopAllocation(w http.ResponseWriter, r *route.Request, q *query) error {
	noDelay, err := q.flag("no_shutdown_delay")
	if err != nil {
		return err
	}
	reschedule, err := q.flag("reschedule")
	if err != nil {
		return err
	}
	killTimeout, err := q.duration("kill_timeout")
	if err != nil {
		return err
	}
	alloc := b.Store.Alloc(nil, r.Param("alloc_id"))
	if alloc == nil {
		return notFound("alloc")
	}
	transition := &structs.DesiredTransition{Migrate: structs.Ptr(true), KillTimeout: killTimeout}
	if reschedule {
		transition.Reschedule = structs.Ptr(true)
	}
	if noDelay {
		transition.NoShutdownDelay = structs.Ptr(true)
	}
	now := b.unixNano()
	eval := &structs.Evaluation{
		ID:             uuid.New(),
		Namespace:      alloc.Namespace,
		Priority:       structs.JobDefaultPriority,
		Type:           structs.JobTypeService,
		TriggeredBy:    structs.EvalTriggerAllocStop,
		JobID:          alloc.JobID,
		JobModifyIndex: alloc.JobModifyIndex,
		Status:         structs.EvalStatusPending,
		CreateTime:     now,
		ModifyTime:     now,
	}
	if job := alloc.Job; job != nil {
		eval.Priority, eval.Type = structs.Val(job.Priority), structs.Val(job.Type)
	}
	_, index, err := b.apply(r.Context(), fsm.KindAllocTransition, &fsm.AllocTransition{
		Transitions: map[string]*structs.DesiredTransition{alloc.ID: transition},
		Evals:       []*structs.Evaluation{eval},
		Now:         now,
	})
	if err != nil {
		return err
	}
	return answerWrite(w, q, index, struct {
		structs.AllocStopResponse
		Index uint64
	}{structs.AllocStopResponse{EvalID: eval.ID}, index})
}

// hasPrefix is strings.HasPrefix for a prefix that may not have been asked for.
func hasPrefix(text, prefix string) bool { return prefix == "" || strings.HasPrefix(text, prefix) }

// checkIDPrefix refuses a prefix that can begin no id. Ids are written in lower case.
func (q *query) checkIDPrefix() error {
	for _, c := range q.prefix {
		if !strings.ContainsRune("0123456789abcdefABCDEF-", c) {
			return structs.Errorf(structs.CodeInvalid, "invalid value %q of parameter prefix: an id has only hexadecimal digits and dashes",
				q.prefix)
		}
	}
	q.prefix = strings.ToLower(q.prefix)
	return nil
}
