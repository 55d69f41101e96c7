package taskrunner

import "time"

// Phase is where a task is; it is kept on disk.
type Phase string

// The phases in their usual order. From Poststart to Killing there is a process; a task that is restarted goes from
// Exited through Backoff to Prestart again.
const (
	Waiting   Phase = ""          // not allowed to start yet
	Prestart  Phase = "prestart"  // prestart hooks
	Starting  Phase = "starting"  // the driver starts it
	Poststart Phase = "poststart" // it runs, poststart hooks
	Running   Phase = "running"
	PreKill   Phase = "prekill"  // it is to stop: its services leave discovery
	Delaying  Phase = "delaying" // shutdown_delay
	Killing   Phase = "killing"  // kill_signal was sent, kill_timeout runs
	Exited    Phase = "exited"   // the process has ended, what now is to be decided
	Backoff   Phase = "backoff"  // waits for its restart: a delay, or to be released
	Finishing Phase = "finishing"
	Dead      Phase = "dead"
)

// hasProcess says that a driver knows a process of the task in this phase.
func (p Phase) hasProcess() bool {
	switch p {
	case Poststart, Running, PreKill, Delaying, Killing:
		return true
	}
	return false
}

// step is the one thing to do next.
type step uint8

const (
	idle        step = iota // wait until something arrives, or the time left is over
	begin                   // a new attempt
	park                    // stay down until the next release
	runPrestart             // hooks
	startDriver
	runPoststart
	runPreKill
	beginKill // ask the driver to stop it
	handleExit
	runStop // the last hooks
	over
)

// inputs is what has arrived and what is left of the wait under way.
type inputs struct {
	Released bool // may start
	Stop     bool // is to end for good
	Restart  bool // is to be started anew
	Park     bool // that restart waits for another release once it is down
	Parked   bool // waits for it
	NoDelay  bool // the end or restart under way skips shutdown_delay
	Ended    bool // the process has ended
	KillSent bool // this agent has asked the driver to stop it
	Hold     bool // no start yet: a restarted agent first learns what it should run
	Left     time.Duration
}

// next decides. It is pure, and the same inputs always give the same step, whatever happened before.
func next(p Phase, in inputs) step {
	if p.hasProcess() && in.Ended {
		return handleExit
	}
	switch p {
	case Waiting:
		return firstOf(rule{in.Stop, runStop}, rule{in.Released && !in.Hold, begin})
	case Prestart:
		return firstOf(rule{in.Stop, runStop}, rule{in.Park, park}, rule{!in.Hold, runPrestart})
	case Starting:
		return firstOf(rule{in.Stop, runStop}, rule{in.Park, park}, rule{!in.Hold, startDriver})
	case Poststart:
		return firstOf(rule{in.Stop || in.Restart, runPreKill}, rule{true, runPoststart})
	case Running:
		return firstOf(rule{in.Stop || in.Restart, runPreKill})
	case PreKill:
		return runPreKill
	case Delaying:
		return firstOf(rule{in.NoDelay || in.Left <= 0, beginKill})
	case Killing:
		return firstOf(rule{!in.KillSent, beginKill})
	case Exited:
		return handleExit
	case Backoff:
		return firstOf(rule{in.Stop, runStop}, rule{in.Park, park}, rule{in.Parked, idle}, rule{in.Left <= 0 && !in.Hold, begin})
	case Finishing:
		return runStop
	}
	return over
}

type rule struct {
	when bool
	then step
}

func firstOf(rules ...rule) step {
	for _, r := range rules {
		if r.when {
			return r.then
		}
	}
	return idle
}
