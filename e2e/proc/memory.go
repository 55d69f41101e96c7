package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
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

// parent of a process; 0 when it has gone.
func parent(pid int) int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, in brackets, may hold anything.
	_, rest, _ := strings.Cut(string(raw[strings.LastIndexByte(string(raw), ')'):]), " ")
	f := strings.Fields(rest)
	if len(f) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(f[1])
	return ppid
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
