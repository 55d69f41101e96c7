// Package deploy is the leader's duty about deployments, the roll-outs of job versions. Rollouts is the pure core:
// deployments, the health of their allocations, ended evaluations and the time go in; what is due comes out. Duty drives
// it from the state's change feed and writes what is due to the log.
//
// Three things are ever due. When an allocation's health was reported, the job is evaluated, and the scheduler goes on with
// the roll-out or ends it: one evaluation at once, and one more for all that was reported while that one was under way.
// And a deployment fails, in one entry together with an evaluation: at its first unhealthy allocation when its group has
// no progress deadline (progress_deadline = 0), else when that deadline passes without another healthy one; the same entry
// takes the job back to its last stable version when a group that failed asks for that (auto_revert). And canaries
// are promoted when all of them are healthy and the job wants that without asking (auto_promote).
//
// Who writes what: the counts of a deployment belong to package state, its end as successful or cancelled to the
// scheduler's plans, its failure and the promotion without asking to this duty. The duty keeps nothing: a new leader
// reads what it needs from the state, and every evaluation it makes may come twice.
package deploy
