package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// open makes a task's cgroup of the unified hierarchy and opens it.
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

// create makes a task's cgroup, with what controllers there are switched on for it.
func (c cgroups) create(path string) error {
	parent := filepath.Dir(path)
	err := os.Mkdir(path, 0o755)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(parent, 0o755); err == nil {
			c.enable(parent)
			err = os.Mkdir(path, 0o755)
		}
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make cgroup: %w", err)
	}
	return nil
}

// enable switches controllers on for what is below a cgroup of the unified hierarchy, from the top down: a cgroup has
// only what its parent gives. What is not delegated to us stays off; then no limit can be set by it, which is told there.
func (c cgroups) enable(parent string) {
	dir := c.unified
	for name := range strings.SplitSeq("/"+strings.Trim(strings.TrimPrefix(parent, dir), "/"), "/") {
		dir = filepath.Join(dir, name)
		have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		if err != nil {
			return
		}
		for _, controller := range strings.Fields(string(have)) {
			if slices.Contains([]string{"cpu", "cpuset", "memory", "pids"}, controller) {
				_ = writeCgroup(filepath.Join(dir, "cgroup.subtree_control"), "+"+controller)
			}
		}
	}
}

// populated says whether any process is left in a cgroup.
func populated(path string) bool {
	data, err := os.ReadFile(filepath.Join(path, "cgroup.events"))
	if errors.Is(err, os.ErrNotExist) { // v1
		return len(cgroupPIDs(path)) > 0
	}
	return err == nil && strings.Contains(string(data), "populated 1")
}

// killCgroup kills all that is in a cgroup, also what is being forked right now.
func killCgroup(path string) error {
	err := writeCgroup(filepath.Join(path, "cgroup.kill"), "1")
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if !exists(path) {
		return nil
	}
	return killOneByOne(path) // v1, and kernels before 5.14
}

// awaitEmpty waits until a cgroup has no processes.
func awaitEmpty(path string, timeout time.Duration) bool {
	f, err := os.Open(filepath.Join(path, "cgroup.events"))
	if err != nil {
		return !populated(path) // v1: killing has waited
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

// clearCgroups removes all cgroups of a task, with the processes that are still in them: those of the first die first.
func clearCgroups(track string, all []string) error {
	var faults []error
	if track != "" {
		faults = append(faults, clearCgroup(track))
	}
	for _, path := range all {
		if path != track {
			faults = append(faults, clearCgroup(path))
		}
	}
	return errors.Join(faults...)
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
