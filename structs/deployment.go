package structs

import (
	"slices"
	"time"
)

// Deployment is the roll-out of one version of a job.
type Deployment struct {
	ID                 string
	Namespace          string
	JobID              string
	JobVersion         uint64
	JobModifyIndex     uint64
	JobSpecModifyIndex uint64
	JobCreateIndex     uint64
	IsMultiregion      bool
	TaskGroups         map[string]*DeploymentState
	Status             string
	StatusDescription  string
	CreateIndex        uint64
	ModifyIndex        uint64
	CreateTime         int64
	ModifyTime         int64
}

// DeploymentState is the progress of a deployment in one group.
type DeploymentState struct {
	PlacedCanaries    []string
	AutoRevert        bool
	ProgressDeadline  time.Duration
	RequireProgressBy time.Time
	Promoted          bool
	DesiredCanaries   int
	DesiredTotal      int
	PlacedAllocs      int
	HealthyAllocs     int
	UnhealthyAllocs   int

	// Away counts the allocations on nodes that are away for an announced maintenance, Pauses are the times with such: the
	// deadline does not count in them, since nobody can report progress from there. Earlier ones than the deadline's are
	// left out.
	Away   int               `json:"-" cbor:"Away,omitempty"`
	Pauses []DeploymentPause `json:"-" cbor:"Pauses,omitempty"`
}

// DeploymentPause is a time in which a deadline did not count. Until is zero while it lasts.
type DeploymentPause struct {
	Since time.Time `json:"-" cbor:"Since"`
	Until time.Time `json:"-" cbor:"Until"`
}

// AllocAway counts one more allocation of the group that is away since then.
func (s *DeploymentState) AllocAway(since time.Time) {
	if s.Away++; s.Away > 1 {
		return
	}
	begun := s.RequireProgressBy.Add(-s.ProgressDeadline)
	var pauses []DeploymentPause
	for _, p := range s.Pauses {
		if p.Until.After(begun) {
			pauses = append(pauses, p)
		}
	}
	s.Pauses = append(pauses, DeploymentPause{Since: since})
}

// AllocBack counts one less at now: it was heard of, or is gone.
func (s *DeploymentState) AllocBack(now time.Time) {
	if s.Away == 0 {
		return // it went when nobody counted yet
	}
	if s.Away--; s.Away == 0 {
		s.Pauses = slices.Clone(s.Pauses)
		s.Pauses[len(s.Pauses)-1].Until = now
	}
}

// Extend gives a deadline, which is deadline after its begin, with the pauses since then; false while there is one.
func (s *DeploymentState) Extend(by time.Time, deadline time.Duration) (time.Time, bool) {
	begun := by.Add(-deadline)
	for _, p := range s.Pauses {
		if p.Until.IsZero() {
			return by, false
		}
		since := p.Since
		if begun.After(since) {
			since = begun
		}
		if by.After(since) && p.Until.After(since) {
			by = by.Add(p.Until.Sub(since))
		}
	}
	return by, true
}

// DeploymentAllocHealthRequest sets the health of a deployment's allocations by hand.
type DeploymentAllocHealthRequest struct {
	DeploymentID           string
	HealthyAllocationIDs   []string
	UnhealthyAllocationIDs []string
}

// DeploymentFailRequest asks to fail a deployment.
type DeploymentFailRequest struct {
	DeploymentID string
}

// DeploymentUnblockRequest asks to unblock a deployment.
type DeploymentUnblockRequest struct {
	DeploymentID string
}

// DeploymentPauseRequest asks to pause a deployment or to go on.
type DeploymentPauseRequest struct {
	DeploymentID string
	Pause        bool
}

// DeploymentPromoteRequest asks to promote the canaries of all groups or of some.
type DeploymentPromoteRequest struct {
	DeploymentID string
	All          bool
	Groups       []string
	PromotedAt   int64
}

// DeploymentUpdateResponse answers a change of a deployment.
type DeploymentUpdateResponse struct {
	EvalID                string
	EvalCreateIndex       uint64
	DeploymentModifyIndex uint64
	RevertedJobVersion    *uint64
}
