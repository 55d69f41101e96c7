package reconcile

import (
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// subject is one allocation with all that the rules look at.
type subject struct {
	in        *Input
	alloc     *structs.Allocation
	tg        *structs.TaskGroup // of the current job, nil when the job or the group is gone
	node      *structs.Node      // nil when it is deregistered
	terms     terms
	fits      bool                // system jobs: its node is one that the group is meant for
	successor *structs.Allocation // the newest allocation that replaces it, nil when there is none
}

func newSubject(in *Input, a *structs.Allocation, tg *structs.TaskGroup, successor *structs.Allocation) *subject {
	own := a.Group() // the terms under which it was started
	if own == nil {
		own = tg
	}
	node := in.Node(a.NodeID)
	return &subject{in: in, alloc: a, tg: tg, node: node, terms: termsOf(own, node), successor: successor}
}

func (s *subject) jobGone() bool     { return s.in.Job.Stopped() || s.tg == nil }
func (s *subject) ended() bool       { return s.alloc.ClientTerminal() }
func (s *subject) wantedToEnd() bool { return s.alloc.ServerTerminal() }
func (s *subject) replaced() bool    { return s.successor != nil }

// sameVersion says that the allocation runs the job's current specification.
func (s *subject) sameVersion() bool { return sameVersion(s.in.Job, s.alloc) }

func sameVersion(job *structs.Job, a *structs.Allocation) bool {
	if job == nil {
		return false
	}
	if a.Job != nil && a.Job.CreateIndex != job.CreateIndex {
		return false
	}
	return a.JobVersion == job.Version && (a.JobModifyIndex == 0 || a.JobModifyIndex == job.JobModifyIndex)
}

// ranToEnd says that a batch allocation did its work: it is complete, and not because somebody ended it.
func (s *subject) ranToEnd() bool {
	if s.alloc.ClientStatus != structs.AllocClientStatusComplete || s.alloc.Departed {
		return false
	}
	if !s.wantedToEnd() {
		return true
	}
	for _, ts := range s.alloc.TaskStates {
		for e := range ts.AllEvents() {
			if e.Type == structs.TaskKilling || e.Type == structs.TaskKilled {
				return false
			}
		}
	}
	return len(s.alloc.TaskStates) > 0
}

// staysAway says that a batch allocation which leaves its node is not to be replaced. Another version of its job is another
// work, which has not been done.
func (s *subject) staysAway() bool {
	return s.in.Batch && structs.Val(s.alloc.DesiredTransition.MigrateDisablePlacement) && s.sameVersion()
}

// drainedForGood says that a batch allocation was told to leave its node and is not to be replaced: its place stays
// taken for as long as its version of the job is wanted.
func (s *subject) drainedForGood() bool {
	return s.wantedToEnd() && s.staysAway() && !s.jobGone() && !s.replaced() && !s.conditionLost() && (s.ended() || !s.unheardForGood())
}

// rollout is the status of the deployment of the job's current version, when the allocation is part of it, else "".
func (s *subject) rollout() string {
	d, job := s.in.Deployment, s.in.Job
	if d == nil || job == nil || d.ID != s.alloc.DeploymentID || d.JobVersion != job.Version || d.JobCreateIndex != job.CreateIndex {
		return ""
	}
	return d.Status
}

func (s *subject) conditionLost() bool { return s.alloc.ClientStatus == structs.AllocClientStatusLost }
func (s *subject) conditionUnknown() bool {
	return s.alloc.Condition.Status == structs.ConditionUnknown
}
func (s *subject) failed() bool { return s.alloc.ClientStatus == structs.AllocClientStatusFailed }

// endedByFence says that the node ended the allocation because its lease had run out, and that its group wants a
// replacement of what is lost like that. It did not fail: no policy of reschedules counts or delays that.
func (s *subject) endedByFence() bool { return s.failed() && s.alloc.Fenced && s.terms.replace }

// endedByLeaving says that the node ended the allocation because it left for good: like a stop that was asked for, it is
// no failure that a policy of reschedules counts or delays.
func (s *subject) endedByLeaving() bool { return s.ended() && s.alloc.Departed }

func (s *subject) askedToMove() bool {
	t := &s.alloc.DesiredTransition
	return t.ShouldMigrate() || t.ShouldReschedule() || t.ShouldForceReschedule()
}

func (s *subject) nodeGone() bool    { return s.node == nil }
func (s *subject) nodeDown() bool    { return s.node == nil || s.node.Status == structs.NodeStatusDown }
func (s *subject) nodeUnheard() bool { return s.node == nil || s.node.Down() }
func (s *subject) nodeDisconnected() bool {
	return s.node != nil && s.node.Status == structs.NodeStatusDisconnected
}

// away says that the node told beforehand when it is back, and that this time has not come.
func (s *subject) away() bool {
	return s.alloc.Condition.Status == structs.ConditionAway && s.in.Now.Before(s.alloc.Condition.Until)
}

// unheardSince is when the node was last known to be there.
func (s *subject) unheardSince() time.Time {
	if c := s.alloc.Condition; c.Status == structs.ConditionUnknown && !c.Since.IsZero() {
		return c.Since
	}
	if s.node != nil && s.node.Down() && s.node.StatusUpdatedAt > 0 {
		return time.Unix(s.node.StatusUpdatedAt, 0).UTC()
	}
	return s.in.Now
}

// fenced says that the node may still run the group until its own fence has closed.
func (s *subject) fenced() bool {
	return s.terms.fence > 0 && s.in.Now.Before(s.unheardSince().Add(s.terms.fence))
}

// unheardForGood says that the node is down and nothing speaks for waiting: what is to end there is given up.
func (s *subject) unheardForGood() bool {
	return s.nodeDown() && !s.ended() && !s.away() && (s.nodeGone() || !s.fenced())
}

func (s *subject) lostAt() time.Time { return s.unheardSince().Add(s.terms.lostAfter) }

// patient says that the group waits for its node and that its patience has not run out.
func (s *subject) patient() bool { return s.terms.lostAfter > 0 && s.in.Now.Before(s.lostAt()) }

// rescheduleAt is when the policy lets a failed allocation be replaced; false when it does not any more.
func (s *subject) rescheduleAt() (time.Time, bool) {
	policy := s.alloc.ReschedulePolicy()
	if s.tg != nil {
		policy = s.tg.ReschedulePolicy
	}
	return s.alloc.NextRescheduleTime(policy, s.in.Now, s.alloc.FinishedAt())
}

// dueNow says that a failed allocation is to be replaced in this evaluation.
func (s *subject) dueNow() bool {
	at, ok := s.rescheduleAt()
	if !ok {
		return false
	}
	// An evaluation that was made for just this moment does not wait again for a clock that lags a little.
	follow := s.in.Eval != nil && s.alloc.FollowupEvalID != "" && s.alloc.FollowupEvalID == s.in.Eval.ID
	return follow || !at.After(s.in.Now)
}

func (s *subject) dueLater() bool {
	_, ok := s.rescheduleAt()
	return ok
}
