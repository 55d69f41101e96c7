package proc

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PSS is the proportional set size of a process, in bytes: what it alone uses, and its share of what it shares.
func PSS(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, fmt.Errorf("read memory of process: %w", err)
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "Pss:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read memory of process: %w", err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("read memory of process %d: no Pss", pid)
}

// TasksNamed counts the processes of that name (at most 15 characters) whose parent is one of the agent's supervisors:
// the tasks, as the system sees them.
func (a *Agent) TasksNamed(name string) int {
	a.t.Helper()
	supervisors, err := a.Supervisors()
	if err != nil {
		a.t.Fatal(err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		a.t.Fatal(err)
	}
	count := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !slices.Contains(supervisors, parent(pid)) {
			continue
		}
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.TrimSpace(string(comm)) == name {
			count++
		}
	}
	return count
}

// Supervisors gives the process ids of the agent's supervisors: its children that are the same binary. A supervisor
// that an earlier agent started is none of them.
func (a *Agent) Supervisors() ([]int, error) {
	self, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", a.PID()))
	if err != nil {
		return nil, fmt.Errorf("find the agent's binary: %w", err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || parent(pid) != a.PID() {
			continue
		}
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe == self {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// stat gives the numbers in /proc/PID/stat from the third on, which is the state; nil when the process has gone.
func stat(pid int) []string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// The name, in brackets, may hold anything.
	f := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(f) < 20 {
		return nil
	}
	return f
}

// parent of a process; 0 when it has gone.
func parent(pid int) int {
	f := stat(pid)
	if f == nil {
		return 0
	}
	ppid, _ := strconv.Atoi(f[1])
	return ppid
}

// ticks a second: in these the kernel tells processor time, whatever its own clock is.
const ticks = 100

// CPUTime is the processor time that the agent and its supervisors have used. Unlike a time by the clock it hardly
// depends on what else the machine does.
func (a *Agent) CPUTime() time.Duration {
	a.t.Helper()
	pids, err := a.Supervisors()
	if err != nil {
		a.t.Fatal(err)
	}
	var sum time.Duration
	for _, pid := range append(pids, a.PID()) {
		f := stat(pid)
		if f == nil {
			a.t.Fatalf("process %d has gone", pid)
		}
		for _, field := range f[11:13] { // utime and stime
			n, _ := strconv.ParseInt(field, 10, 64)
			sum += time.Duration(n) * time.Second / ticks
		}
	}
	return sum
}

// Memory is the PSS of the agent and its supervisors together, in bytes.
func (a *Agent) Memory() int64 {
	a.t.Helper()
	pids, err := a.Supervisors()
	if err != nil {
		a.t.Fatal(err)
	}
	var sum int64
	for _, pid := range append(pids, a.PID()) {
		pss, err := PSS(pid)
		if err != nil {
			a.t.Fatal(err)
		}
		sum += pss
	}
	return sum
}
