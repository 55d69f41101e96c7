package structs

import "time"

// NodeLeaveRequest is what a node says when it goes for good, in two steps.
type NodeLeaveRequest struct {
	NodeID   string
	SecretID string
	// Drain, in the first step, lets the servers move its allocations away; nil leaves stopping them to the node.
	Drain *DrainSpec
	// Agent is that of NodeHeartbeatRequest.
	Agent string `json:",omitempty"`
	// Final is the second step: all that ran has ended and was reported.
	Final bool
}

// NodeLeaving is kept of a node that goes for good, from the first step on: what it gets back in the second step, or when
// another process of its agent comes because the one that left was killed meanwhile. An operator who changes the node's
// eligibility or drain takes it away: then that is what counts.
type NodeLeaving struct {
	Since time.Time `json:"-" cbor:"Since"`
	// Agent is the process that leaves, see NodeHeartbeatRequest; empty when it does not tell.
	Agent       string         `json:"-" cbor:"Agent,omitempty"`
	Eligibility string         `json:"-" cbor:"Eligibility"`      // before
	Drain       bool           `json:"-" cbor:"Drain,omitempty"`  // a drain belongs to it and ends with it
	Before      *DrainStrategy `json:"-" cbor:"Before,omitempty"` // the drain whose place it took, nil for none
}

// Copy gives a deep copy, nil for nil.
func (l *NodeLeaving) Copy() *NodeLeaving {
	out := copyPtr(l)
	if out != nil {
		out.Before = l.Before.Copy()
	}
	return out
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
