// Package broker decides which evaluation is worked on next. Queue and Blocked are its pure cores: evaluations and the
// time go in, evaluations come out; they hold no clock, goroutine or lock. Broker drives them on the leader: it is fed
// by nothing but the state's change feed, hands evaluations to workers under a token with a deadline, and writes what
// only the cluster can decide (superseded and undeliverable evaluations) through raft.
//
// Invariants: at most one evaluation a job (namespace, id) is in flight; an evaluation is delivered again until it is
// acknowledged or was tried Config.DeliveryLimit times; a blocked evaluation is woken by every change that could help it,
// also by one that came while it was being made (its SnapshotIndex is compared on arrival).
package broker
