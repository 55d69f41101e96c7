// Package plan verifies and commits what schedulers decided. Verify is the pure core: a plan, a state and the plans in
// flight go in, what fits comes out. Queue orders waiting plans; Applier takes all that wait (up to 64), verifies
// them one after the other against the newest state plus an overlay of what is not yet committed, and commits what
// fits in one raft entry, while the next ones are already being verified.
//
// Invariants: no node is ever given more than it has, no port twice; an allocation that stops holds its resources
// until it is observed terminal or lost, except toward its own replacement on the same node; a plan of a worker that
// lost its evaluation changes nothing; what of a plan was overtaken by entries before its own is left out of it when it is
// applied (state.FitPlan), and its worker looks again.
package plan
