package structs

import "time"

// NodePool is a set of nodes; each node is in one, and in "all".
type NodePool struct {
	Name                   string                          `hcl:"name,label"`
	Description            string                          `hcl:"description,optional"`
	Meta                   map[string]string               `hcl:"meta,block"`
	NodeIdentityTTL        time.Duration                   `hcl:"node_identity_ttl,optional"`
	SchedulerConfiguration *NodePoolSchedulerConfiguration `hcl:"scheduler_config,block"`
	CreateIndex            uint64
	ModifyIndex            uint64
}

// NodePoolSchedulerConfiguration is what the scheduler does differently in a node pool.
type NodePoolSchedulerConfiguration struct {
	SchedulerAlgorithm            string `hcl:"scheduler_algorithm,optional"`
	MemoryOversubscriptionEnabled *bool  `hcl:"memory_oversubscription_enabled,optional"`
}
