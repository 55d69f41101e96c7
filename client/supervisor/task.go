package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/logs"
	"github.com/nomadlite/nomadlite/internal/boottime"
)

// phase is where a task is; it only moves forward.
type phase uint8

const (
	phaseStarting phase = iota
	phaseRunning
	phaseEnding // its main process is gone, what it left behind is being killed
	phaseEnded
)

// task is one task of a supervisor. The server's mutex guards all that changes.
type task struct {
	rec    taskRecord
	path   string // of its record
	start  startRecord
	pidfd  int // -1 without
	phase  phase
	adopt  bool
	exit   *Exit
	pumps  []*pump
	stop   *time.Timer // kills when it fires
	killAt time.Time
	asked  syscall.Signal // the last stop signal sent
	onRun  []func()       // what was asked for before the process was there
	lease  boottime.Deadline
	over   bool // the lease has run out, and nothing brings it back

	waiters []waiter
	places  placement // while it starts
}

// waiter is told when a task has ended, or did not start.
type waiter struct {
	conn *agentConn // goes with its connection; nil stays
	fn   func(*task, error)
}

func (t *task) info() *TaskInfo {
	return &TaskInfo{
		ID: t.rec.ID, PID: t.start.PID, StartTick: t.start.StartTick, BootID: t.rec.BootID, StartedAt: t.start.At,
		Running: t.phase < phaseEnded, Adopted: t.adopt, Cgroup: t.rec.Cgroup, Exit: t.exit,
		Leased: t.rec.Leased, Marks: t.rec.Marks, Cgroups: t.rec.Cgroups,
	}
}

func (t *task) tree() tree {
	return tree{leader: t.start.PID, tick: t.start.StartTick, marks: t.rec.Marks}
}

// kill kills every process of the task.
func (t *task) kill() error {
	if t.rec.Cgroup != "" {
		return killCgroup(t.rec.Cgroup)
	}
	return t.tree().kill()
}

// signal sends one to the main process.
func (t *task) signal(sig syscall.Signal) error {
	var err error
	if t.pidfd >= 0 {
		err = unix.PidfdSendSignal(t.pidfd, sig, nil, 0)
	} else {
		err = unix.Kill(t.start.PID, sig)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil // it is ending on its own
	}
	if err != nil {
		return fmt.Errorf("signal process %d: %w", t.start.PID, err)
	}
	return nil
}

// pids lists all processes of a task that runs.
func (t *task) pids() []int {
	if t.rec.Cgroup != "" {
		return cgroupPIDs(t.rec.Cgroup)
	}
	return t.tree().pids()
}

// register notes a task that is about to be started. The reader of a connection does so itself, so that what the
// agent asks about the task next finds it.
func (s *server) register(spec *StartSpec) (*task, error) {
	if spec == nil || spec.TaskID == "" || !filepath.IsAbs(spec.Path) || len(spec.Args) == 0 {
		return nil, refuse(codeInvalid, "start task: id, absolute path and arguments are needed")
	}
	t := &task{pidfd: -1, path: filepath.Join(s.dir, recordName(spec.TaskID)), rec: taskRecord{
		ID: spec.TaskID, StdoutPath: spec.StdoutPath, StderrPath: spec.StderrPath, MaxFiles: spec.MaxFiles,
		MaxFileBytes: spec.MaxFileBytes, Marks: marksOf(spec.Env), BootID: s.bootID,
	}}
	parent := spec.CgroupParent
	if parent == "" {
		parent = driver.DefaultCgroupParent
	}
	// The record's name alone would do, were there not several data directories on a host.
	var err error
	if t.places, err = s.cgroups.place(spec, taskPath(parent, recordName(s.base + "\x00" + spec.TaskID)[:32])); err != nil {
		return nil, refuse(codeStart, "start %s: %s", spec.Path, err)
	}
	t.rec.Cgroup, t.rec.Cgroups = t.places.track, t.places.own()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, refuse(codeClosing, "start task: the supervisor ends")
	}
	if _, dup := s.tasks[spec.TaskID]; dup {
		return nil, refuse(codeExists, "start task: %s is there already", spec.TaskID)
	}
	if spec.Lease != nil {
		if spec.Lease.Remaining(s.leases.clock) <= 0 {
			return nil, refuse(codeStart, "start %s: its lease has run out", spec.Path)
		}
		t.rec.Leased, t.lease = true, *spec.Lease
	}
	s.tasks[spec.TaskID] = t
	s.leases.arm()
	return t, nil
}

