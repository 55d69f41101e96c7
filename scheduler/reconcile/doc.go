// Package reconcile says what should change: it compares what a job wants with the allocations it has and with what is
// known of their nodes, and answers with stops, placements, updates and follow-up evaluations.
//
// It is pure: values and the time go in, values come out. Only the generic scheduler calls it, once for each attempt.
// Every decision is a rule of an ordered table (condition, bucket, reason), the first match wins, and the reason goes
// along into the plan. Running it again on its own result changes nothing more.
//
// Invariants: names are unique among the live allocations of a job that it does not replace (canaries and
// disconnect.replace aside); a replacement names the allocation that it follows (PreviousAllocation), so that the node
// can wait for that one's end; an allocation whose node cannot be heard is never assumed to have ended, it is lost by
// the terms of its group only.
package reconcile
