package endpoint

import (
	"net/http"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// Descriptions of statuses which an operator gives a deployment.
const (
	deploymentFailedByOperator = "Deployment marked as failed"
	deploymentPaused           = "Deployment is paused"
	deploymentResumed          = "Deployment is running"
)

func deploymentWriteRoutes(b *Backend) []route.Route {
	return []route.Route{
		write("/v1/deployment/fail/{deployment_id}", b.handler(b.failDeployment)),
		write("/v1/deployment/pause/{deployment_id}", b.handler(b.pauseDeployment)),
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
	noDelay, err := q.flag("no_shutdown_delay")
	if err != nil {
		return err
	}
	d, err := b.activeDeployment(r, req.DeploymentID)
	if err != nil {
		return err
	}
	return b.setDeploymentStatus(w, r, q, d, structs.DeploymentStatusFailed, deploymentFailedByOperator, noDelay)
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
		return b.setDeploymentStatus(w, r, q, d, structs.DeploymentStatusPaused, deploymentPaused, false)
	}
	return b.setDeploymentStatus(w, r, q, d, structs.DeploymentStatusRunning, deploymentResumed, false)
}

// setDeploymentStatus stores the status together with the evaluation that acts on it; a pause needs none.
func (b *Backend) setDeploymentStatus(w http.ResponseWriter, r *route.Request, q *query, d *structs.Deployment,
	status, description string, noDelay bool) error {
	if !d.Active() {
		return structs.Errorf(structs.CodeInvalid, "can't change terminal deployment %q with status %q", d.ID, d.Status)
	}
	cmd := &fsm.DeploymentStatus{Now: b.unixNano(), Update: &structs.DeploymentStatusUpdate{
		DeploymentID: d.ID, Status: status, StatusDescription: description}}
	out := structs.DeploymentUpdateResponse{}
	if job := b.Store.Job(nil, d.Namespace, d.JobID); job != nil && status != structs.DeploymentStatusPaused {
		cmd.Eval = jobEval(job, structs.EvalTriggerDeploymentWatcher, cmd.Now)
		cmd.Eval.DeploymentID, cmd.Eval.NoShutdownDelay = d.ID, noDelay
		out.EvalID = cmd.Eval.ID
	}
	_, index, err := b.apply(r.Context(), fsm.KindDeploymentStatus, cmd)
	if err != nil {
		return err
	}
	out.DeploymentModifyIndex = index
	if cmd.Eval != nil {
		out.EvalCreateIndex = index
	}
	return answerWrite(w, q, index, out)
}