// startTask makes the process of a registered task.
func (s *server) startTask(t *task, spec *StartSpec) (*TaskInfo, error) {
	if err := s.launch(t, spec); err != nil {
		// A record whose cgroup is still there stays: the next supervisor tries again by it.
		if clearErr := t.release(); clearErr != nil {
			s.logger.Error("what a start that failed has left stays", "task", t.rec.ID, "error", clearErr)
			err = errors.Join(err, clearErr)
		} else {
			s.forgetRecord(t)
		}
		s.mu.Lock()
		delete(s.tasks, spec.TaskID)
		waiters := t.waiters
		t.waiters = nil
		s.mu.Unlock()
		for _, w := range waiters {
			w.fn(t, refuse(codeNotFound, "task %s did not start", spec.TaskID))
		}
		s.idleChanged()
		return nil, err
	}
	// No wait for the disk here, nor later: if the machine dies the task has died too, record or not.
	s.mu.Lock()
	info, asked := t.info(), t.onRun
	t.onRun = nil
	s.mu.Unlock()
	for _, fn := range asked {
		fn()
	}
	if t.rec.Leased {
		s.tellGuard(t, info)
	}
	return info, nil
}

// release gives up what a task that did not start holds. It is an error when its cgroup stays.
func (t *task) release() (err error) {
	for _, p := range t.pumps {
		p.finish()
	}
	t.pumps = nil
	err = clearCgroups(t.rec.Cgroup, t.rec.cgroups())
	if t.pidfd >= 0 {
		unix.Close(t.pidfd)
		t.pidfd = -1
	}
	return err
}

// launch prepares all that the process needs, then makes it.
func (s *server) launch(t *task, spec *StartSpec) error {
	uid, gid := os.Geteuid(), os.Getegid()
	if spec.User != nil {
		uid, gid = int(spec.User.UID), int(spec.User.GID)
	}
	if err := appendRecord(t.path, record{Task: &t.rec}); err != nil {
		return err
	}
	files := []uintptr{s.null.Fd(), s.null.Fd(), s.null.Fd()}
	for i, fifo := range []string{spec.StdoutPath, spec.StderrPath} {
		if fifo == "" {
			continue
		}
		if err := logs.MakeFIFO(fifo, uid, gid); err != nil {
			return err
		}
		p, err := newPump(s.poller, s.logger, fifo, spec.MaxFiles, spec.MaxFileBytes)
		if err != nil {
			return err
		}
		t.pumps = append(t.pumps, p)
		fd, err := logs.OpenFIFO(fifo, true)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		files[i+1] = uintptr(fd)
	}
	attr := &syscall.ProcAttr{Dir: spec.Dir, Env: spec.Env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &t.pidfd}}
	if spec.User != nil {
		attr.Sys.Credential = &syscall.Credential{Uid: spec.User.UID, Gid: spec.User.GID, Groups: spec.User.Groups,
			NoSetGroups: os.Geteuid() != 0}
	}
	v1, err := s.prepareCgroups(t, spec, attr)
	defer v1.close()
	if attr.Sys.UseCgroupFD {
		defer unix.Close(attr.Sys.CgroupFD)
	}
	if err != nil {
		return refuse(codeStart, "start %s: %s", spec.Path, err)
	}
	spawn := func() error { return v1.within(s.logger, func() error { return s.spawn(t, spec, attr) }) }
	if t.rec.Leased {
		attr.Sys.Pdeathsig = syscall.SIGKILL
		spawn = func() error {
			return s.leases.fork(func() error { return v1.within(s.logger, func() error { return s.spawn(t, spec, attr) }) })
		}
	}
	if err := spawn(); err != nil {
		return refuse(codeStart, "start %s: %s", spec.Path, startError(err, spec))
	}
	if spec.Limits != nil {
		if err := t.places.limit(*spec.Limits, true); err != nil && !s.over(t) {
			s.logger.Warn("task runs without its share of the processors", "task", t.rec.ID, "error", err)
		}
	}
	return nil
}

