package structs

// TerminalStatus says that nothing more will happen to the evaluation.
func (e *Evaluation) TerminalStatus() bool {
	switch e.Status {
	case EvalStatusComplete, EvalStatusFailed, EvalStatusCancelled:
		return true
	}
	return false
}

// ShouldEnqueue says whether the evaluation belongs into the broker.
func (e *Evaluation) ShouldEnqueue() bool { return e.Status == EvalStatusPending }

// ShouldBlock says whether the evaluation belongs among the blocked ones.
func (e *Evaluation) ShouldBlock() bool { return e.Status == EvalStatusBlocked }

// Stub is the evaluation as related evaluations show it.
func (e *Evaluation) Stub() *EvaluationStub {
	return &EvaluationStub{
		ID:                e.ID,
		Priority:          e.Priority,
		Type:              e.Type,
		TriggeredBy:       e.TriggeredBy,
		Namespace:         e.Namespace,
		JobID:             e.JobID,
		NodeID:            e.NodeID,
		DeploymentID:      e.DeploymentID,
		Status:            e.Status,
		StatusDescription: e.StatusDescription,
		WaitUntil:         e.WaitUntil,
		NextEval:          e.NextEval,
		PreviousEval:      e.PreviousEval,
		BlockedEval:       e.BlockedEval,
		CreateIndex:       e.CreateIndex,
		ModifyIndex:       e.ModifyIndex,
		CreateTime:        e.CreateTime,
		ModifyTime:        e.ModifyTime,
	}
}

// Active says that the deployment still goes on.
func (d *Deployment) Active() bool {
	switch d.Status {
	case DeploymentStatusRunning, DeploymentStatusPaused, DeploymentStatusInitializing, DeploymentStatusPending,
		DeploymentStatusBlocked, DeploymentStatusUnblocking:
		return true
	}
	return false
}
