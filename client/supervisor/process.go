package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is what /proc/PID/stat says of a process.
type process struct {
	pid, ppid, pgid, sid int
	state                byte
	userTicks, sysTicks  uint64
	startTick            uint64
	rssPages             uint64
}

func readProcess(pid int) (process, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	return parseStat(pid, data)
}

// parseStat reads a line of stat. The name in brackets may hold anything, so fields count from the last bracket.
func parseStat(pid int, data []byte) (process, error) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return process{}, fmt.Errorf("read stat of process %d: no name", pid)
	}
	f := strings.Fields(string(data[end+1:]))
	if len(f) < 22 {
		return process{}, fmt.Errorf("read stat of process %d: %d fields", pid, len(f))
	}
	num := func(i int) uint64 { n, _ := strconv.ParseUint(f[i], 10, 64); return n }
	return process{pid: pid, state: f[0][0], ppid: int(num(1)), pgid: int(num(2)), sid: int(num(3)),
		userTicks: num(11), sysTicks: num(12), startTick: num(19), rssPages: num(21)}, nil
}

// frozen says that a process is stopped by a signal. One that a debugger looks at may be so for a moment only.
func frozen(pid int) bool {
	p, err := readProcess(pid)
	return err == nil && p.state == 'T'
}

func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// allProcesses reads the process table.
func allProcesses() []process {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	var out []process
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, err := readProcess(pid); err == nil {
				out = append(out, p)
			}
		}
	}
	return out
}

// tree names the processes of a task that has no cgroup.
type tree struct {
	leader int
	tick   uint64   // start time of the leader
	marks  []string // "K=V" of its environment
}

// members finds those in the leader's session or process group, all their descendants, and those that left both and
// lost their parents but still carry the task's marks in their environment.
func (t tree) members(all []process) []process {
	in := map[int]bool{}
	// A number is not given again while a session or group goes by it: somebody else with the leader's number means
	// that nobody of the task is left in either.
	reused := slices.ContainsFunc(all, func(p process) bool { return p.pid == t.leader && p.startTick != t.tick })
	for _, p := range all {
		group := t.leader > 1 && !reused && (p.pid == t.leader || p.sid == t.leader || p.pgid == t.leader)
		if group || (len(t.marks) > 0 && p.startTick >= t.tick && marked(p.pid, t.marks)) { // none is older than the leader
			in[p.pid] = true
		}
	}
	delete(in, os.Getpid())
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.pid] && in[p.ppid] {
				in[p.pid], grown = true, true
			}
		}
	}
	var out []process
	for _, p := range all {
		if in[p.pid] && p.state != 'Z' && p.state != 'X' {
			out = append(out, p)
		}
	}
	return out
}

func (t tree) pids() []int {
	var out []int
	for _, p := range t.members(allProcesses()) {
		out = append(out, p.pid)
	}
	return out
}

func marked(pid int, marks []string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || len(env) == 0 {
		return false
	}
	env = append([]byte{0}, env...)
	for _, m := range marks {
		if !bytes.Contains(env, []byte("\x00"+m+"\x00")) {
			return false
		}
	}
	return true
}

// marksOf picks from an environment what tells a task's processes from all others.
func marksOf(env []string) []string {
	var out []string
	for _, name := range []string{"NOMAD_ALLOC_ID=", "NOMAD_TASK_NAME="} {
		i := slices.IndexFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name) && len(kv) > len(name) })
		if i < 0 {
			return nil
		}
		out = append(out, env[i])
	}
	return out
}

// kill kills the whole tree, until nobody is left to fork.
func (t tree) kill() error {
	for again := range 100 {
		members := t.members(allProcesses())
		if len(members) == 0 {
			return nil
		}
		if again > 0 { // it forks faster than it is killed
			members = t.hold(members)
		}
		var fds []int
		for _, p := range members {
			fd, err := openProcess(p.pid, p.startTick)
			if err != nil {
				continue // ended since
			}
			fds = append(fds, fd)
			if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
				closeAll(fds)
				return fmt.Errorf("kill process %d: %w", p.pid, err)
			}
		}
		for _, fd := range fds {
			unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
		}
		closeAll(fds)
	}
	return fmt.Errorf("kill process tree of %d: processes keep coming", t.leader)
}

// hold stops members of the tree until no others come, since what is stopped does not fork, and gives them all.
func (t tree) hold(members []process) []process {
	held := map[int]uint64{}
	for range 100 {
		before := len(held)
		for _, p := range members {
			if held[p.pid] == p.startTick {
				continue
			}
			if fd, err := openProcess(p.pid, p.startTick); err == nil {
				_ = unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0) // killing it tells what is wrong
				unix.Close(fd)
			}
			held[p.pid] = p.startTick
		}
		if len(held) == before {
			break
		}
		members = t.members(allProcesses())
	}
	return members
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// openProcess gets a pidfd of exactly the process that has this number and start time.
func openProcess(pid int, tick uint64) (int, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, fmt.Errorf("open process %d: %w", pid, err)
	}
	p, err := readProcess(pid)
	if err == nil && p.startTick != tick {
		err = errors.New("its number was given to another")
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("open process %d: %w", pid, err)
	}
	return fd, nil
}

// statsOf reads what processes have used so far.
func statsOf(pids []int) []ProcStats {
	page := uint64(os.Getpagesize())
	out := make([]ProcStats, 0, len(pids))
	for _, pid := range pids {
		p, err := readProcess(pid)
		if err != nil {
			continue // ended since
		}
		out = append(out, ProcStats{PID: pid, UserTicks: p.userTicks, SystemTicks: p.sysTicks, RSS: p.rssPages * page, Swap: swapOf(pid)})
	}
	return out
}

func swapOf(pid int) uint64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "VmSwap:"); ok {
			kb, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}
