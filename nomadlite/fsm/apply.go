package fsm

import (
	"errors"
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func upsertEvals(tx *state.Txn, evals []*structs.Evaluation, now int64) {
	for _, eval := range evals {
		tx.UpsertEval(eval, now)
	}
}

func applyJobRegister(tx *state.Txn, r *JobRegister) (any, error) {
	if r.Job == nil || structs.Val(r.Job.ID) == "" || structs.Val(r.Job.Namespace) == "" {
		return nil, structs.Errorf(structs.CodeInvalid, "register job: the request names no job")
	}
	job, err := tx.RegisterJob(state.JobRegistration{
		Job: r.Job, Submission: r.Submission, EnforceIndex: r.EnforceIndex, JobModifyIndex: r.JobModifyIndex,
		PreserveCounts: r.PreserveCounts, PreserveResources: r.PreserveResources, SameKind: r.SameKind, Eval: r.Eval, Now: r.Now})
	if err != nil {
		return nil, err
	}
	result := JobRegisterResult{Job: job, JobModifyIndex: job.JobModifyIndex}
	if r.Eval != nil {
		result.EvalID, result.EvalCreateIndex = r.Eval.ID, tx.Index()
	}
	return result, nil
}

func applyJobDeregister(tx *state.Txn, r *JobDeregister) (any, error) {
	job := tx.StopJob(state.JobStop{Namespace: r.Namespace, JobID: r.JobID, Purge: r.Purge,
		NoShutdownDelay: r.NoShutdownDelay, KillTimeout: r.KillTimeout, Eval: r.Eval, Now: r.Now})
	result := JobDeregisterResult{Found: job != nil}
	if job != nil {
		result.JobModifyIndex = job.JobModifyIndex
		if r.Purge {
			result.JobModifyIndex = tx.Index()
		}
	}
	if r.Eval != nil {
		result.EvalID, result.EvalCreateIndex = r.Eval.ID, tx.Index()
	}
	return result, nil
}

func applyEvalUpdate(tx *state.Txn, r *EvalUpdate) (any, error) {
	upsertEvals(tx, r.Evals, r.Now)
	return nil, nil
}

func applyEvalDelete(tx *state.Txn, r *EvalDelete) (any, error) {
	for _, id := range r.IDs {
		tx.DeleteEval(id)
	}
	return nil, nil
}

func applyPlanApply(tx *state.Txn, r *PlanApply) (any, error) {
	result := PlanApplyResult{Errors: make([]error, len(r.Plans))}
	for i, plan := range r.Plans {
		if r.Fit {
			if v := tx.FitPlan(plan); v != nil {
				if result.Fitted == nil {
					result.Fitted = make([]*structs.PlanVerdict, len(r.Plans))
				}
				result.Fitted[i], plan = v, v.Plan
			}
		}
		result.Errors[i] = tx.ApplyPlan(plan, r.Now)
	}
	upsertEvals(tx, r.Evals, r.Now)
	return result, nil
}

func applyNodeRegister(tx *state.Txn, r *NodeRegister) (any, error) {
	if r.Node == nil || r.Node.ID == "" {
		return nil, structs.Errorf(structs.CodeInvalid, "register node: the request names no node")
	}
	if err := tx.RegisterNode(r.Node, r.Now); err != nil {
		return nil, err
	}
	upsertEvals(tx, r.Evals, r.Now)
	return nil, nil
}

// applyNodeStatus changes what it can: a node that is gone does not keep the others of the batch from their status.
// Its error names those that were not there.
func applyNodeStatus(tx *state.Txn, r *NodeStatus) (any, error) {
	missing := 0
	for _, u := range r.Updates {
		err := tx.SetNodeStatus(u.NodeID, u.Status, u.Event, u.Conditions, r.Now)
		if err == nil && u.EndMaintenance {
			err = tx.SetNodeMaintenance(u.NodeID, nil, nil, r.Now)
		}
		if err == nil && u.EndLeaving {
			err = tx.EndNodeLeaving(u.NodeID, u.Agent, r.Now)
		}
		switch {
		case err == nil:
		case errors.Is(err, structs.ErrNodeNotFound):
			missing++
		default:
			return nil, err
		}
	}
	if missing > 0 && missing == len(r.Updates) {
		return nil, structs.ErrNodeNotFound
	}
	upsertEvals(tx, r.Evals, r.Now)
	return nil, nil
}

func applyNodeDeregister(tx *state.Txn, r *NodeDeregister) (any, error) {
	found := 0
	for _, id := range r.NodeIDs {
		if tx.DeregisterNode(id, r.Reason, r.Now) {
			found++
		}
	}
	if found == 0 {
		return nil, structs.ErrNodeNotFound
	}
	upsertEvals(tx, r.Evals, r.Now)
	return nil, nil
}

func applyNodeEligibility(tx *state.Txn, r *NodeEligibility) (any, error) {
	if err := tx.SetNodeEligibility(r.NodeID, r.Eligibility, r.Event, r.Now); err != nil {
		return nil, err
	}
	upsertEvals(tx, r.Evals, r.Now)
	return nil, nil
}

func applyNodeDrain(tx *state.Txn, r *NodeDrain) (any, error) {
	err := tx.SetNodeDrain(state.NodeDrainChange{NodeID: r.NodeID, Strategy: r.Strategy, Complete: r.Complete,
		NodeModifyIndex: r.NodeModifyIndex, MarkEligible: r.MarkEligible, Meta: r.Meta, Event: r.Event, Now: r.Now})
	if err != nil {
		return nil, err
	}
	upsertEvals(tx, r.Evals, r.Now)
	return nil, nil
}

func applyAllocObserve(tx *state.Txn, r *AllocObserve) (any, error) {
	for _, o := range r.Observations {
		tx.ObserveAlloc(o, r.Now)
	}
	upsertEvals(tx, r.Evals, r.Now)
	return nil, nil
}

func applyAllocTransition(tx *state.Txn, r *AllocTransition) (any, error) {
	found := 0
	for _, id := range slices.Sorted(maps.Keys(r.Transitions)) {
		if tx.TransitionAlloc(id, r.Transitions[id], r.Now) {
			found++
		}
	}
	if found == 0 && len(r.Transitions) > 0 {
		return nil, structs.Errorf(structs.CodeNotFound, "alloc not found")
	}
	upsertEvals(tx, r.Evals, r.Now)
	return nil, nil
}

// applyReap deletes in the order in which things refer to each other.
func applyReap(tx *state.Txn, r *Reap) (any, error) {
	var result ReapResult
	for _, id := range r.Allocs {
		if tx.ReapAlloc(id) {
			result.Allocs++
		}
	}
	for _, id := range r.Evals {
		if tx.ReapEval(id) {
			result.Evals++
		}
	}
	for _, id := range r.Deployments {
		if tx.ReapDeployment(id) {
			result.Deployments++
		}
	}
	for _, job := range r.Jobs {
		if tx.ReapJob(job.Namespace, job.ID) {
			result.Jobs++
		}
	}
	for _, id := range r.Nodes {
		if tx.ReapNode(id, r.Reason, r.Now) {
			result.Nodes++
		}
	}
	return result, nil
}

func applyKeyringUpsert(tx *state.Txn, r *KeyringUpsert) (any, error) {
	if r.Key == nil || r.Key.KeyID == "" {
		return nil, structs.Errorf(structs.CodeInvalid, "store root key: the request names no key")
	}
	tx.UpsertRootKey(r.Key, r.Now)
	return nil, nil
}

func applyKeyringDelete(tx *state.Txn, r *KeyringDelete) (any, error) {
	return nil, tx.DeleteRootKey(r.KeyID)
}

func applyNodePoolUpsert(tx *state.Txn, r *NodePoolUpsert) (any, error) {
	for _, pool := range r.Pools {
		if err := tx.UpsertNodePool(pool); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func applyNodePoolDelete(tx *state.Txn, r *NodePoolDelete) (any, error) {
	for _, name := range r.Names {
		if err := tx.DeleteNodePool(name); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func applyNamespaceUpsert(tx *state.Txn, r *NamespaceUpsert) (any, error) {
	for _, ns := range r.Namespaces {
		tx.UpsertNamespace(ns)
	}
	return nil, nil
}

func applyNamespaceDelete(tx *state.Txn, r *NamespaceDelete) (any, error) {
	for _, name := range r.Names {
		if err := tx.DeleteNamespace(name); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func applySchedulerConfig(tx *state.Txn, r *SchedulerConfig) (any, error) {
	if r.Config == nil {
		return nil, structs.Errorf(structs.CodeInvalid, "store scheduler configuration: the request has none")
	}
	return SchedulerConfigResult{Updated: tx.SetSchedulerConfig(r.Config, r.CAS)}, nil
}

func applyClusterMeta(tx *state.Txn, r *ClusterMeta) (any, error) {
	return tx.SetClusterMeta(r.ClusterID, r.Now), nil
}

func applyJobStability(tx *state.Txn, r *JobStability) (any, error) {
	index, err := tx.SetJobStability(r.Namespace, r.JobID, r.Version, r.Stable)
	if err != nil {
		return nil, err
	}
	return index, nil
}

func applyJobVersionTag(tx *state.Txn, r *JobVersionTag) (any, error) {
	return nil, tx.TagJobVersion(r.Namespace, r.JobID, r.Name, r.Version, r.Tag)
}

func applyReconcileSummaries(tx *state.Txn, _ *ReconcileSummaries) (any, error) {
	tx.ReconcileSummaries()
	return nil, nil
}

func applyNodeEvents(tx *state.Txn, r *NodeEvents) (any, error) {
	for _, id := range slices.Sorted(maps.Keys(r.Events)) {
		if err := tx.AddNodeEvents(id, r.Events[id], 0); err != nil && !errors.Is(err, structs.ErrNodeNotFound) {
			return nil, err
		}
	}
	return nil, nil
}
