// Package state is a server's in-memory database: what the raft log says, as immutable rows that anyone may read
// from a snapshot.
//
// One table has one file, which holds one registered value: its schema and how it is saved to and restored from a
// snapshot, so that no table can be forgotten. Writes come from package fsm alone, one Txn a raft entry, in log
// order; everything else reads. A Txn is deterministic: it knows no clock and no randomness.
//
// Invariants: rows never change once stored, readers may keep them for ever. Allocation.ClientStatus is assigned by
// one function (setClientStatus). Allocation.Job is the specification row which the allocation runs. Summaries, job
// statuses and node usage are changed in the transaction that changes what they are made of. Each commit is
// published once, in order, to the subscribers of the change feed. DESIGN.md tells the rest.
package state
