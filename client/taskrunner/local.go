package taskrunner

import (
	"errors"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/restart"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// Local is the task's record on disk. Values behind its pointers and in its maps are never changed in place.
type Local struct {
	Phase    Phase
	State    *structs.TaskState
	Attempt  uint64 // starts so far, the one under way included
	Released bool
	Handle   *driver.Handle
	Exit     *Exit
	Memory   restart.Memory
	// Until ends the wait of the phase: shutdown_delay, kill_timeout or the delay before a restart.
	Until   boottime.Deadline
	Stop    *Order // the task is to end for good
	Restart *Order // the task is to be started anew
	Parked  bool   // it is down for that, and waits in Backoff to be released again
	Hooks   map[string]hook.Record
}

// Order is a request to end the process, with the terms of this one end.
type Order struct {
	NoShutdownDelay bool
	KillTimeout     *time.Duration
	Reason          string // shown with the Killing event; empty for an ordinary stop
	Quiet           bool   // the reason's own event was emitted already
	// Park says of a restart that the task, once down, waits to be released: the whole allocation goes down first.
	Park bool
	// Unhealthy says of a restart that nobody asked for it but the task's checks: its restart policy decides, as after a
	// failure.
	Unhealthy bool
}

// hasten gives o with the stricter terms of both.
func (o *Order) hasten(other Order) *Order {
	out := other
	if o != nil {
		out = *o
		out.NoShutdownDelay = o.NoShutdownDelay || other.NoShutdownDelay
		out.Park = o.Park || other.Park
		out.Unhealthy = o.Unhealthy && other.Unhealthy // whoever asks for a restart gets it
		if k := other.KillTimeout; k != nil && (out.KillTimeout == nil || *k < *out.KillTimeout) {
			out.KillTimeout = k
		}
	}
	return &out
}

// sameTerms says that hastening changed nothing.
func (o *Order) sameTerms(other *Order) bool {
	if o == nil || other == nil {
		return o == other
	}
	sameTimeout := (o.KillTimeout == nil) == (other.KillTimeout == nil) &&
		structs.Val(o.KillTimeout) == structs.Val(other.KillTimeout)
	return o.NoShutdownDelay == other.NoShutdownDelay && sameTimeout
}

// Exit is how the process ended, in a form for the disk.
type Exit struct {
	Code      int
	Signal    int
	OOMKilled bool
	Known     bool
	Message   string
	At        time.Time
}

func exitOf(r *driver.ExitResult) *Exit {
	e := &Exit{Code: r.ExitCode, Signal: r.Signal, OOMKilled: r.OOMKilled, Known: r.Known, At: r.At}
	if r.Err != nil {
		e.Message = r.Err.Error()
	}
	return e
}

// Result is the exit in the form which drivers use and hooks get.
func (e *Exit) Result() *driver.ExitResult {
	if e == nil {
		return nil
	}
	r := &driver.ExitResult{ExitCode: e.Code, Signal: e.Signal, OOMKilled: e.OOMKilled, Known: e.Known, At: e.At}
	if e.Message != "" {
		r.Err = errors.New(e.Message)
	}
	return r
}

// order is the request which governs an end that is under way.
func (l *Local) order() *Order {
	if l.Stop != nil {
		return l.Stop
	}
	return l.Restart
}

// parking says that the task goes down for a restart of the whole allocation.
func (l *Local) parking() bool { return l.Restart != nil && l.Restart.Park }

// maxEvents is how many events of a task are kept, the latest ones.
const maxEvents = 10

// withEvents gives a copy of s with events appended.
func withEvents(s *structs.TaskState, events ...*structs.TaskEvent) *structs.TaskState {
	out := *s
	out.Events = append(slices.Clone(s.Events), events...)
	if n := len(out.Events); n > maxEvents {
		out.Events = slices.Clone(out.Events[n-maxEvents:])
	}
	for _, e := range events {
		out.Failed = out.Failed || e.FailsTask
	}
	return &out
}
