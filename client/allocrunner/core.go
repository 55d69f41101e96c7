package allocrunner

import (
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// role is a task's place in the lifecycle.
type role uint8

const (
	roleMain role = iota
	rolePrestart
	rolePrestartSidecar
	rolePoststart
	rolePoststartSidecar
	rolePoststop
)

func roleOf(t *structs.Task) role {
	if t.Lifecycle == nil {
		return roleMain
	}
	switch t.Lifecycle.Hook {
	case structs.TaskLifecyclePrestart:
		if t.Lifecycle.Sidecar {
			return rolePrestartSidecar
		}
		return rolePrestart
	case structs.TaskLifecyclePoststart:
		if t.Lifecycle.Sidecar {
			return rolePoststartSidecar
		}
		return rolePoststart
	case structs.TaskLifecyclePoststop:
		return rolePoststop
	}
	return roleMain
}

func (r role) sidecar() bool { return r == rolePrestartSidecar || r == rolePoststartSidecar }

// taskView is what the core sees of a task.
type taskView struct {
	Name     string
	Role     role
	Leader   bool
	Waiting  bool // may not start: was never released, or is down for a restart of the allocation
	Running  bool
	Process  bool // was released and is not over: it may have a process
	Dead     bool
	Failed   bool
	Ran      bool // has ever been started
	Stopping bool // was asked to end
	Held     bool // was released but has not begun: the node's lease holds it, say
	Parking  bool // was asked to go down for a restart of the allocation
}

// Cause says why all tasks end.
type Cause string

// The causes. Stopped is the servers' wish, the others the allocation's own course.
const (
	NotEnding    Cause = ""
	Stopped      Cause = "stopped"
	TaskFailed   Cause = "task failed"
	LeaderDead   Cause = "leader dead"
	MainDead     Cause = "main dead"
	PrerunFailed Cause = "prerun failed"
	LeaseOver    Cause = "lease over"
	RanTooLong   Cause = "ran too long"
	AgentLeaving Cause = "agent leaving" // its node goes for good, or a dev agent takes its allocations with it
)

// view is everything the core decides on.
type view struct {
	Record   Local
	Stop     bool // the servers want it stopped
	Leave    bool // a dev agent is leaving: everything ends, nothing more begins
	Fenced   bool // its lease has run out
	Overdue  bool // it has run for max_run_duration
	Depart   bool // the node goes for good: everything ends in the ordinary order
	NoDelay  bool
	Urged    uint64        // how urged the stop is; 0 without a kill timeout of its own
	Delay    time.Duration // the group's shutdown_delay
	Left     time.Duration // of that wait, when it is under way
	Previous bool          // an allocation whose place this one takes has not ended
	Tasks    []taskView
}

// act is what to do next.
type act uint8

const (
	wait       act = iota // for a change, or until left is over
	endTasks              // note the cause; from then on all tasks end
	runPrerun             // alloc hooks
	release               // let tasks start
	runPrestop            // alloc hooks, then the tasks'
	runPreKill            // alloc hooks
	beginDelay            // write the deadline of shutdown_delay
	endDelay              // it is over, skipped or cut short
	kill                  // ask tasks to end
	park                  // ask tasks to go down for a restart
	runResume             // alloc hooks, when all are down for it
	resetTasks            // then they may begin anew
	runPostrun
	finished // nothing ever happens any more
)

type decision struct {
	Act   act
	Cause Cause    // of endTasks
	Task  string   // whose failure is the cause
	Tasks []string // of release, kill and park
	Left  time.Duration
}

// decide gives the next thing to do. It is pure.
func decide(v view) decision {
	switch {
	case v.Record.Done:
		return decision{Act: finished}
	case v.Record.Cause == NotEnding:
		return decideRunning(v)
	}
	return decideEnding(v)
}

func decideRunning(v view) decision {
	switch {
	case v.Stop:
		return decision{Act: endTasks, Cause: Stopped}
	case v.Leave, v.Depart:
		return decision{Act: endTasks, Cause: AgentLeaving}
	case v.Fenced:
		return decision{Act: endTasks, Cause: LeaseOver}
	case v.Overdue && !mainsOver(v.Tasks):
		return decision{Act: endTasks, Cause: RanTooLong}
	}
	i := slices.IndexFunc(v.Tasks, func(t taskView) bool { return t.Dead && t.Failed })
	// Whoever asks for a restart has it also of what failed; after one that checks asked for the restart policy has decided.
	if all := v.Record.RestartAll; all != nil && (i < 0 || !all.Unhealthy) {
		return decideRestart(v)
	}
	if i >= 0 {
		return decision{Act: endTasks, Cause: TaskFailed, Task: v.Tasks[i].Name}
	}
	if slices.ContainsFunc(v.Tasks, func(t taskView) bool { return t.Leader && t.Dead }) {
		return decision{Act: endTasks, Cause: LeaderDead}
	}
	switch {
	case mainsOver(v.Tasks):
		return decision{Act: endTasks, Cause: MainDead}
	case v.Previous:
		return decision{Act: wait}
	case !v.Record.Prerun:
		return decision{Act: runPrerun}
	}
	if ready := releasable(v.Tasks); len(ready) > 0 {
		return decision{Act: release, Tasks: ready}
	}
	return decision{Act: wait}
}

// mainsOver says that all main tasks have ended; in a group without any, that all but poststop tasks have.
func mainsOver(tasks []taskView) bool {
	hasMain := slices.ContainsFunc(tasks, func(t taskView) bool { return t.Role == roleMain })
	return !slices.ContainsFunc(tasks, func(t taskView) bool {
		return !t.Dead && t.Role != rolePoststop && (t.Role == roleMain || !hasMain)
	})
}

// releasable lists the waiting tasks whose turn it is: prestart tasks at once; main tasks when ephemeral prestart
// tasks have succeeded and prestart sidecars run; poststart tasks when all main tasks run.
func releasable(tasks []taskView) []string {
	prestartOver, mainsRun := true, true
	for _, t := range tasks {
		switch t.Role {
		case rolePrestart:
			prestartOver = prestartOver && t.Dead && !t.Failed
		case rolePrestartSidecar:
			prestartOver = prestartOver && t.Running
		case roleMain:
			mainsRun = mainsRun && (t.Running || t.Dead)
		}
	}
	var ready []string
	for _, t := range tasks {
		if !t.Waiting {
			continue
		}
		switch t.Role {
		case rolePrestart, rolePrestartSidecar:
			ready = append(ready, t.Name)
		case roleMain:
			if prestartOver {
				ready = append(ready, t.Name)
			}
		case rolePoststart, rolePoststartSidecar:
			if mainsRun {
				ready = append(ready, t.Name)
			}
		}
	}
	return ready
}

func decideEnding(v view) decision {
	alive := slices.ContainsFunc(v.Tasks, func(t taskView) bool { return !t.Dead && t.Role != rolePoststop })
	process := slices.ContainsFunc(v.Tasks, func(t taskView) bool { return t.Process && t.Role != rolePoststop })
	switch {
	case !alive:
		return decideEnded(v)
	case !v.Record.Prestopped && v.Record.Prerun:
		return decision{Act: runPrestop}
	case !v.Record.PreKilled && v.Record.Prerun:
		return decision{Act: runPreKill}
	}
	if d := decideDelay(v, v.Record.Delayed || !process, v.Record.Delay); d.Act != wait || d.Left > 0 {
		return d
	}
	return killInOrder(v.Tasks)
}

// decideDelay gives what the group's shutdown_delay asks for; to wait for nothing when it is over or there is none.
// Tasks that have no process need none.
func decideDelay(v view, done bool, deadline boottime.Deadline) decision {
	switch {
	case done || v.Delay <= 0:
		return decision{Act: wait}
	case v.NoDelay || v.Leave:
		return decision{Act: endDelay}
	case deadline.IsZero():
		return decision{Act: beginDelay}
	case v.Left > 0:
		return decision{Act: wait, Left: v.Left}
	}
	return decision{Act: endDelay}
}

// killInOrder asks the tasks of the first tier that still lives: the leader, then main and ephemeral tasks, then
// sidecars.
func killInOrder(tasks []taskView) decision {
	tiers := []func(taskView) bool{
		func(t taskView) bool { return t.Leader },
		func(t taskView) bool { return !t.Role.sidecar() },
		func(t taskView) bool { return true },
	}
	for _, in := range tiers {
		var ask []string
		alive := false
		for _, t := range tasks {
			if t.Dead || t.Role == rolePoststop || !in(t) {
				continue
			}
			alive = true
			if !t.Stopping {
				ask = append(ask, t.Name)
			}
		}
		if len(ask) > 0 {
			return decision{Act: kill, Tasks: ask}
		}
		if alive {
			break
		}
	}
	return decision{Act: wait}
}

// decideEnded comes when all but poststop tasks have ended. Those run when there is something to run after, for as long as
// they like: only who is urged while they run already ends them.
func decideEnded(v view) decision {
	ran := slices.ContainsFunc(v.Tasks, func(t taskView) bool { return t.Ran })
	urged := v.Record.Poststop != nil && v.Urged > *v.Record.Poststop
	var start, drop []string
	alive := false
	for _, t := range v.Tasks {
		if t.Role != rolePoststop || t.Dead {
			continue
		}
		alive = true
		switch {
		case !ran || v.Leave || v.Record.Cause == RanTooLong:
			if !t.Stopping {
				drop = append(drop, t.Name)
			}
		case t.Waiting:
			start = append(start, t.Name)
		case urged && !t.Stopping:
			drop = append(drop, t.Name)
		}
	}
	switch {
	case len(drop) > 0:
		return decision{Act: kill, Tasks: drop}
	case len(start) > 0 && v.Record.Prerun && !v.Record.PreKilled:
		return decision{Act: runPreKill} // all ended by themselves: services leave before poststop tasks run
	case len(start) > 0:
		return decision{Act: release, Tasks: start}
	case alive:
		return decision{Act: wait}
	}
	return decision{Act: runPostrun}
}

// decideRestart brings the tasks down in the order of a stop and then lets them begin anew.
func decideRestart(v view) decision {
	restart := v.Record.RestartAll
	var up []taskView // what is to go down
	process := false
	for _, t := range v.Tasks {
		if !t.Dead && !t.Waiting && !t.Held && t.Role != rolePoststop && restart.concerns(t.Name) {
			t.Stopping = t.Stopping || t.Parking
			up, process = append(up, t), process || t.Process
		}
	}
	switch {
	case len(up) == 0 && !restart.Resumed && v.Record.Prerun:
		return decision{Act: runResume}
	case len(up) == 0:
		return decision{Act: resetTasks}
	case !restart.Prestopped && v.Record.Prerun:
		return decision{Act: runPrestop}
	case !restart.PreKilled && v.Record.Prerun:
		return decision{Act: runPreKill}
	}
	if d := decideDelay(v, restart.Delayed || !process, restart.Delay); d.Act != wait || d.Left > 0 {
		return d
	}
	d := killInOrder(up)
	if d.Act == kill {
		d.Act = park
	}
	return d
}
