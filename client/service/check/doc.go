// Package check runs the health checks of services of provider nomad on their node, and keeps their results.
//
// The Board knows the checks of all allocations. The hooks of package service tell it which checks there are and when
// the tasks that they are about run; a check is asked while both hold, so none is asked of a task that is starting,
// stopping or down. One goroutine waits for the next check that is due; a check has a goroutine of its own only while it
// is being asked. What follows from a result (Tally) is pure.
//
// Results serve three: the API, the deployment health of the allocation (Standing), and check_restart. Each change of a
// status is kept on disk, so that a restarted agent goes on with what was known; failures that check_restart counts are
// not, since what happened to a check while nobody was there is no failure of its task.
//
// Invariants: of one check at most one question is under way; the answer to a question asked before a check was stopped
// or changed counts for nothing; the Board's lock is held during no question and no call to others.
package check
