package endpoint

import (
	"net/http"
	"slices"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/deploy"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// Descriptions of statuses which an operator gives a deployment.
const (
	deploymentFailedByOperator = "Deployment marked as failed"
	deploymentPaused           = "Deployment is paused"
	deploymentResumed          = "Deployment is running"
	deploymentUnhealthy        = "Failed due to unhealthy allocations"
)

func deploymentWriteRoutes(b *Backend) []route.Route {
	return []route.Route{
		write("/v1/deployment/fail/{deployment_id}", b.handler(b.failDeployment)),
		write("/v1/deployment/pause/{deployment_id}", b.handler(b.pauseDeployment)),
		write("/v1/deployment/promote/{deployment_id}", b.handler(b.promoteDeployment)),
		write("/v1/deployment/allocation-health/{deployment_id}", b.handler(b.setDeploymentHealth)),
		write("/v1/deployment/unblock/{deployment_id}", b.handler(b.unblockDeployment)),
	}
}

// activeDeployment reads the deployment which a write's path names; named is the id in its body, if it has one.
func (b *Backend) activeDeployment(r *route.Request, named string) (*structs.Deployment, error) {
	id := r.Param("deployment_id")
	if named != "" && named != id {
		return nil, structs.Errorf(structs.CodeInvalid, "DeploymentID %q does not match the path's %q", named, id)
	}
	d := b.Store.Deployment(nil, id)
	if d == nil {
		return nil, notFound("deployment")
	}
	return d, nil
}

// failDeployment ends a deployment; the job's evaluation stops what was rolling out. It may be asked to stop it without
// shutdown delay.
func (b *Backend) failDeployment(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.DeploymentFailRequest
	if _, err := decodeOptional(r, &req); err != nil {
		return err
	}
	how, err := q.stopOptions()
	if err != nil {
		return err
	}
	d, err := b.activeDeployment(r, req.DeploymentID)
	if err != nil {
		return err
	}
	if d.Status == structs.DeploymentStatusFailed && (how.noShutdownDelay || how.killTimeout != nil) {
		return b.shortenDeploymentStops(w, r, q, d, how)
	}
	return b.setDeploymentStatus(w, r, q, d, structs.DeploymentStatusFailed, deploymentFailedByOperator, how)
}

// shortenDeploymentStops gives the options of stops to what still stops of a deployment that has failed before.
func (b *Backend) shortenDeploymentStops(w http.ResponseWriter, r *route.Request, q *query, d *structs.Deployment, how stopOptions) error {
	want := &structs.DesiredTransition{KillTimeout: how.killTimeout}
	if how.noShutdownDelay {
		want.NoShutdownDelay = structs.Ptr(true)
	}
	cmd := &fsm.AllocTransition{Transitions: map[string]*structs.DesiredTransition{}, Now: b.unixNano()}
	snap := b.Store.Snapshot()
	for _, a := range snap.AllocsByDeployment(nil, d.ID) {
		if a.ServerTerminal() && !a.ObservedTerminal() {
			cmd.Transitions[a.ID] = want
		}
	}
	out := structs.DeploymentUpdateResponse{DeploymentModifyIndex: d.ModifyIndex}
	if len(cmd.Transitions) == 0 {
		return answerWrite(w, q, snap.Index(), out)
	}
	_, index, err := b.apply(r.Context(), fsm.KindAllocTransition, cmd)
	if err != nil {
		return err
	}
	return answerWrite(w, q, index, out)
}

// pauseDeployment holds a deployment, or lets it go on.
func (b *Backend) pauseDeployment(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.DeploymentPauseRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	d, err := b.activeDeployment(r, req.DeploymentID)
	if err != nil {
		return err
	}
	if req.Pause {
		return b.setDeploymentStatus(w, r, q, d, structs.DeploymentStatusPaused, deploymentPaused, stopOptions{})
	}
	return b.setDeploymentStatus(w, r, q, d, structs.DeploymentStatusRunning, deploymentResumed, stopOptions{})
}

// setDeploymentStatus stores the status together with the evaluation that acts on it; a pause needs none.
func (b *Backend) setDeploymentStatus(w http.ResponseWriter, r *route.Request, q *query, d *structs.Deployment,
	status, description string, how stopOptions) error {
	if !d.Active() {
		return structs.Errorf(structs.CodeInvalid, "can't change terminal deployment %q with status %q", d.ID, d.Status)
	}
	cmd := &fsm.DeploymentStatus{Now: b.unixNano(), Update: &structs.DeploymentStatusUpdate{
		DeploymentID: d.ID, Status: status, StatusDescription: description}}
	if status == structs.DeploymentStatusFailed && d.AutoReverts() {
		cmd.Revert, cmd.Update.StatusDescription = deploy.Rollback(b.Store.Snapshot(), d, description)
	}
	if status != structs.DeploymentStatusPaused {
		cmd.Eval = b.deploymentEval(d, cmd.Now)
	}
	if cmd.Eval != nil {
		cmd.Eval.NoShutdownDelay, cmd.Eval.KillTimeout = how.noShutdownDelay, how.killTimeout
	}
	return b.changeDeployment(w, r, q, fsm.KindDeploymentStatus, cmd, cmd.Eval)
}

// deploymentEval is the evaluation that acts on a change of a deployment, nil when its job was purged.
func (b *Backend) deploymentEval(d *structs.Deployment, now int64) *structs.Evaluation {
	job := b.Store.Job(nil, d.Namespace, d.JobID)
	if job == nil {
		return nil
	}
	eval := jobEval(job, structs.EvalTriggerDeploymentWatcher, now)
	eval.DeploymentID = d.ID
	return eval
}

// changeDeployment stores a change together with its evaluation and answers with both.
func (b *Backend) changeDeployment(w http.ResponseWriter, r *route.Request, q *query, kind fsm.Kind, cmd any,
	eval *structs.Evaluation) error {
	resp, index, err := b.apply(r.Context(), kind, cmd)
	if err != nil {
		return err
	}
	out := structs.DeploymentUpdateResponse{DeploymentModifyIndex: index}
	if changed, ok := resp.(fsm.DeploymentResult); ok {
		out.RevertedJobVersion = changed.Reverted
	}
	if eval != nil {
		out.EvalID, out.EvalCreateIndex = eval.ID, index
	}
	return answerWrite(w, q, index, out)
}

// promoteDeployment makes canaries ordinary allocations: of all groups, or of those named.
func (b *Backend) promoteDeployment(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.DeploymentPromoteRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	d, err := b.activeDeployment(r, req.DeploymentID)
	if err != nil {
		return err
	}
	switch {
	case req.All && len(req.Groups) > 0:
		return structs.Errorf(structs.CodeInvalid, "All and Groups cannot be used together")
	case !req.All && len(req.Groups) == 0:
		return structs.Errorf(structs.CodeInvalid, "name the groups to promote, or ask for All")
	}
	cmd := &fsm.DeploymentPromote{DeploymentID: d.ID, Groups: req.Groups, Now: b.unixNano()}
	cmd.Eval = b.deploymentEval(d, cmd.Now)
	return b.changeDeployment(w, r, q, fsm.KindDeploymentPromote, cmd, cmd.Eval)
}

// setDeploymentHealth takes an operator's word on allocations. One that is not well fails the deployment.
func (b *Backend) setDeploymentHealth(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.DeploymentAllocHealthRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	d, err := b.activeDeployment(r, req.DeploymentID)
	if err != nil {
		return err
	}
	healthy, unhealthy := req.HealthyAllocationIDs, req.UnhealthyAllocationIDs
	if len(healthy)+len(unhealthy) == 0 {
		return structs.Errorf(structs.CodeInvalid, "must specify at least one healthy/unhealthy allocation ID")
	}
	for _, id := range healthy {
		if slices.Contains(unhealthy, id) {
			return structs.Errorf(structs.CodeInvalid, "same allocation marked as healthy and unhealthy: %q", id)
		}
	}
	cmd := &fsm.DeploymentHealth{DeploymentID: d.ID, Healthy: healthy, Unhealthy: unhealthy, Now: b.unixNano()}
	if len(unhealthy) > 0 {
		cmd.Fail = &structs.DeploymentStatusUpdate{DeploymentID: d.ID, Status: structs.DeploymentStatusFailed,
			StatusDescription: deploymentUnhealthy}
		snap := b.Store.Snapshot()
		if groups := groupsOf(snap, unhealthy); len(groups) > 0 && d.AutoReverts(groups...) {
			cmd.Revert, cmd.Fail.StatusDescription = deploy.Rollback(snap, d, deploymentUnhealthy)
		}
	}
	cmd.Eval = b.deploymentEval(d, cmd.Now)
	return b.changeDeployment(w, r, q, fsm.KindDeploymentHealth, cmd, cmd.Eval)
}

// groupsOf names the groups of allocations; those that are not there have none.
func groupsOf(snap *state.Snapshot, ids []string) []string {
	var groups []string
	for _, id := range ids {
		if a := snap.Alloc(nil, id); a != nil {
			groups = append(groups, a.TaskGroup)
		}
	}
	return groups
}

// unblockDeployment always refuses: only the regions of a multi-region job block each other's deployments, and a job has
// one region here.
func (b *Backend) unblockDeployment(_ http.ResponseWriter, r *route.Request, _ *query) error {
	var req structs.DeploymentUnblockRequest
	if _, err := decodeOptional(r, &req); err != nil {
		return err
	}
	d, err := b.activeDeployment(r, req.DeploymentID)
	if err != nil {
		return err
	}
	return structs.Errorf(structs.CodeInvalid,
		"can't unblock deployment %q with status %q: only deployments of multi-region jobs can be blocked", d.ID, d.Status)
}
