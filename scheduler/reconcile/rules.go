package reconcile

import "github.com/nomadlite/nomadlite/structs"

// Bucket is what becomes of an allocation.
type Bucket string

// The buckets. Those under "slot" hold one of the group's places.
const (
	Ignore       Bucket = "ignore"        // it is of no more concern
	Stopping     Bucket = "stopping"      // it was told to stop and has not ended yet
	LoseStopping Bucket = "lose-stopping" // as before, but nobody will hear of its end: give it up
	Unwanted     Bucket = "unwanted"      // to be stopped
	Lose         Bucket = "lose"          // give it up, nothing takes its place

	Keep      Bucket = "keep"       // slot: runs, or is about to
	Done      Bucket = "done"       // slot: a batch allocation that did its work
	Exhausted Bucket = "exhausted"  // slot: ended or lost, its group allows no replacement
	Later     Bucket = "later"      // slot: ended, to be replaced at a later time
	Hold      Bucket = "hold"       // slot: cannot be heard, nothing takes its place meanwhile
	Migrate   Bucket = "migrate"    // slot: to be stopped and placed elsewhere
	Lost      Bucket = "lost"       // slot: given up and placed anew
	Again     Bucket = "reschedule" // slot: ended, to be placed anew now
	Unknown   Bucket = "unknown"    // slot: cannot be heard, a replacement runs meanwhile
)

// Reasons that become a DesiredDescription, as the public API shows them.
const (
	reasonNotNeeded   = "alloc not needed due to job update"
	reasonUpdating    = "alloc is being updated due to job update"
	reasonLost        = "alloc is lost since its node is down"
	reasonUnknown     = "alloc is unknown since its node is disconnected"
	reasonMigrating   = "alloc is being migrated"
	reasonRescheduled = "alloc was rescheduled because it failed"
	reasonEnded       = "alloc was rescheduled because it ended"
	reasonFenced      = "alloc was ended by its node, which could not reach the servers"
	reasonNodeLeft    = "alloc was ended by its node, which left the cluster"
	reasonReconnected = "alloc not needed due to disconnected client reconnect"
)

// rule is one line of the table.
type rule struct {
	name   string
	when   func(*subject) bool
	bucket Bucket
	reason string
}

// rules classify an allocation; the first whose condition holds decides. The order is: what has ended or was told to,
// what nobody wants, what ended by itself, what cannot be heard, what was asked to move, the rest.
var rules = []rule{
	// Ended, or told to end.
	{"work done", func(s *subject) bool {
		return !s.jobGone() && s.in.Batch && s.ranToEnd() && s.sameVersion() && !s.replaced()
	},
		Done, "ran to its end"},
	{"work of an earlier version", func(s *subject) bool { return s.in.Batch && s.ended() && !s.sameVersion() && !s.conditionLost() },
		Ignore, "ended under an earlier version of the job"},
	{"ended by a drain", func(s *subject) bool { return s.drainedForGood() },
		Done, "was ended by a drain, its work is not done again"},
	{"told to stop, ended", func(s *subject) bool { return s.wantedToEnd() && s.ended() },
		Ignore, "stopped"},
	{"told to stop, node down", func(s *subject) bool { return s.wantedToEnd() && s.unheardForGood() },
		LoseStopping, reasonLost},
	{"told to stop", func(s *subject) bool { return s.wantedToEnd() },
		Stopping, "is stopping"},
	{"given up and replaced", func(s *subject) bool { return s.conditionLost() && s.replaced() },
		Lose, reasonLost},
	{"ended and replaced", func(s *subject) bool { return s.ended() && s.replaced() },
		Ignore, "was replaced"},

	// Nobody wants it.
	{"not wanted, ended", func(s *subject) bool { return s.jobGone() && s.ended() && !s.conditionLost() },
		Ignore, "ended before its job did"},
	{"not wanted, node down", func(s *subject) bool {
		return s.jobGone() && (s.conditionLost() || s.nodeDown() && !s.away() && !s.fenced())
	},
		Lose, reasonLost},
	{"not wanted", func(s *subject) bool { return s.jobGone() },
		Unwanted, reasonNotNeeded},

	// Ended by itself, or was given up.
	{"given up, never replaced", func(s *subject) bool { return s.conditionLost() && !s.terms.replace },
		Exhausted, "is lost, its group does not want a replacement"},
	{"given up", func(s *subject) bool { return s.conditionLost() },
		Lost, reasonLost},
	// The cluster would have given it up and replaced it, had its node not come back first.
	{"ended by its fence", func(s *subject) bool { return s.endedByFence() },
		Again, reasonFenced},
	{"ended since its node left", func(s *subject) bool { return s.endedByLeaving() },
		Again, reasonNodeLeft},
	{"ended, asked to move", func(s *subject) bool { return s.ended() && s.askedToMove() },
		Again, reasonRescheduled},
	// A rollout that failed is not to be tried again and again by the policy: the next version, or an operator who asks for
	// the allocation to be rescheduled, decides what comes. One that is held goes on when it is resumed.
	{"ended, its deployment failed", func(s *subject) bool { return s.ended() && s.rollout() == structs.DeploymentStatusFailed },
		Exhausted, "ended, its deployment failed"},
	{"ended, its deployment is paused", func(s *subject) bool { return s.ended() && s.rollout() == structs.DeploymentStatusPaused },
		Exhausted, "ended, its deployment is paused"},
	{"failed, due", func(s *subject) bool { return s.failed() && s.dueNow() },
		Again, reasonRescheduled},
	// A service is wanted for ever. That it ended well is no reason to start it again and again without a pause.
	{"complete, due", func(s *subject) bool { return s.ended() && s.dueNow() },
		Again, reasonEnded},
	{"ended, due later", func(s *subject) bool { return s.ended() && s.dueLater() },
		Later, "ended, is rescheduled later"},
	{"ended, no more attempts", func(s *subject) bool { return s.ended() },
		Exhausted, "ended, its reschedule policy allows no more attempts"},

	// Its node cannot be heard.
	{"node expected back", func(s *subject) bool { return s.nodeUnheard() && !s.nodeGone() && s.away() },
		Keep, "its node is expected back"},
	{"fence not closed", func(s *subject) bool { return s.nodeUnheard() && !s.nodeGone() && s.fenced() },
		Hold, reasonUnknown},
	{"node gone", func(s *subject) bool { return s.nodeGone() },
		Lost, reasonLost},
	{"never replaced", func(s *subject) bool { return s.nodeUnheard() && !s.terms.replace },
		Hold, reasonUnknown},
	{"node down", func(s *subject) bool { return s.nodeDown() },
		Lost, reasonLost},
	{"disconnected, patient", func(s *subject) bool { return s.nodeDisconnected() && s.patient() },
		Unknown, reasonUnknown},
	{"disconnected, out of patience", func(s *subject) bool { return s.nodeDisconnected() },
		Lost, reasonLost},

	// It is heard and runs.
	// Leave to be rescheduled is for when it has ended.
	{"asked to move", func(s *subject) bool { return s.alloc.DesiredTransition.ShouldMigrate() },
		Migrate, reasonMigrating},
	{"runs", func(*subject) bool { return true },
		Keep, "runs"},
}

// firstMatch gives the first rule that holds; the last rule of a table always does.
func firstMatch(table []rule, s *subject) *rule {
	for i := range table {
		if table[i].when(s) {
			return &table[i]
		}
	}
	return &table[len(table)-1]
}
