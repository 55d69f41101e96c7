// Package taskrunner drives one task of an allocation: prestart hooks, start, wait, stop, restart policy, until it is
// over. The alloc runner makes it, says when it may start, asks it to end or restart, and reads its state.
//
// The next step is a pure function of the phase, which is kept on disk, and of what has arrived meanwhile (phase.go).
// One goroutine takes the steps; a second waits for the process while it runs. Every change of the record is written
// before what follows from it is reported. A restarted agent makes the runner from the record and goes on at the same
// step: a running process is taken over by its driver, a wait has its deadline, hooks that were done are not repeated.
//
// The runner is the only writer of its task's TaskState.
package taskrunner