// spawn makes the process. Children are not waited for meanwhile, so that one which ends at once is known by then.
func (s *server) spawn(t *task, spec *StartSpec, attr *syscall.ProcAttr) error {
	s.spawning.Lock()
	defer s.spawning.Unlock()
	if spec.OOMScoreAdj != s.oomScore {
		// 0 is not asked for by name: who may not have it keeps what the agent was given.
		if err := setOOMScore(spec.OOMScoreAdj); err != nil && spec.OOMScoreAdj != 0 {
			return err
		}
		defer func() {
			if err := setOOMScore(s.oomScore); err != nil {
				s.logger.Error("cannot take back the supervisor's own oom_score_adj, which later tasks inherit", "error", err)
			}
		}()
	}
	pid, err := syscall.ForkExec(spec.Path, spec.Args, attr)
	if err != nil && attr.Sys.UseCgroupFD && !errors.Is(err, unix.ENOENT) {
		// Perhaps it was the cgroup: old kernels make no process in one, and rights to it may be missing.
		attr.Sys.UseCgroupFD = false
		if pid, err = syscall.ForkExec(spec.Path, spec.Args, attr); err == nil {
			if moveErr := writeCgroup(filepath.Join(t.places.unified.dir, "cgroup.procs"), strconv.Itoa(pid)); moveErr != nil {
				s.dropUnified(t, moveErr)
			}
		}
	}
	if err != nil {
		return err
	}
	start := startRecord{PID: pid, At: time.Now()}
	if p, err := readProcess(pid); err == nil { // also when it has ended: nobody has waited for it
		start.StartTick = p.startTick
	}
	s.mu.Lock()
	t.start = start
	t.phase = phaseRunning
	s.byPID[pid] = t
	s.mu.Unlock()
	if err := appendRecord(t.path, record{Started: &start}); err != nil {
		s.logger.Error("cannot write task record", "task", t.rec.ID, "error", err)
	}
	return nil
}

// over says whether a task's main process is gone.
func (s *server) over(t *task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.phase >= phaseEnding
}

