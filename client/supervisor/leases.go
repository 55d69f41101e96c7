package supervisor

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/internal/boottime"
)

// leases kills the tasks whose leases have run out, whatever becomes of the agent. The moments are the tasks' own; the
// server's mutex guards them.
type leases struct {
	s     *server
	clock boottime.Clock
	timer int // a timerfd: it is not late by the time for which the machine slept
	forks chan func()
	guard *guard
	done  chan struct{}
}

func newLeases(s *server) (*leases, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make timer of leases: %w", err)
	}
	l := &leases{s: s, clock: boottime.System(), timer: fd, forks: make(chan func()), done: make(chan struct{}),
		guard: newGuard(s.logger)}
	if err := s.poller.add(fd, func(buf []byte) {
		_, _ = unix.Read(fd, buf[:8])
		l.due()
	}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	go l.forker()
	return l, nil
}

// forker makes the processes of leased tasks. They are killed when the thread ends that made them, so that must be one
// which lives as long as the supervisor.
func (l *leases) forker() {
	runtime.LockOSThread()
	defer close(l.done)
	defer runtime.UnlockOSThread() // the thread stays all the same
	for f := range l.forks {
		f()
	}
}

// fork runs f on the forker's thread.
func (l *leases) fork(f func() error) error {
	result := make(chan error, 1)
	l.forks <- func() { result <- f() }
	return <-result
}

// close ends the forker; the poller must have ended.
func (l *leases) close() {
	close(l.forks)
	<-l.done
	l.guard.close()
	unix.Close(l.timer)
}

// arm sets the timer to the earliest end of a lease; the caller holds the server's lock.
func (l *leases) arm() {
	now, boot := l.clock.Boot()
	earliest := time.Duration(-1)
	for _, t := range l.s.tasks {
		if !t.rec.Leased || t.over || t.phase >= phaseEnding {
			continue
		}
		at := t.lease.At
		if t.lease.BootID != boot {
			at = now // of another life of the machine
		}
		if earliest < 0 || at < earliest {
			earliest = at
		}
	}
	if earliest < 0 {
		return
	}
	if err := boottime.SetTimerfd(l.timer, earliest); err != nil {
		l.s.logger.Error("cannot set the timer of leases", "error", err)
		l.s.work.Go(l.due)
	}
}

// due kills what has outlived its lease.
func (l *leases) due() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	for _, t := range l.s.tasks {
		if !t.rec.Leased || t.over || t.phase >= phaseEnding || t.lease.Remaining(l.clock) > 0 {
			continue
		}
		t.over = true
		l.s.logger.Warn("the lease of a task has run out, killing it", "task", t.rec.ID, "pid", t.start.PID)
		if t.phase == phaseStarting {
			t.onRun = append(t.onRun, func() { l.s.killTask(t) })
			continue
		}
		l.s.work.Go(func() { l.s.killTask(t) })
	}
	l.arm()
}

// tellGuard makes sure that the guard knows a task which has just been started. It may have ended already.
func (s *server) tellGuard(t *task, info *TaskInfo) {
	s.mu.Lock()
	until := t.lease
	s.mu.Unlock()
	s.leases.guard.tellAndWait(guarded{Task: *info, Until: until})
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.phase == phaseEnded {
		s.leases.guard.tell(guarded{Task: *info, Gone: true})
	}
}

// renew moves leases and gives the tasks that live on under them. One that has run out stays so.
func (l *leases) renew(until map[string]boottime.Deadline) []TaskInfo {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	var out []TaskInfo
	for id, d := range until {
		t := l.s.tasks[id]
		if t == nil || !t.rec.Leased || t.over || t.phase >= phaseEnding || t.lease.Remaining(l.clock) <= 0 {
			continue
		}
		t.lease = d
		l.guard.tell(guarded{Task: *t.info(), Until: d})
		out = append(out, *t.info())
	}
	l.arm()
	return out
}
