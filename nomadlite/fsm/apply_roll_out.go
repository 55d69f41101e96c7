package fsm

import (
	"github.com/nomadlite/nomadlite/nomadlite/state"
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
	if r.Fail != nil {
		if err := tx.UpdateDeploymentStatus(r.Fail, r.Now); err != nil {
			return nil, err
		}
	}
	if r.Eval != nil {
		tx.UpsertEval(r.Eval, r.Now)
	}
	return nil, nil
}
