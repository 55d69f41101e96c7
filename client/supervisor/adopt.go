package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const lockName = "lock"

// lockDir takes a directory's lock, which dies with its holder. It gives nil when another has it.
func lockDir(dir string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		err = unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("take lock: %w", err)
}

// lockDead takes the lock of a supervisor that is gone; nil when it lives. One that was killed while it made a process
// leaves that process with the lock until it executes its program.
func lockDead(dir, name string) (*os.File, error) {
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		lock, err := lockDir(dir, false)
		if lock != nil || err != nil || lives(name) || time.Now().After(deadline) {
			return lock, err
		}
	}
}

// adoptAll takes over the records of supervisors that are gone, one directory each, and the tasks in them.
func (s *server) adoptAll() error {
	// Two that start together must not divide a directory between them.
	all, err := lockDir(s.base, true)
	if err != nil {
		return err
	}
	defer all.Close()
	entries, err := os.ReadDir(s.base)
	if err != nil {
		return fmt.Errorf("list supervisors: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), dirPrefix) || e.Name() == s.name {
			continue
		}
		dir := filepath.Join(s.base, e.Name())
		lock, err := lockDead(dir, e.Name())
		if err != nil {
			s.logger.Warn("cannot look at directory of another supervisor", "dir", dir, "error", err)
			continue
		}
		if lock == nil {
			continue // it lives
		}
		if err := s.adoptDir(dir); err != nil {
			s.logger.Error("cannot take over the tasks of another supervisor", "dir", dir, "error", err)
		} else {
			s.removeEmptied(dir, filepath.Join(s.base, e.Name()+socketSuffix))
		}
		lock.Close()
	}
	return nil
}

// removeEmptied removes what a supervisor left whose tasks were taken over. What stays is looked at again by the next.
func (s *server) removeEmptied(dir, socket string) {
	err := os.RemoveAll(dir)
	if gone := os.Remove(socket); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	if err != nil {
		s.logger.Warn("cannot remove what another supervisor left", "dir", dir, "error", err)
	}
}

func (s *server) adoptDir(dir string) error {
	paths, err := recordsIn(dir)
	if err != nil {
		return err
	}
	for _, path := range paths {
		own := filepath.Join(s.dir, filepath.Base(path))
		// The name is the task's identity: whoever has the file has the task.
		if err := os.Rename(path, own); err != nil {
			return fmt.Errorf("take over record: %w", err)
		}
		rec, err := readRecord(own)
		if err != nil {
			s.mend(own, err)
			continue
		}
		s.adopt(own, rec)
	}
	return nil
}

// adopt takes over one task. It runs on if exactly the process that was started still does; otherwise how it ended
// is unknown unless the record tells.
func (s *server) adopt(path string, rec record) {
	t := &task{rec: *rec.Task, path: path, pidfd: -1, adopt: true, phase: phaseRunning}
	if rec.Started != nil {
		t.start = *rec.Started
	}
	if rec.Exit != nil {
		t.exit, t.phase = rec.Exit, phaseEnded
		s.tasks[t.rec.ID] = t
		return
	}
	s.tasks[t.rec.ID] = t
	gone := func(why string) {
		if t.rec.BootID != s.bootID {
			t.rec.Cgroup, t.rec.Cgroups = "", nil // of another life of the machine, as are all numbers of processes
			t.rec.Marks = nil
			t.start.PID = 0
		}
		s.logger.Warn("adopted task has ended", "task", t.rec.ID, "why", why)
		s.ended(t, Exit{Error: why, At: time.Now()})
	}
	switch {
	case t.rec.BootID != s.bootID:
		gone("the machine was restarted")
		return
	case rec.Started == nil:
		gone("the supervisor died while starting it")
		return
	}
	for _, fifo := range []string{t.rec.StdoutPath, t.rec.StderrPath} {
		if fifo == "" {
			continue
		}
		p, err := newPump(s.poller, s.logger, fifo, t.rec.MaxFiles, t.rec.MaxFileBytes)
		if err != nil {
			s.logger.Error("cannot reopen logs of adopted task", "task", t.rec.ID, "error", err)
			continue
		}
		t.pumps = append(t.pumps, p)
	}
	if status, ok := zombieStatus(t.start.PID, t.start.StartTick); ok {
		s.ended(t, exitOf(syscall.WaitStatus(status)))
		return
	}
	if t.rec.Cgroup != "" {
		thawCgroup(t.rec.Cgroup) // who was killing it may have died in the middle
	}
	fd, err := openProcess(t.start.PID, t.start.StartTick)
	if err != nil {
		gone("it ended while no supervisor ran")
		return
	}
	t.pidfd = fd
	s.logger.Info("adopted task", "task", t.rec.ID, "pid", t.start.PID)
	if err := s.poller.add(fd, func([]byte) { s.adoptedEnded(t, fd) }); err != nil {
		s.logger.Error("cannot watch adopted task", "task", t.rec.ID, "error", err)
	}
	if t.rec.Leased {
		// Its lease was in the mind of the supervisor that died.
		t.over = true
		s.work.Go(func() { s.killTask(t) })
	}
}

// adoptedEnded is called by the poller when the pidfd of an adopted task is readable.
func (s *server) adoptedEnded(t *task, fd int) {
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(ready, 0); n != 1 || err != nil {
		return
	}
	s.poller.remove(fd)
	exit, ok := adoptedExit(fd, t.start.PID, t.start.StartTick)
	if !ok {
		exit = Exit{Error: "the supervisor that started it died before it ended", At: time.Now()}
	}
	s.ended(t, exit)
}
