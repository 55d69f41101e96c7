// Package feasible says where a group may run at all: which nodes are in its scope (ready, in one of its datacenters,
// in its node pool) and which of them pass its filters (drivers, constraints, host volumes, host networks, devices).
//
// Only the generic scheduler calls it. Every answer is a pure function of the job and the node. Nodes of one
// ComputedClass are alike in everything that a filter looks at unless its target is unique to a node; so a filter is
// asked once a class, and only the filters that escape the class are asked for each node.
package feasible
