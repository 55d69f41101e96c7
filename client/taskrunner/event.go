package taskrunner

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/restart"
	"github.com/nomadlite/nomadlite/structs"
)

// Task events have a type, the text which command lines and dashboards show, and the same facts as strings in
// Details. Types, texts and names are those of the public interface.

func event(kind, display string, details map[string]string) *structs.TaskEvent {
	if details == nil {
		details = map[string]string{}
	}
	return &structs.TaskEvent{Type: kind, DisplayMessage: display, Details: details}
}

// EventReceived opens the list of each task.
func EventReceived() *structs.TaskEvent {
	return event(structs.TaskReceived, "Task received by client", nil)
}

// EventSetup carries a message about preparing the task, such as "Building Task Directory".
func EventSetup(message string) *structs.TaskEvent {
	e := event(structs.TaskSetup, message, map[string]string{"message": message})
	e.Message = message
	return e
}

// EventTemplate carries a message about the task's templates.
func EventTemplate(message string) *structs.TaskEvent {
	e := event(structs.TaskTemplate, message, map[string]string{"message": message})
	e.Message = message
	return e
}

// EventDownloading says that artifacts are being fetched.
func EventDownloading() *structs.TaskEvent {
	return event(structs.TaskDownloadingArtifacts, "Client is downloading artifacts", nil)
}

// EventDownloadFailed says which artifact could not be fetched, and why.
func EventDownloadFailed(err error) *structs.TaskEvent {
	e := event(structs.TaskArtifactDownloadFailed, err.Error(), map[string]string{"download_error": err.Error()})
	e.DownloadError = err.Error()
	return e
}

// EventSiblingFailed says which task's failure ends this one.
func EventSiblingFailed(sibling string) *structs.TaskEvent {
	e := event(structs.TaskSiblingFailed, fmt.Sprintf("Task's sibling %q failed", sibling),
		map[string]string{"failed_sibling": sibling})
	e.FailedSibling = sibling
	return e
}

// EventLeaderDead says that the leader's end ends this task.
func EventLeaderDead() *structs.TaskEvent {
	return event(structs.TaskLeaderDead, "Leader Task in Group dead", nil)
}

// EventMainDead says that the end of all main tasks ends this sidecar.
func EventMainDead() *structs.TaskEvent {
	return event(structs.TaskMainDead, "Main tasks in the group died", nil)
}

// EventLeaseOver says that no heartbeat was confirmed for as long as the allocation's lease; it fails the task.
func EventLeaseOver() *structs.TaskEvent {
	const message = "Lease has run out: no heartbeat of the node was confirmed in time"
	e := event(structs.TaskKilling, message, map[string]string{"kill_reason": message, "fails_task": "true"})
	e.KillReason, e.FailsTask = message, true
	return e
}

// EventRanTooLong says that the allocation has run for as long as it may; it does not fail the task.
func EventRanTooLong(message string) *structs.TaskEvent {
	e := event(structs.TaskKilling, message, map[string]string{"kill_reason": message})
	e.KillReason = message
	return e
}

// EventNodeLeaving says that the node goes for good; it does not fail the task.
func EventNodeLeaving() *structs.TaskEvent {
	const message = "Node is leaving the cluster"
	e := event(structs.TaskKilling, message, map[string]string{"kill_reason": message})
	e.KillReason = message
	return e
}

// EventGoingDown opens the events of a task's end or of a restart of its allocation, before any of its services has left.
func EventGoingDown() *structs.TaskEvent {
	const message = "Allocation goes down: prestop hooks run"
	e := event(structs.TaskHookMessage, message, map[string]string{"message": message})
	e.Message = message
	return e
}

// EventWaitingForPrevious says whose end the allocation waits for before it begins, and on which node that one ends.
func EventWaitingForPrevious(allocID, nodeName string) *structs.TaskEvent {
	message := fmt.Sprintf("Waiting for previous allocation %.8s on node %s to stop", allocID, nodeName)
	e := event(structs.TaskWaitingPrevious, message,
		map[string]string{"message": message, "previous_alloc": allocID, "node": nodeName})
	e.Message = message
	return e
}

// EventGroupDelay says that the group's shutdown_delay is being waited.
func EventGroupDelay(d time.Duration) *structs.TaskEvent {
	return delayEvent(fmt.Sprintf("Waiting for group shutdown_delay of %s before killing the task.", d))
}

// EventAllocUnhealthy says why the task's allocation is not healthy for its deployment.
func EventAllocUnhealthy(message string) *structs.TaskEvent {
	e := event(structs.TaskAllocUnhealthy, message, map[string]string{"message": message})
	e.Message = message
	return e
}

// EventSkippingDelay says that a shutdown delay is skipped or cut short.
func EventSkippingDelay() *structs.TaskEvent {
	e := event(structs.TaskSkippingShutdownDelay, "Skipping shutdown delay", nil)
	return e
}

// EventSetupFailure says why the task could not be prepared; it fails the task.
func EventSetupFailure(err error) *structs.TaskEvent {
	e := event(structs.TaskSetupFailure, err.Error(), map[string]string{"setup_error": err.Error(), "fails_task": "true"})
	e.SetupError, e.FailsTask = err.Error(), true
	return e
}

