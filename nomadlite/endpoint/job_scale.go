package endpoint

import (
	"net/http"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func (b *Backend) readJobScale(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	var job *structs.Job
	var allocs []*structs.Allocation
	var events map[string][]*structs.ScalingEvent
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		job = snap.Job(ws, ns, r.Param("job_id"))
		if job == nil {
			return snap.TableIndex(state.TableJobs)
		}
		allocs = snap.AllocsByJob(ws, ns, r.Param("job_id"))
		var told uint64
		events, told = snap.ScalingEvents(ws, ns, r.Param("job_id"))
		return max(job.ModifyIndex, newestAlloc(allocs), told)
	})
	if err != nil {
		return err
	}
	if job == nil {
		return notFound("job")
	}
	return answer(w, q, scaleStatus(job, allocs, events))
}

func scaleStatus(job *structs.Job, allocs []*structs.Allocation, events map[string][]*structs.ScalingEvent,
) *structs.JobScaleStatusResponse {
	out := &structs.JobScaleStatusResponse{
		JobID:          structs.Val(job.ID),
		Namespace:      structs.Val(job.Namespace),
		JobCreateIndex: job.CreateIndex,
		JobModifyIndex: job.JobModifyIndex,
		JobStopped:     job.Stop,
		TaskGroups:     map[string]structs.TaskGroupScaleStatus{},
	}
	for _, group := range job.TaskGroups {
		status := structs.TaskGroupScaleStatus{Desired: structs.Val(group.Count)}
		for _, alloc := range allocs {
			if alloc.TaskGroup != structs.Val(group.Name) || alloc.TerminalStatus() ||
				(alloc.DeploymentStatus != nil && alloc.DeploymentStatus.Canary) {
				continue
			}
			status.Placed++
			if alloc.ClientStatus == structs.AllocClientStatusRunning {
				status.Running++
			}
			if health := alloc.DeploymentStatus; health != nil && health.Healthy != nil {
				if *health.Healthy {
					status.Healthy++
				} else {
					status.Unhealthy++
				}
			}
		}
		for _, e := range events[structs.Val(group.Name)] {
			status.Events = append(status.Events, *e)
		}
		out.TaskGroups[structs.Val(group.Name)] = status
	}
	return out
}

// scaleJob gives a group another count, or keeps a word about its scaling when the request has no count. The count, the
// evaluation and the event are one raft entry; the options of the stops ride on the evaluation.
func (b *Backend) scaleJob(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	var req structs.ScalingRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	id := r.Param("job_id")
	group, err := scalingTarget(&req, id)
	if err != nil {
		return err
	}
	how, err := q.stopOptions()
	if err != nil {
		return err
	}
	snap := b.Store.Snapshot()
	job := snap.Job(nil, ns, id)
	if job == nil {
		return notFound("job")
	}
	now := b.unixNano()
	cmd := &fsm.JobScale{Namespace: ns, JobID: id, Group: group, Count: req.Count, JobModifyIndex: job.JobModifyIndex,
		Event: structs.ScalingEvent{Message: req.Message, Error: req.Error, Meta: req.Meta}, Now: now}
	if req.JobModifyIndex != 0 && req.JobModifyIndex != job.JobModifyIndex {
		return structs.Errorf(structs.CodeConflict, "Enforcing job modify index %d: job exists with conflicting job modify index: %d",
			req.JobModifyIndex, job.JobModifyIndex)
	}
	if req.Count != nil {
		if err := b.mayLaunch(); err != nil {
			return err
		}
		if err := b.checkScaling(snap, job, group, *req.Count); err != nil {
			return err
		}
		if job.HasOwnAllocations() {
			cmd.Eval = jobEval(job, structs.EvalTriggerScaling, now)
			cmd.Eval.JobModifyIndex = 0 // that of this very entry
			cmd.Eval.NoShutdownDelay, cmd.Eval.KillTimeout = how.noShutdownDelay, how.killTimeout
		}
	}
	resp, index, err := b.apply(r.Context(), fsm.KindJobScale, cmd)
	if err != nil {
		return err
	}
	out := structs.JobRegisterResponse{JobModifyIndex: job.JobModifyIndex}
	if scaled, ok := resp.(fsm.JobScaleResult); ok {
		out.JobModifyIndex = scaled.JobModifyIndex
	}
	if cmd.Eval != nil {
		out.EvalID, out.EvalCreateIndex = cmd.Eval.ID, index
	}
	return answerWrite(w, q, index, out)
}

// scalingTarget is the group that a request names; the request is checked as far as that goes without the job.
func scalingTarget(req *structs.ScalingRequest, jobID string) (string, error) {
	if named := req.Target["Job"]; named != "" && named != jobID {
		return "", structs.Errorf(structs.CodeInvalid, "job %q in Target does not match the path's %q", named, jobID)
	}
	group := req.Target["Group"]
	switch {
	case group == "":
		return "", structs.Errorf(structs.CodeInvalid, "missing task group name for scaling action")
	case req.Count != nil && req.Error:
		return "", structs.Errorf(structs.CodeInvalid, "scaling action should not contain count if error is true")
	case req.Count != nil && *req.Count < 0:
		return "", structs.Errorf(structs.CodeInvalid, "scaling action count can't be negative")
	}
	return group, nil
}

// checkScaling says why a group cannot have a count.
func (b *Backend) checkScaling(snap *state.Snapshot, job *structs.Job, name string, count int64) error {
	group := job.LookupTaskGroup(name)
	if group == nil {
		return structs.Errorf(structs.CodeInvalid, "task group %q specified for scaling does not exist in job", name)
	}
	if job.Stop {
		return structs.Errorf(structs.CodeInvalid, "job %q is stopped: start it before it is scaled", structs.Val(job.ID))
	}
	if policy := group.Scaling; policy != nil {
		if least := structs.Val(policy.Min); count < least {
			return structs.Errorf(structs.CodeInvalid, "group count was less than scaling policy minimum: %d < %d", count, least)
		}
		if policy.Max != nil && count > *policy.Max {
			return structs.Errorf(structs.CodeInvalid, "group count was greater than scaling policy maximum: %d > %d", count, *policy.Max)
		}
	}
	if d := snap.LatestDeployment(nil, structs.Val(job.Namespace), structs.Val(job.ID)); d != nil && d.Active() {
		return structs.Errorf(structs.CodeInvalid, "job scaling blocked due to active deployment")
	}
	if count > int64(b.maxCount()) {
		return structs.Errorf(structs.CodeInvalid, "group count %d is greater than the %d allocations that a job may have", count, b.maxCount())
	}
	scaled := *job
	scaled.TaskGroups = nil
	for _, tg := range job.TaskGroups {
		if structs.Val(tg.Name) == name {
			changed := *tg
			changed.Count = structs.Ptr(int(count))
			tg = &changed
		}
		scaled.TaskGroups = append(scaled.TaskGroups, tg)
	}
	if faults := b.jobFaults(&scaled); faults.Err() != nil {
		return &structs.CodedError{Code: structs.CodeInvalid, Text: faults.Err().Error(), Err: faults.Err()}
	}
	return nil
}
