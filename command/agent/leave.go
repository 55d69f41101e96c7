package agent

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Signalled is the cause of a context that a signal has ended.
type Signalled struct{ Signal os.Signal }

func (s *Signalled) Error() string { return fmt.Sprintf("got signal %s", s.Signal) }

// leavesOn says whether node and server leave the cluster for good when the agent ends by cause.
func (s *Settings) leavesOn(cause error) bool {
	var by *Signalled
	if !errors.As(cause, &by) || s.Dev {
		return false
	}
	switch by.Signal {
	case os.Interrupt:
		return structs.Val(s.Config.LeaveOnInterrupt)
	case syscall.SIGTERM:
		return structs.Val(s.Config.LeaveOnTerminate)
	}
	return false
}

// expectsBack says whether the agent ends by a signal that is not to take its node out of the cluster.
func (s *Settings) expectsBack(cause error) bool {
	var by *Signalled
	return errors.As(cause, &by) && !s.Dev && !s.leavesOn(cause)
}

// expectBack reads for how long a node is expected to be away when its agent ends. leaves says that it leaves for good.
func (r *resolver) expectBack(leaves bool) time.Duration {
	d := r.duration("expect_back", r.c.ExpectBack)
	switch {
	case d > structs.MaxNodeMaintenance:
		r.faults.Addf("expect_back: %s is longer than the %s for which a node may be expected back", d, structs.MaxNodeMaintenance)
	case d > 0 && leaves:
		r.faults.Addf("expect_back: a node that leaves for good (leave_on_interrupt, leave_on_terminate) is not expected back")
	}
	return d
}

// defaultDrain is the deadline of drain_on_shutdown unless set.
const defaultDrain = time.Hour

// leaving reads what is to happen when the node leaves.
func (r *resolver) leaving(s *Settings) {
	deadline := r.duration("leave_deadline", r.c.LeaveDeadline)
	wanted := structs.Val(r.c.LeaveOnInterrupt) || structs.Val(r.c.LeaveOnTerminate)
	if s.Client == nil {
		return
	}
	s.Client.LeaveDeadline = deadline
	s.Client.ExpectBack = r.expectBack(wanted)
	if r.c.Client == nil || r.c.Client.DrainOnShutdown == nil {
		return
	}
	if !wanted {
		r.faults.Addf("client.drain_on_shutdown: it needs leave_on_interrupt or leave_on_terminate")
	}
	in := r.c.Client.DrainOnShutdown
	spec := &structs.DrainSpec{Deadline: r.duration("client.drain_on_shutdown.deadline", in.Deadline),
		IgnoreSystemJobs: structs.Val(in.IgnoreSystemJobs)}
	if spec.Deadline == 0 {
		spec.Deadline = defaultDrain
	}
	if structs.Val(in.Force) {
		spec.Deadline = -1
	}
	s.Client.DrainOnShutdown = spec
}
