// Package gc finds what nobody needs any more and reaps it: evaluations with their allocations, dead jobs, terminal
// deployments, nodes that are down. Find is the pure core: a state and the time go in, the rows to delete come out.
// Collector drives it on the leader at intervals and when an operator forces it, in raft entries of bounded size.
//
// Invariants: nothing that may still run is deleted; a job's rows go together; a failed allocation that may still be
// rescheduled, one whose group is to get another in its place once there is room, and the allocations of a batch job that
// has not ended, are kept, since the scheduler decides by them.
package gc
