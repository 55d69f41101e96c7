package structs

import "time"

// MaxNodeMaintenance is how long a maintenance may be announced for without Force.
const MaxNodeMaintenance = 7 * 24 * time.Hour

// NodeMaintenanceRequest announces a downtime of a node, or ends it.
type NodeMaintenanceRequest struct {
	NodeID  string
	For     time.Duration // from now on; 0 with Disable
	Reason  string
	Disable bool // the maintenance is over
	Force   bool // let For be longer than MaxNodeMaintenance
}

// NodeMaintenanceResponse answers with what is announced now.
type NodeMaintenanceResponse struct {
	NodeModifyIndex uint64
	Maintenance     *NodeMaintenance
}
