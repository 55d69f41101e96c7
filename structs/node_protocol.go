package structs

import "time"

// Messages between a node agent and the servers. They travel as CBOR over the node's session and are never on the
// public port.

// NodeRegisterRequest introduces a node, or updates what it says about itself.
type NodeRegisterRequest struct {
	Node  *Node
	Agent string `json:",omitempty"` // that of NodeHeartbeatRequest
}

// NodeHeartbeatRequest says that the node is alive. FreshReport is true once the node has reported the state of all
// its allocations since its session was opened; until then it gets no new placements.
type NodeHeartbeatRequest struct {
	NodeID      string
	SecretID    string
	Status      string // initializing or ready
	FreshReport bool
	// Agent names the process that speaks, by chance anew for each: a node that was leaving is back when another one does.
	Agent string `json:",omitempty"`
}

// NodeHeartbeatResponse answers a registration and a heartbeat.
type NodeHeartbeatResponse struct {
	TTL       time.Duration // the next heartbeat is due within
	Index     uint64
	Servers   []string // host:port of each server's 4647
	Features  []string // what the leader understands beyond the first version
	Known     bool     // false: the servers do not know the node, it must register
	NodeIndex uint64   // ModifyIndex of the node's row
	// Status is the node's in the servers' state. A heartbeat that makes a node ready is answered once that is written, if that
	// does not take long.
	Status string `json:",omitempty"`
}

// AssignmentsRequest is the node's long poll for what it should run.
type AssignmentsRequest struct {
	NodeID   string
	SecretID string
	Epoch    string // restore epoch the node last saw; empty asks for the complete set
	Index    uint64 // AllocModifyIndex up to which the node is current
	Digest   uint64 // AssignmentDigest of the ids which the node holds
	Wait     time.Duration
}

// AssignmentsResponse is a delta from AppliesTo to ResultsIn, or the complete set.
type AssignmentsResponse struct {
	Epoch     string
	Complete  bool
	AppliesTo uint64
	ResultsIn uint64
	// Upsert are allocations new or changed by the servers; Job is nil on the wire, see Jobs.
	Upsert []*Allocation
	// Remove are ids which the servers no longer assign to this node.
	Remove []string
	// Jobs are the specification rows which Upsert refers to (Namespace, ID, JobModifyIndex).
	Jobs   []*Job
	Digest uint64 // over the ids assigned after the delta
}

// AllocObservation is what a node saw of one allocation. It holds observed facts only.
type AllocObservation struct {
	AllocID           string
	ObservedStatus    string // pending, running, complete, failed
	ClientDescription string
	TaskStates        map[string]*TaskState
	DeploymentStatus  *AllocDeploymentStatus
	NetworkStatus     *AllocNetworkStatus
	Fenced            bool `json:",omitempty"` // it ended because its lease had run out
	// Departed says that it was ended because its node goes for good: its work is not done, whatever its tasks came to.
	Departed bool  `json:",omitempty"`
	Time     int64 // unix nanoseconds on the node
}

// NodeAllocsUpdateRequest is a batch of observations.
type NodeAllocsUpdateRequest struct {
	NodeID       string
	SecretID     string
	Observations []*AllocObservation
}

// AssignmentDigest folds allocation ids into an order-independent digest: FNV-1a of each, mixed (the last steps of
// MurmurHash3), summed. Unmixed hashes of ids that differ in their last character alone differ by multiples of one
// number, so that sums of different sets of them could be equal.
func AssignmentDigest(ids func(yield func(string) bool)) uint64 {
	var sum uint64
	for id := range ids {
		h := uint64(14695981039346656037)
		for i := 0; i < len(id); i++ {
			h = (h ^ uint64(id[i])) * 1099511628211
		}
		h = (h ^ h>>33) * 0xff51afd7ed558ccd
		h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
		sum += h ^ h>>33
	}
	return sum
}