func eventTaskDelay(d time.Duration) *structs.TaskEvent {
	return delayEvent(fmt.Sprintf("Waiting for shutdown_delay of %s before killing the task.", d))
}

func delayEvent(message string) *structs.TaskEvent {
	e := event(structs.TaskWaitingShutdownDelay, message, map[string]string{"message": message})
	e.Message = message
	return e
}

func eventStarted() *structs.TaskEvent {
	return event(structs.TaskStarted, "Task started by client", nil)
}

func eventReattached() *structs.TaskEvent {
	return event(structs.TaskReattached, "Task reattached after a restart of the agent", nil)
}

func eventDriver(message string) *structs.TaskEvent {
	e := event(structs.TaskDriverMessage, message, map[string]string{"driver_message": message})
	e.DriverMessage = message
	return e
}

func eventDriverFailure(err error) *structs.TaskEvent {
	e := event(structs.TaskDriverFailure, err.Error(), map[string]string{"driver_error": err.Error()})
	e.DriverError = err.Error()
	return e
}

func eventHookFailed(err error) *structs.TaskEvent {
	e := event(structs.TaskHookFailed, err.Error(), map[string]string{"message": err.Error()})
	e.Message = err.Error()
	return e
}

func eventValidation(err error) *structs.TaskEvent {
	e := event(structs.TaskFailedValidation, err.Error(), map[string]string{"validation_error": err.Error(), "fails_task": "true"})
	e.ValidationError, e.FailsTask = err.Error(), true
	return e
}

func eventTerminated(r *driver.ExitResult) *structs.TaskEvent {
	display := fmt.Sprintf("Exit Code: %d", r.ExitCode)
	if !r.Known {
		display = "Exit Code: unknown"
	}
	if r.Signal != 0 {
		display += fmt.Sprintf(", Signal: %d", r.Signal)
	}
	message := ""
	switch {
	case r.Err != nil:
		message = r.Err.Error()
	case r.OOMKilled:
		message = "OOM Killed"
	}
	if message != "" {
		display += fmt.Sprintf(", Exit Message: %q", message)
	}
	e := event(structs.TaskTerminated, display, map[string]string{
		"exit_code": strconv.Itoa(r.ExitCode), "signal": strconv.Itoa(r.Signal),
		"oom_killed": strconv.FormatBool(r.OOMKilled),
	})
	if message != "" {
		e.Details["exit_message"] = message
	}
	e.ExitCode, e.Signal, e.Message = r.ExitCode, r.Signal, message
	if !r.Known && e.ExitCode == 0 {
		// Whoever reads only the number must not take it for success.
		e.ExitCode = -1
		e.Details["exit_code"] = "-1"
	}
	return e
}

func eventKilling(order *Order, signal string, timeout time.Duration) *structs.TaskEvent {
	asked := "interrupt"
	if signal != "" && signal != driver.DefaultKillSignal {
		asked = signal
	}
	display := fmt.Sprintf("Sent %s. Waiting %v before force killing", asked, timeout)
	if timeout <= 0 {
		display = "Force killing at once"
	}
	e := event(structs.TaskKilling, display, map[string]string{"kill_timeout": timeout.String()})
	e.KillTimeout = timeout
	if order != nil && order.Reason != "" {
		e.KillReason = order.Reason
		e.Details["kill_reason"] = order.Reason
		e.DisplayMessage = "Killing task: " + order.Reason
	}
	return e
}

func eventKilled(err error) *structs.TaskEvent {
	e := event(structs.TaskKilled, "Task successfully killed", nil)
	if err != nil {
		e.KillError = err.Error()
		e.Details["kill_error"] = err.Error()
		e.DisplayMessage = err.Error()
	}
	return e
}

func eventRestarting(d restart.Decision) *structs.TaskEvent {
	display := fmt.Sprintf("Task restarting in %v", d.Delay)
	if d.Reason != "" && d.Reason != structs.ReasonWithinPolicy {
		display = d.Reason + " - " + display
	}
	e := event(structs.TaskRestarting, display, map[string]string{
		"restart_reason": d.Reason, "start_delay": strconv.FormatInt(int64(d.Delay), 10),
	})
	e.RestartReason, e.StartDelay = d.Reason, int64(d.Delay)
	return e
}

func eventNotRestarting(reason string) *structs.TaskEvent {
	e := event(structs.TaskNotRestarting, reason, map[string]string{"restart_reason": reason, "fails_task": "true"})
	e.RestartReason, e.FailsTask = reason, true
	return e
}

func eventRestartSignal(reason string) *structs.TaskEvent {
	display := reason
	if display == "" {
		display = "Task signaled to restart"
	}
	e := event(structs.TaskRestartSignal, display, map[string]string{"restart_reason": reason})
	e.RestartReason = reason
	return e
}

func eventSignaling(signal, reason string) *structs.TaskEvent {
	display := "Task being sent signal " + signal
	if reason != "" {
		display += ": " + reason
	}
	e := event(structs.TaskSignaling, display, map[string]string{"task_signal": signal, "task_signal_reason": reason})
	e.TaskSignal, e.TaskSignalReason = signal, reason
	return e
}

func eventRestoreFailed(err error) *structs.TaskEvent {
	message := fmt.Sprintf("failed to restore task; will not count as success: %v", err)
	e := event(structs.TaskRestoreFailed, message, map[string]string{"message": message})
	e.Message = message
	return e
}
