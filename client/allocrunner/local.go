package allocrunner

import (
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// Local is the runner's record on disk. Values behind its pointers and in its maps are never changed in place.
type Local struct {
	Made       boottime.Deadline // the moment from which max_run_duration counts
	Prerun     bool              // alloc prerun hooks are done
	Begun      time.Time
	Cause      Cause // why all tasks end
	Prestopped bool
	PreKilled  bool
	Delay      boottime.Deadline // of the group's shutdown_delay
	Delayed    bool              // that wait is over
	// Poststop is, once poststop tasks were let run, how urged the stop was by then (DesiredTransition.Urged).
	Poststop   *uint64
	Done       bool // everything is over, postrun hooks included
	Destroyed  bool // garbage collected: nothing of it is left but this
	RestartAll *RestartAll
	Restarts   uint64 // of the whole allocation that are over
	// Fence is set once the lease has run out: the moment at which all processes are dead.
	Fence     boottime.Deadline
	Health    *structs.AllocDeploymentStatus
	JudgedFor string // the deployment, empty for none, for which Health was found
	Hooks     map[string]hook.Record
}

// RestartAll is a restart of the whole allocation that is under way, with its terms and how far it has come. It is
// gone once all tasks may start again.
type RestartAll struct {
	NoShutdownDelay bool
	KillTimeout     *time.Duration
	Reason          string
	Unhealthy       bool     // nobody asked for it but the checks: the tasks' restart policies decide
	Tasks           []string // that ran when it was asked for; nil means all, those included that have ended
	Prestopped      bool
	PreKilled       bool
	Delay           boottime.Deadline // of the group's shutdown_delay
	Delayed         bool
	Resumed         bool // all are down, and resume hooks are done
}

// concerns says whether the restart is one of this task too.
func (a *RestartAll) concerns(task string) bool {
	return a.Tasks == nil || slices.Contains(a.Tasks, task)
}

// join gives what remains to be done for both requests, on the stricter terms of both. a may be nil.
func (a *RestartAll) join(b RestartAll) *RestartAll {
	if a == nil {
		return &b
	}
	out := *a
	out.NoShutdownDelay = a.NoShutdownDelay || b.NoShutdownDelay
	out.Unhealthy = a.Unhealthy && b.Unhealthy
	if k := b.KillTimeout; k != nil && (out.KillTimeout == nil || *k < *out.KillTimeout) {
		out.KillTimeout = k
	}
	switch {
	case a.Tasks == nil || b.Tasks == nil:
		out.Tasks = nil
	default:
		out.Tasks = slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Tasks, b.Tasks))))
	}
	return &out
}
