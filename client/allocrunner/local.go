package allocrunner

import (
	"time"

	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// Local is the runner's record on disk. Values behind its pointers and in its maps are never changed in place.
type Local struct {
	Prerun     bool // alloc prerun hooks are done
	Begun      time.Time
	Cause      Cause // why all tasks end
	Prestopped bool
	PreKilled  bool
	Delay      boottime.Deadline // of the group's shutdown_delay
	Delayed    bool              // that wait is over
	Done       bool              // everything is over, postrun hooks included
	Destroyed  bool              // garbage collected: nothing of it is left but this
	RestartAll *RestartAll
	// Fence is set once the lease has run out: the moment at which all processes are dead.
	Fence     boottime.Deadline
	Health    *structs.AllocDeploymentStatus
	JudgedFor string // the deployment, empty for none, for which Health was found
	Hooks     map[string]hook.Record
}

// RestartAll is a request to begin all tasks anew, with the terms of ending them.
type RestartAll struct {
	NoShutdownDelay bool
	KillTimeout     *time.Duration
	Reason          string
}
