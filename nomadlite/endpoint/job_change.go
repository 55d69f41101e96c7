package endpoint

import (
	"net/http"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// deregisterJob stops or purges a job. The transitions of its allocations and the evaluation are in the same raft
// entry. Stopping a job that is not there is no error.
func (b *Backend) deregisterJob(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	cmd := &fsm.JobDeregister{Namespace: ns, JobID: r.Param("job_id"), Now: b.unixNano()}
	if cmd.Purge, err = q.flag("purge"); err != nil {
		return err
	}
	if _, err = q.flag("global"); err != nil { // there is one region
		return err
	}
	if cmd.NoShutdownDelay, err = q.flag("no_shutdown_delay"); err != nil {
		return err
	}
	if cmd.KillTimeout, err = q.duration("kill_timeout"); err != nil {
		return err
	}
	priority, err := q.count("eval_priority")
	if err != nil {
		return err
	}
	if err := checkEvalPriority("parameter eval_priority", priority); err != nil {
		return err
	}
	snap := b.Store.Snapshot()
	job := snap.Job(nil, ns, cmd.JobID)
	if job == nil && len(snap.AllocsByJob(nil, ns, cmd.JobID)) == 0 {
		return answerWrite(w, q, snap.Index(), structs.JobDeregisterResponse{})
	}
	if job == nil {
		// An earlier job of this name left allocations behind.
		job = &structs.Job{
			Namespace: &ns, ID: &cmd.JobID, Priority: structs.Ptr(structs.JobDefaultPriority),
			Type: structs.Ptr(structs.JobTypeService),
		}
	}
	if job.HasOwnAllocations() {
		cmd.Eval = jobEval(job, structs.EvalTriggerJobDeregister, cmd.Now)
		cmd.Eval.JobModifyIndex = 0 // that of this very entry
		if priority > 0 {
			cmd.Eval.Priority = priority
		}
	}
	resp, index, err := b.apply(r.Context(), fsm.KindJobDeregister, cmd)
	if err != nil {
		return err
	}
	out := structs.JobDeregisterResponse{JobModifyIndex: index}
	if stopped, ok := resp.(fsm.JobDeregisterResult); ok {
		out.JobModifyIndex = stopped.JobModifyIndex
	}
	if cmd.Eval != nil {
		out.EvalID, out.EvalCreateIndex = cmd.Eval.ID, index
	}
	return answerWrite(w, q, index, out)
}

// evaluateJob makes an evaluation for a job as it is; with ForceReschedule its failed allocations are replaced
// whatever their policy says.
func (b *Backend) evaluateJob(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	var req structs.JobEvaluateRequest
	if _, err := decodeOptional(r, &req); err != nil {
		return err
	}
	if id := r.Param("job_id"); req.JobID != "" && req.JobID != id {
		return structs.Errorf(structs.CodeInvalid, "JobID %q does not match the path's %q", req.JobID, id)
	}
	snap := b.Store.Snapshot()
	job := snap.Job(nil, ns, r.Param("job_id"))
	switch {
	case job == nil:
		return notFound("job")
	case job.IsPeriodic():
		return structs.Errorf(structs.CodeInvalid, "can't evaluate periodic job")
	case job.IsParameterized():
		return structs.Errorf(structs.CodeInvalid, "can't evaluate parameterized job")
	}
	now := b.unixNano()
	eval := jobEval(job, structs.EvalTriggerJobRegister, now)
	cmd := &fsm.AllocTransition{
		Transitions: map[string]*structs.DesiredTransition{}, Evals: []*structs.Evaluation{eval}, Now: now,
	}
	if req.EvalOptions.ForceReschedule {
		for _, alloc := range snap.AllocsByJob(nil, ns, structs.Val(job.ID)) {
			if alloc.ClientStatus == structs.AllocClientStatusFailed && alloc.NextAllocation == "" &&
				alloc.DesiredStatus == structs.AllocDesiredStatusRun {
				cmd.Transitions[alloc.ID] = &structs.DesiredTransition{ForceReschedule: structs.Ptr(true)}
			}
		}
	}
	_, index, err := b.apply(r.Context(), fsm.KindAllocTransition, cmd)
	if err != nil {
		return err
	}
	return answerWrite(w, q, index, structs.JobRegisterResponse{
		EvalID: eval.ID, EvalCreateIndex: index, JobModifyIndex: job.JobModifyIndex,
	})
}

// setJobStable marks a version of a job stable or not.
func (b *Backend) setJobStable(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	var req structs.JobStabilityRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	id := r.Param("job_id")
	if req.JobID != "" && req.JobID != id {
		return structs.Errorf(structs.CodeInvalid, "JobID %q does not match the path's %q", req.JobID, id)
	}
	snap := b.Store.Snapshot()
	job := snap.Job(nil, ns, id)
	if job == nil {
		return notFound("job")
	}
	if snap.JobVersion(nil, ns, id, req.JobVersion) == nil {
		return structs.Errorf(structs.CodeNotFound, "job %q at version %d not found", id, req.JobVersion)
	}
	_, index, err := b.apply(r.Context(), fsm.KindJobStability, &fsm.JobStability{
		Namespace: ns, JobID: id, Version: req.JobVersion, Stable: req.Stable,
	})
	if err != nil {
		return err
	}
	return answerWrite(w, q, index, structs.JobStabilityResponse{JobModifyIndex: index})
}

// tagJobVersion names a version of a job, which is then kept.
func (b *Backend) tagJobVersion(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	var req structs.TagVersionRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	id := r.Param("job_id")
	job := b.Store.Job(nil, ns, id)
	if job == nil {
		return notFound("job")
	}
	if req.Latest {
		req.Version = job.Version
	}
	return b.applyTag(w, r, q, &fsm.JobVersionTag{
		Namespace: ns, JobID: id, Name: r.Param("name"), Version: req.Version,
		Tag: &structs.JobVersionTag{Name: r.Param("name"), Description: req.Description, TaggedTime: b.unixNano()},
	})
}

func (b *Backend) untagJobVersion(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	return b.applyTag(w, r, q, &fsm.JobVersionTag{Namespace: ns, JobID: r.Param("job_id"), Name: r.Param("name")})
}

func (b *Backend) applyTag(w http.ResponseWriter, r *route.Request, q *query, cmd *fsm.JobVersionTag) error {
	_, index, err := b.apply(r.Context(), fsm.KindJobVersionTag, cmd)
	if err != nil {
		return err
	}
	return answerWrite(w, q, index, nil)
}
