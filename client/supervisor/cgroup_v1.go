package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// createV1 makes a task's cgroup in a v1 hierarchy.
func createV1(pl place, mount string) error {
	err := os.Mkdir(pl.dir, 0o755)
	if errors.Is(err, os.ErrNotExist) {
		if err = makeParents(pl, mount); err == nil {
			err = os.Mkdir(pl.dir, 0o755)
		}
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make cgroup: %w", err)
	}
	if pl.has("cpuset") {
		return fillCpuset(mount, pl.dir)
	}
	return nil
}

// parentShares is what the cgroup above all tasks weighs for each processor of the host, as cpu.shares. A v1 cgroup that
// nobody has told otherwise weighs as much as one process at the hierarchy's top, the agent among them, however many tasks
// are in it: these would starve beside it.
const parentShares = 10 * 1024

// makeParents makes the cgroups above a task's own. Those that exist are the operator's affair.
func makeParents(pl place, mount string) error {
	dir := mount
	for name := range strings.SplitSeq(strings.TrimPrefix(filepath.Dir(pl.dir), mount+"/"), "/") {
		dir = filepath.Join(dir, name)
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err == nil && pl.has("cpu") {
			err = writeCgroup(filepath.Join(dir, "cpu.shares"), strconv.Itoa(min(parentShares*runtime.NumCPU(), maxShares)))
		}
		if err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
	}
	return nil
}

// fillCpuset gives a new cpuset, and those above it, the processors and memory of its parent: a v1 cpuset is made empty,
// and takes no process then.
func fillCpuset(mount, dir string) error {
	parent := mount
	for name := range strings.SplitSeq(strings.TrimPrefix(dir, mount+"/"), "/") {
		child := filepath.Join(parent, name)
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			has, err := os.ReadFile(filepath.Join(child, file))
			if err == nil && strings.TrimSpace(string(has)) == "" {
				if has, err = os.ReadFile(filepath.Join(parent, file)); err == nil {
					err = writeCgroup(filepath.Join(child, file), strings.TrimSpace(string(has)))
				}
			}
			if err != nil {
				return fmt.Errorf("fill cpuset %s: %w", child, err)
			}
		}
		parent = child
	}
	return nil
}

const (
	frozenFile = "freezer.state"
	killLimit  = 10 * time.Second // for what is killed one by one
)

// freeze keeps a v1 cgroup from making processes, where it can: it has a freezer, or a count of processes. It gives what
// undoes that, without which nothing in a frozen cgroup dies.
func freeze(path string) (thaw func()) {
	if exists(filepath.Join(path, "pids.max")) {
		_ = writeCgroup(filepath.Join(path, "pids.max"), "0") // for good: all in it is to die
	}
	state := filepath.Join(path, frozenFile)
	if !exists(state) {
		return func() {}
	}
	for range 50 { // a process that is in the middle of a call of the system takes a moment
		_ = writeCgroup(state, "FROZEN")
		if data, err := os.ReadFile(state); err != nil || strings.TrimSpace(string(data)) == "FROZEN" {
			break
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: int64(time.Millisecond)}, nil) // the kernel tells nobody
	}
	return func() { thawCgroup(path) }
}

// thawCgroup lets a v1 cgroup go on, which somebody who died may have frozen.
func thawCgroup(path string) {
	if state := filepath.Join(path, frozenFile); exists(state) {
		_ = writeCgroup(state, "THAWED")
	}
}

// killOneByOne kills what is in a cgroup that cannot be killed at once, until nobody is left in it. It returns when they
// are gone.
func killOneByOne(path string) error {
	deadline := time.Now().Add(killLimit)
	for {
		thaw := freeze(path)
		fds, err := openMembers(path)
		for _, fd := range fds {
			if killErr := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); killErr != nil && !errors.Is(killErr, unix.ESRCH) {
				err = errors.Join(err, killErr)
			}
		}
		thaw()
		for _, fd := range fds {
			left := max(time.Until(deadline), 0)
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		}
		closeAll(fds)
		switch {
		case err != nil:
			return fmt.Errorf("kill cgroup %s: %w", path, err)
		case !populated(path):
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("kill cgroup %s: processes %v do not die, or make others", path, cgroupPIDs(path))
		}
	}
}

// maxOpened is how many processes are killed in one go.
const maxOpened = 512

// openMembers gets pidfds of the processes in a cgroup. A number that was given to a stranger meanwhile is not among
// them: they are members still when they have been opened.
func openMembers(path string) ([]int, error) {
	opened := map[int]int{}
	var fault error
	for _, pid := range cgroupPIDs(path) {
		fd, err := unix.PidfdOpen(pid, 0)
		if err == nil {
			opened[pid] = fd
		} else if !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL) { // ended since
			fault = fmt.Errorf("open process %d: %w", pid, err)
			break
		}
		if len(opened) >= maxOpened {
			break
		}
	}
	still := cgroupPIDs(path)
	var out []int
	for pid, fd := range opened {
		if slices.Contains(still, pid) {
			out = append(out, fd)
		} else {
			unix.Close(fd)
		}
	}
	if len(out) > 0 {
		fault = nil // out of files, most likely: these first
	}
	return out, fault
}

// membership is what the thread that makes processes needs to be in a task's v1 cgroups for that moment. A process is
// born where the thread is that makes it, so no instruction of its program runs anywhere else.
type membership struct {
	enter []int // open "tasks" files of the task's cgroups
	home  []int // of the thread's own, in the same hierarchies
}

// homes opens the "tasks" files of the cgroups that the supervisor itself is in, by mount. Where that cannot be seen it
// is the hierarchy's top.
func (c cgroups) homes() map[string]int {
	text, _ := os.ReadFile("/proc/self/cgroup")
	at := c.of(string(text))
	out := map[string]int{}
	for _, h := range c.v1 {
		for _, dir := range []string{at[h.mount], h.mount} {
			if fd, err := openTasks(dir); err == nil {
				out[h.mount] = fd
				break
			}
		}
	}
	return out
}

func openTasks(dir string) (int, error) {
	fd, err := unix.Open(filepath.Join(dir, "tasks"), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open cgroup %s: %w", dir, err)
	}
	return fd, nil
}

// within runs f as a member, on a thread that is back home afterwards.
func (m membership) within(logger hclog.Logger, f func() error) error {
	if len(m.enter) == 0 {
		return f()
	}
	runtime.LockOSThread() // no thread is made by one that is locked: none is born in the task's cgroups
	entered := 0
	defer func() {
		for _, fd := range m.home[:entered] {
			if _, err := unix.Write(fd, []byte("0")); err != nil {
				logger.Error("a thread cannot leave the cgroup of a task, and ends", "error", err)
				return // it ends with its goroutine
			}
		}
		runtime.UnlockOSThread()
	}()
	for _, fd := range m.enter {
		if _, err := unix.Write(fd, []byte("0")); err != nil {
			return fmt.Errorf("enter cgroup: %w", err)
		}
		entered++
	}
	return f()
}

func (m membership) close() { closeAll(m.enter) }
