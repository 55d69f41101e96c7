// Package heartbeat is the leader's duty about nodes it may not hear. Timers is the pure core: beats and the time go
// in, nodes whose time is up come out. Watch decides, also purely, what a missed heartbeat, a return and the end of a
// tolerated disconnection mean for a node and its allocations. Duty drives both on the leader and writes the outcome
// as one NodeStatus command, with the evaluations of every job concerned in the same entry.
//
// Who writes what: the duty writes node status and the allocations' condition; it never writes an observation. A
// change of leader expires no node: every timer begins again with the failover TTL.
package heartbeat
