package structs

import "time"

// Node is a machine that runs allocations. The node itself writes what it is (attributes, resources, drivers,
// meta); the servers write status, eligibility, drain and events.
type Node struct {
	ID                    string
	Datacenter            string
	Name                  string
	HTTPAddr              string
	TLSEnabled            bool
	Attributes            map[string]string
	Resources             *Resources
	Reserved              *Resources
	NodeResources         *NodeResources
	ReservedResources     *NodeReservedResources
	Links                 map[string]string
	Meta                  map[string]string
	NodeClass             string
	NodePool              string
	CgroupParent          string
	Drain                 bool
	DrainStrategy         *DrainStrategy
	SchedulingEligibility string
	Status                string
	StatusDescription     string
	StatusUpdatedAt       int64
	Events                []*NodeEvent
	Drivers               map[string]*DriverInfo
	HostVolumes           map[string]*HostVolumeInfo
	GCVolumesOnNodeGC     bool
	HostNetworks          map[string]*HostNetworkInfo
	CSIControllerPlugins  map[string]*CSIInfo
	CSINodePlugins        map[string]*CSIInfo
	LastDrain             *DrainMetadata
	CreateIndex           uint64
	ModifyIndex           uint64
	NodeMaxAllocs         int
	// Lease is what the node gives every allocation that runs there, 0 for none; see TaskGroup.LeaseOn.
	Lease time.Duration `json:",omitempty"`
	// MaxKillTimeout caps the kill_timeout of tasks on the node; 0 when it does not tell.
	MaxKillTimeout time.Duration `json:",omitempty"`
	// Maintenance is the downtime that was announced for the node, nil for none. The servers own it.
	Maintenance *NodeMaintenance `json:",omitempty"`
	// Leaving is what the node gets back when it has left, or is back without having done so; nil when it does not leave.
	Leaving *NodeLeaving `json:"-" cbor:"Leaving,omitempty"`

	// SecretID proves the node's identity on its session; it never leaves the servers and the node.
	SecretID string `json:"-" cbor:"SecretID"`
	// ComputedClass is the hash of everything that feasibility of a class of nodes depends on (ComputeClass).
	ComputedClass string `json:"-" cbor:"ComputedClass"`
}

// NodeListStub is a node as lists show it.
type NodeListStub struct {
	Address               string
	ID                    string
	Attributes            map[string]string `json:",omitempty"`
	Datacenter            string
	Name                  string
	NodeClass             string
	NodePool              string
	Version               string
	Drain                 bool
	SchedulingEligibility string
	Status                string
	StatusDescription     string
	Drivers               map[string]*DriverInfo
	NodeResources         *NodeResources         `json:",omitempty"`
	ReservedResources     *NodeReservedResources `json:",omitempty"`
	LastDrain             *DrainMetadata
	Maintenance           *NodeMaintenance `json:",omitempty"`
	CreateIndex           uint64
	ModifyIndex           uint64
}

// DriverInfo is what a node says about one of its task drivers.
type DriverInfo struct {
	Attributes        map[string]string
	Detected          bool
	Healthy           bool
	HealthDescription string
	UpdateTime        time.Time
}

// NodeEvent is something that happened to a node.
type NodeEvent struct {
	Message     string
	Subsystem   string
	Details     map[string]string
	Timestamp   time.Time
	CreateIndex uint64
}

// DrainStrategy is a drain that goes on; ForceDeadline is zero when there is none.
type DrainStrategy struct {
	DrainSpec
	ForceDeadline time.Time
	StartedAt     time.Time
}

// DrainSpec is how a node is to be drained: a negative deadline forces it at once, zero means no deadline.
type DrainSpec struct {
	Deadline         time.Duration
	IgnoreSystemJobs bool
	// NoShutdownDelay and KillTimeout are options of the stops which this drain causes, and of no others.
	NoShutdownDelay bool           `json:",omitempty"`
	KillTimeout     *time.Duration `json:",omitempty"`
}

// DrainMetadata is what is kept about a node's last drain.
type DrainMetadata struct {
	StartedAt  time.Time
	UpdatedAt  time.Time
	Status     string
	AccessorID string
	Meta       map[string]string
}

// HostVolumeInfo is a directory that a node offers to its tasks.
type HostVolumeInfo struct {
	Path     string
	ReadOnly bool
	ID       string
}

// HostNetworkInfo is a network of a node under a name that ports may ask for.
type HostNetworkInfo struct {
	Name          string
	CIDR          string
	Interface     string
	ReservedPorts string
}

// CSIInfo is a CSI plugin on a node.
type CSIInfo struct {
	PluginID                 string
	AllocID                  string
	Healthy                  bool
	HealthDescription        string
	UpdateTime               time.Time
	RequiresControllerPlugin bool
	RequiresTopologies       bool
	ControllerInfo           *CSIControllerInfo `json:",omitempty"`
	NodeInfo                 *CSINodeInfo       `json:",omitempty"`
}

// CSINodeInfo is what a CSI plugin can do on its node.
type CSINodeInfo struct {
	ID                      string
	MaxVolumes              int64
	AccessibleTopology      *CSITopology
	RequiresNodeStageVolume bool
	SupportsStats           bool
	SupportsExpand          bool
	SupportsCondition       bool
}

// CSIControllerInfo is what a CSI plugin can do as a controller.
type CSIControllerInfo struct {
	SupportsCreateDelete             bool
	SupportsAttachDetach             bool
	SupportsListVolumes              bool
	SupportsGetCapacity              bool
	SupportsCreateDeleteSnapshot     bool
	SupportsListSnapshots            bool
	SupportsClone                    bool
	SupportsReadOnlyAttach           bool
	SupportsExpand                   bool
	SupportsListVolumesAttachedNodes bool
	SupportsCondition                bool
	SupportsGet                      bool
}

// CSITopology is where in a storage system's topology something is.
type CSITopology struct {
	Segments map[string]string `hcl:"segments"`
}

// NodePurgeResponse names the evaluations that the removal of a node has made.
type NodePurgeResponse struct {
	EvalIDs         []string
	EvalCreateIndex uint64
	NodeModifyIndex uint64
}

// NodeDrainUpdateResponse names the evaluations that a drain has made.
type NodeDrainUpdateResponse struct {
	NodeModifyIndex uint64
	EvalIDs         []string
	EvalCreateIndex uint64
}

// NodeUpdateDrainRequest asks to drain a node, or with a nil DrainSpec to end a drain.
type NodeUpdateDrainRequest struct {
	NodeID       string
	DrainSpec    *DrainSpec
	MarkEligible bool
	Meta         map[string]string
}

// NodeEligibilityUpdateResponse names the evaluations that a change of eligibility has made.
type NodeEligibilityUpdateResponse struct {
	NodeModifyIndex uint64
	EvalIDs         []string
	EvalCreateIndex uint64
}

// NodeUpdateEligibilityRequest asks to let a node get new allocations or not.
type NodeUpdateEligibilityRequest struct {
	NodeID      string
	Eligibility string
}
