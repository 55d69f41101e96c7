package structs

import "time"

// Allocation is one placement of a task group on a node. Three facts have three owners: DesiredStatus and
// DesiredTransition belong to the servers, ObservedStatus and TaskStates to the node that runs it, Condition to
// the cluster's inference about what it cannot hear. ClientStatus is always the value of DeriveClientStatus;
// nothing else assigns it.
//
// In the state store Job points at the immutable specification row (Namespace, JobID, JobModifyIndex), shared by
// all allocations of that specification; it is never written to raft with the allocation.
type Allocation struct {
	ID                    string
	Namespace             string
	EvalID                string
	Name                  string
	NodeID                string
	NodeName              string
	JobID                 string
	Job                   *Job `cbor:"-"`
	TaskGroup             string
	Resources             *Resources
	TaskResources         map[string]*Resources
	AllocatedResources    *AllocatedResources
	Services              map[string]string
	Metrics               *AllocationMetric
	DesiredStatus         string
	DesiredDescription    string
	DesiredTransition     DesiredTransition
	ClientStatus          string
	ClientDescription     string
	TaskStates            map[string]*TaskState
	DeploymentID          string
	DeploymentStatus      *AllocDeploymentStatus
	FollowupEvalID        string
	PreviousAllocation    string
	NextAllocation        string
	RescheduleTracker     *RescheduleTracker
	NetworkStatus         *AllocNetworkStatus
	PreemptedAllocations  []string
	PreemptedByAllocation string
	CreateIndex           uint64
	ModifyIndex           uint64
	AllocModifyIndex      uint64
	CreateTime            int64
	ModifyTime            int64

	// ObservedStatus is what the node last reported: pending, running, complete or failed.
	ObservedStatus string
	// Condition is the cluster's inference about an allocation it may not hear.
	Condition Condition
	// Awaits lists the allocations that have to end before this one begins: those whose place it takes and that still
	// stop. The store adds them when it is placed and takes each out in the entry in which it no longer holds back.
	Awaits []AwaitedAlloc `json:",omitempty"`
	// Fenced says that the node itself ended the allocation, because its lease had run out. The node reports it.
	Fenced bool `json:",omitempty"`
	// Departed says that the node ended the allocation because it left for good. The node reports it.
	Departed bool `json:"-" cbor:"Departed,omitempty"`
	// AwaitedBy lists the ids of the allocations that have this one in their Awaits, some of them gone by now.
	AwaitedBy []string `json:"-" cbor:"AwaitedBy,omitempty"`
	// JobVersion and JobModifyIndex name the specification row which the allocation runs.
	JobVersion     uint64 `json:"-" cbor:"JobVersion"`
	JobModifyIndex uint64 `json:"-" cbor:"JobModifyIndex"`
}

// Condition says what the cluster infers about an allocation beyond what its node reported.
type Condition struct {
	Status string    // ok (or empty), away, unknown, lost
	Since  time.Time `json:",omitzero"`
	Until  time.Time `json:",omitzero"` // when an away node is expected back
	Reason string    `json:",omitempty"`
	// Grace says that the silence is likely the servers' own doing: they have a new leader, which waits for the node to
	// find it. What runs there counts as it did, and stays in discovery.
	Grace bool `json:",omitempty"`
}

// AllocationListStub is an allocation as lists show it.
type AllocationListStub struct {
	ID                    string
	EvalID                string
	Name                  string
	Namespace             string
	NodeID                string
	NodeName              string
	JobID                 string
	JobType               string
	JobVersion            uint64
	TaskGroup             string
	AllocatedResources    *AllocatedResources `json:",omitempty"`
	DesiredStatus         string
	DesiredDescription    string
	ClientStatus          string
	ClientDescription     string
	TaskStates            map[string]*TaskState
	DeploymentStatus      *AllocDeploymentStatus
	FollowupEvalID        string
	NextAllocation        string
	RescheduleTracker     *RescheduleTracker
	PreemptedAllocations  []string
	PreemptedByAllocation string
	CreateIndex           uint64
	ModifyIndex           uint64
	CreateTime            int64
	ModifyTime            int64
	// Condition is nil when nothing is inferred that the node did not say itself.
	Condition *Condition `json:",omitempty"`
}

// DesiredTransition is what operators and servers ask of an allocation beside its desired status. The node never
// writes it.
type DesiredTransition struct {
	Migrate                 *bool
	Reschedule              *bool
	ForceReschedule         *bool
	NoShutdownDelay         *bool
	MigrateDisablePlacement *bool
	// KillTimeout shortens the time between kill_signal and SIGKILL for this stop alone.
	KillTimeout *time.Duration `json:",omitempty"`
	// Urged is the index of the newest request that came with a KillTimeout, 0 when none did. A poststop task which runs
	// by then is ended too. Only the state store sets it.
	Urged uint64 `json:"-" cbor:"Urged,omitempty"`
}

// AllocDeploymentStatus is an allocation's part in its deployment: its health, once known, and whether it is a
// canary.
type AllocDeploymentStatus struct {
	Healthy     *bool
	Timestamp   time.Time
	Canary      bool
	ModifyIndex uint64
}

// AllocNetworkStatus is the network which the node made for an allocation.
type AllocNetworkStatus struct {
	InterfaceName string
	Address       string
	AddressIPv6   string
	DNS           *DNSConfig
}

// RescheduleTracker lists the earlier attempts of an allocation that was rescheduled.
type RescheduleTracker struct {
	Events         []*RescheduleEvent
	LastReschedule string
}

// RescheduleEvent is one such attempt; its time is in Unix nanoseconds.
type RescheduleEvent struct {
	RescheduleTime int64
	PrevAllocID    string
	PrevNodeID     string
}

// AllocStopResponse names the evaluation that a stop has made.
type AllocStopResponse struct {
	EvalID string
}

// AllocFileInfo is a file in an allocation's directory; Size is in bytes.
type AllocFileInfo struct {
	Name        string
	IsDir       bool
	Size        int64
	FileMode    string
	ModTime     time.Time
	ContentType string
}

// AllocSignalRequest asks to send a signal to one task, or to all if Task is empty.
type AllocSignalRequest struct {
	Task   string
	Signal string
}

// AllocationRestartRequest asks to restart one task, all running tasks, or with AllTasks those that have ended
// too.
type AllocationRestartRequest struct {
	TaskName string
	AllTasks bool
}
