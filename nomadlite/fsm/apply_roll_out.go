package fsm

import (
	"fmt"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func applyJobScale(tx *state.Txn, r *JobScale) (any, error) {
	job, err := tx.ScaleJob(state.JobScale{Namespace: r.Namespace, JobID: r.JobID, Group: r.Group, Count: r.Count,
		JobModifyIndex: r.JobModifyIndex, Event: r.Event, Eval: r.Eval, Now: r.Now})
	if err != nil {
		return nil, err
	}
	return JobScaleResult{JobModifyIndex: job.JobModifyIndex}, nil
}

func applyDeploymentPromote(tx *state.Txn, r *DeploymentPromote) (any, error) {
	if err := tx.PromoteDeployment(r.DeploymentID, r.Groups, r.Now); err != nil {
		return nil, err
	}
	if r.Eval != nil {
		tx.UpsertEval(r.Eval, r.Now)
	}
	return nil, nil
}

func applyDeploymentHealth(tx *state.Txn, r *DeploymentHealth) (any, error) {
	if err := tx.SetDeploymentHealth(r.DeploymentID, r.Healthy, r.Unhealthy, r.Now); err != nil {
		return nil, err
	}
	if r.Fail == nil {
		if r.Eval != nil {
			tx.UpsertEval(r.Eval, r.Now)
		}
		return nil, nil
	}
	return failAndRevert(tx, r.Fail, r.Revert, r.Eval, r.Now)
}

func applyDeploymentStatus(tx *state.Txn, r *DeploymentStatus) (any, error) {
	if r.Update == nil {
		return nil, structs.Errorf(structs.CodeInvalid, "update deployment: the request has no update")
	}
	result, err := failAndRevert(tx, r.Update, r.Revert, r.Eval, r.Now)
	if err != nil {
		return nil, err
	}
	tx.ShortenDeploymentStops(r.Update.DeploymentID, r.Eval, r.Now)
	return result, nil
}

// DeploymentResult answers DeploymentStatus and DeploymentHealth.
type DeploymentResult struct {
	// Reverted is the version of the job that was taken back to an earlier one, nil when none was.
	Reverted *uint64
}

// failAndRevert changes a deployment's status, takes its job back and stores the evaluation that acts on both.
func failAndRevert(
	tx *state.Txn, update *structs.DeploymentStatusUpdate, revert *JobRevert, eval *structs.Evaluation, now int64,
) (DeploymentResult, error) {
	given := *update
	var result DeploymentResult
	var job *structs.Job
	var refused error
	if revert != nil {
		// It is tried first: the description depends on it. A registration that fails changes nothing.
		job, refused = tx.RegisterJob(state.JobRegistration{Job: revert.Job, Submission: revert.Submission,
			EnforceIndex: true, JobModifyIndex: revert.JobModifyIndex, Now: now})
	}
	switch {
	case refused != nil && structs.ErrorCode(refused) == structs.CodeConflict:
		given.StatusDescription = revert.Otherwise
	case refused != nil:
		given.StatusDescription = fmt.Sprintf("%s - not rolling back: %v", revert.Otherwise, refused)
	case job != nil:
		result.Reverted = &job.Version
	}
	if err := tx.UpdateDeploymentStatus(&given, now); err != nil {
		return result, err
	}
	if eval == nil {
		return result, nil
	}
	row := *eval
	if job != nil {
		row.JobModifyIndex, row.Priority, row.Type = job.JobModifyIndex, structs.Val(job.Priority), structs.Val(job.Type)
	}
	tx.UpsertEval(&row, now)
	return result, nil
}
