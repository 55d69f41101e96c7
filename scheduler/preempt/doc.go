// Package preempt decides which allocations of lower priority end so that another one finds room. Select is pure: the
// candidates on one node and a Room that tells what is still missing go in, the victims come out. Package rank asks it
// about each node on which a placement is feasible but does not fit, and takes the node whose victims matter least.
//
// Invariants: a victim's priority is at least MinDelta lower; without any one of the victims the allocation would not
// fit; no set of victims exists whose highest priority is lower.
package preempt
