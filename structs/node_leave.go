package structs

import "time"

// NodeLeaveRequest is what a node says when it goes for good, in two steps.
type NodeLeaveRequest struct {
	NodeID   string
	SecretID string
	// Drain, in the first step, lets the servers move its allocations away; nil leaves stopping them to the node.
	Drain *DrainSpec
	// Final is the second step: all that ran has ended and was reported. Eligibility is what the first step answered.
	Final       bool
	Eligibility string
}

// NodeLeaveResponse answers the first step.
type NodeLeaveResponse struct {
	// Eligibility is what the node had before: it is a fresh node when it comes again.
	Eligibility string
}

// NodeAwayRequest is what an agent says in its last moment when it expects to be back: a maintenance that ends with its
// return, or after For.
type NodeAwayRequest struct {
	NodeID   string
	SecretID string
	For      time.Duration // above 0, at most MaxNodeMaintenance
}

// NodeAwayResponse answers with the end of the maintenance.
type NodeAwayResponse struct {
	Until time.Time
}