// readOOMScore gives our own score, which a process that we make inherits.
func readOOMScore() (int, error) {
	data, err := os.ReadFile(oomScoreFile)
	if err != nil {
		return 0, fmt.Errorf("read oom_score_adj: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}

const oomScoreFile = "/proc/self/oom_score_adj"

// setOOMScore sets our own score: the process that is made next has it from its first moment on.
func setOOMScore(score int) error {
	if err := os.WriteFile(oomScoreFile, []byte(strconv.Itoa(score)), 0); err != nil {
		return fmt.Errorf("set oom_score_adj: %w", err)
	}
	return nil
}

// startError says what exec's bare errno means.
func startError(err error, spec *StartSpec) string {
	if errors.Is(err, unix.ENOENT) {
		if _, statErr := os.Stat(spec.Path); errors.Is(statErr, os.ErrNotExist) {
			return "executable file not found"
		}
		if _, statErr := os.Stat(spec.Dir); spec.Dir != "" && statErr != nil {
			return fmt.Sprintf("working directory %s: %v", spec.Dir, statErr)
		}
		return "executable file not found: its interpreter is missing"
	}
	return err.Error()
}

// ended is called once per task, when its main process is gone. What that left behind is killed, output is brought
// to the files, and only then is the task reported as ended.
func (s *server) ended(t *task, exit Exit) {
	s.mu.Lock()
	if t.phase >= phaseEnding {
		s.mu.Unlock()
		return
	}
	t.phase = phaseEnding
	if t.stop != nil {
		t.stop.Stop()
	}
	s.mu.Unlock()
	if t.rec.Cgroup != "" && !populated(t.rec.Cgroup) {
		s.finish(t, exit)
		return
	}
	s.work.Go(func() {
		if err := t.kill(); err != nil {
			s.logger.Error("cannot kill what a task left behind", "task", t.rec.ID, "error", err)
		}
		if t.rec.Cgroup != "" && !awaitEmpty(t.rec.Cgroup, 10*time.Second) {
			s.logger.Error("processes of a task do not die", "task", t.rec.ID, "cgroup", t.rec.Cgroup)
		}
		s.finish(t, exit)
	})
}

func (s *server) finish(t *task, exit Exit) {
	exit.OOM = oomKilled(t.rec.cgroups())
	if err := appendRecord(t.path, record{Exit: &exit}); err != nil {
		s.logger.Error("cannot write task record", "task", t.rec.ID, "error", err)
	}
	s.syncer.add(t.path)
	for _, p := range t.pumps {
		p.finish()
	}
	s.mu.Lock()
	t.pumps = nil
	t.exit = &exit
	t.phase = phaseEnded
	if t.rec.Leased {
		s.leases.guard.tell(guarded{Task: *t.info(), Gone: true})
	}
	pidfd := t.pidfd
	t.pidfd = -1
	waiters := t.waiters
	t.waiters = nil
	s.mu.Unlock()
	if pidfd >= 0 {
		s.poller.remove(pidfd)
		unix.Close(pidfd)
	}
	for _, dir := range t.rec.cgroups() {
		if err := removeCgroup(dir); err != nil { // it is tried again before the record goes
			s.logger.Warn("cannot remove cgroup", "task", t.rec.ID, "error", err)
		}
	}
	for _, w := range waiters {
		w.fn(t, nil)
	}
	s.idleChanged()
}

// stopTask sends a signal and kills the task when it has not ended after timeout. A second call shortens the wait of
// the first, it never lengthens it.
func (s *server) stopTask(t *task, sig syscall.Signal, timeout time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.phase == phaseStarting {
		t.onRun = append(t.onRun, func() { s.stopTask(t, sig, timeout) })
		return nil
	}
	if t.phase != phaseRunning {
		return nil
	}
	if timeout <= 0 {
		t.killAt = time.Now()
		if t.stop != nil {
			t.stop.Stop()
		}
		s.work.Go(func() { s.killTask(t) })
		return nil
	}
	at := time.Now().Add(timeout)
	switch {
	case t.stop == nil:
		t.killAt = at
		t.stop = time.AfterFunc(timeout, func() { s.killTask(t) })
	case at.Before(t.killAt):
		t.killAt = at
		t.stop.Reset(timeout)
	}
	if t.asked == sig {
		return nil
	}
	t.asked = sig
	return t.signal(sig)
}

func (s *server) killTask(t *task) {
	s.mu.Lock()
	running := t.phase == phaseRunning
	s.mu.Unlock()
	if !running {
		return
	}
	if err := t.kill(); err != nil {
		s.logger.Error("cannot kill task", "task", t.rec.ID, "error", err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// forgetRecord removes a task's record. One that stays brings the ended task back when a supervisor takes over.
func (s *server) forgetRecord(t *task) {
	if err := os.Remove(t.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.logger.Error("cannot remove task record", "task", t.rec.ID, "error", err)
	}
}

// destroyTask forgets a task that has ended; then is told once that is so.
func (s *server) destroyTask(id string, force bool, then func(error)) {
	s.mu.Lock()
	t := s.tasks[id]
	switch {
	case t == nil:
		s.mu.Unlock()
		then(refuse(codeNotFound, "no task %s", id))
	case t.phase == phaseEnded && slices.ContainsFunc(t.rec.cgroups(), exists):
		s.mu.Unlock()
		s.work.Go(func() {
			if err := clearCgroups(t.rec.Cgroup, t.rec.cgroups()); err != nil {
				s.logger.Error("task is not forgotten while its cgroup stays", "task", id, "error", err)
				then(refuse(codeCgroup, "destroy task %s: %s", id, err))
				return
			}
			s.destroyTask(id, force, then)
		})
	case t.phase == phaseEnded:
		delete(s.tasks, id)
		s.mu.Unlock()
		s.forgetRecord(t)
		then(nil)
		s.idleChanged()
	case !force:
		s.mu.Unlock()
		then(refuse(codeRunning, "task %s still runs", id))
	default:
		t.waiters = append(t.waiters, waiter{fn: func(*task, error) { s.destroyTask(id, false, then) }})
		starting := t.phase == phaseStarting
		if starting {
			t.onRun = append(t.onRun, func() { s.killTask(t) })
		}
		s.mu.Unlock()
		if !starting {
			s.killTask(t)
		}
	}
}
