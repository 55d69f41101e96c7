package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroups is the unified hierarchy, wherever it is mounted. On hybrid hosts it has no controllers, but it tells which
// processes belong to a task and kills them all at once. The zero value has none.
type cgroups struct {
	mount string
}

// findCgroups looks for a unified hierarchy that we may write to.
func findCgroups() cgroups {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return cgroups{}
	}
	for line := range strings.Lines(string(data)) {
		pre, post, ok := strings.Cut(line, " - ")
		if !ok || !strings.HasPrefix(post, "cgroup2 ") {
			continue
		}
		if f := strings.Fields(pre); len(f) >= 5 && unix.Access(f[4], unix.W_OK) == nil {
			return cgroups{mount: f[4]}
		}
	}
	return cgroups{}
}

func (c cgroups) usable() bool { return c.mount != "" }

// path is where the cgroup of a task lies.
func (c cgroups) path(parent, name string) string {
	return filepath.Join(c.mount, filepath.Clean("/"+parent), name+".scope")
}

// open makes a task's cgroup and opens it.
func (c cgroups) open(path string) (int, error) {
	if err := c.create(path); err != nil {
		return -1, err
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open cgroup: %w", err)
	}
	return fd, nil
}

// create makes a task's cgroup, with what controllers there are switched on for it so that its use can be read.
func (c cgroups) create(path string) error {
	parent := filepath.Dir(path)
	if err := os.Mkdir(path, 0o755); err == nil {
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("make cgroup: %w", err)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	for dir := parent; strings.HasPrefix(dir, c.mount); dir = filepath.Dir(dir) {
		have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		if err != nil {
			break
		}
		for _, want := range []string{"cpu", "memory", "pids"} {
			if strings.Contains(" "+strings.TrimSpace(string(have))+" ", " "+want+" ") {
				// Without a delegated controller the figures come from the processes themselves.
				os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+want), 0)
			}
		}
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make cgroup: %w", err)
	}
	return nil
}

// populated says whether any process is left in a cgroup.
func populated(path string) bool {
	data, err := os.ReadFile(filepath.Join(path, "cgroup.events"))
	return err == nil && strings.Contains(string(data), "populated 1")
}

// killCgroup kills all that is in a cgroup, also what is being forked right now.
func killCgroup(path string) error {
	err := os.WriteFile(filepath.Join(path, "cgroup.kill"), []byte("1"), 0)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	// Kernels before 5.14: again and again, until nobody is left to fork.
	for range 1000 {
		pids := cgroupPIDs(path)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
	return fmt.Errorf("kill cgroup %s: processes keep coming", path)
}

// awaitEmpty waits until a cgroup has no processes.
func awaitEmpty(path string, timeout time.Duration) bool {
	f, err := os.Open(filepath.Join(path, "cgroup.events"))
	if err != nil {
		return true
	}
	defer f.Close()
	deadline := time.Now().Add(timeout)
	for {
		data := make([]byte, 256)
		n, err := f.ReadAt(data, 0)
		if n == 0 && err != nil {
			return true
		}
		if !strings.Contains(string(data[:n]), "populated 1") {
			return true
		}
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		// The kernel marks the file when "populated" changes.
		unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}, int(left.Milliseconds())+1)
	}
}

// removeCgroup removes a task's cgroup and those it made below.
func removeCgroup(path string) error {
	err := os.Remove(path)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	entries, readErr := os.ReadDir(path)
	if readErr != nil {
		return err
	}
	var faults []error
	for _, e := range entries {
		if e.IsDir() {
			faults = append(faults, removeCgroup(filepath.Join(path, e.Name())))
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return errors.Join(append(faults, err)...)
	}
	return nil
}

// clearTimeout is how long the processes of a cgroup that is to be removed may take to die.
const clearTimeout = 5 * time.Second

// clearCgroup removes a cgroup, with the processes that are still in it.
func clearCgroup(path string) error {
	err := removeCgroup(path)
	if err == nil {
		return nil
	}
	if killErr := killCgroup(path); killErr != nil {
		return fmt.Errorf("remove cgroup: %w", errors.Join(err, killErr))
	}
	if !awaitEmpty(path, clearTimeout) {
		return fmt.Errorf("remove cgroup %s: processes %v in it do not die", path, cgroupPIDs(path))
	}
	if err := removeCgroup(path); err != nil {
		return fmt.Errorf("remove cgroup: %w", err)
	}
	return nil
}

// cgroupPIDs lists the processes of a cgroup and those below it.
func cgroupPIDs(path string) []int {
	var out []int
	filepath.WalkDir(path, func(p string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		data, _ := os.ReadFile(filepath.Join(p, "cgroup.procs"))
		for _, s := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(s); err == nil && pid > 0 {
				out = append(out, pid)
			}
		}
		return nil
	})
	return out
}

// oomKilled says whether the kernel killed in this cgroup for want of memory.
func oomKilled(path string) bool {
	data, err := os.ReadFile(filepath.Join(path, "memory.events"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(n) != "0"
		}
	}
	return false
}
