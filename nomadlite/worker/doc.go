// Package worker processes evaluations: a pool of workers dequeues, waits until this server's state is at least as new
// as the evaluation, runs its scheduler over a snapshot and acknowledges. A session is one evaluation under way; it is
// the scheduler's Planner.
//
// A worker decides about one evaluation at a time and goes on with the next as soon as a decision is on its way into the log:
// several are under way at once, fewer where their plans meet (window). Who decides counts in the plans of this pool that
// are not written yet (ledger). That is an estimate, so that nothing is blocked and nobody evicted by it.
//
// Invariants: a worker writes nothing for an evaluation whose token is not in flight any more; an evaluation that
// takes long keeps its delivery by renewing it; a scheduler that panics costs one delivery, not the server.
package worker
