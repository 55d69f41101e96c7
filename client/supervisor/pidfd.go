package supervisor

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptedExit finds out how a process ended that is not our child; nobody tells us. While its parent, init, has not
// waited for it yet, its status stands in /proc; after that Linux 6.15 and later keep it for those who held a pidfd
// of it, and earlier ones do not.
func adoptedExit(fd, pid int, tick uint64) (Exit, bool) {
	if status, ok := zombieStatus(pid, tick); ok {
		return exitOf(syscall.WaitStatus(status)), true
	}
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	if err := unix.IoctlPidfdInfo(fd, &info); err != nil || info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return Exit{}, false
	}
	return exitOf(syscall.WaitStatus(uint32(info.Exit_code))), true
}

// zombieStatus reads the wait status of a process that has ended and was not waited for. To those who may not see it
// the kernel shows 0, which would pass for success: so without the capability to see every process's it is not
// asked.
func zombieStatus(pid int, tick uint64) (uint32, bool) {
	if !canTrace() {
		return 0, false
	}
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	p, err := parseStat(pid, data)
	if err != nil || p.state != 'Z' || p.startTick != tick {
		return 0, false
	}
	// Field 52 of stat, the 50th after the name.
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(f) < 50 {
		return 0, false
	}
	status, err := strconv.ParseUint(f[49], 10, 32)
	return uint32(status), err == nil
}

// canTrace says whether we have CAP_SYS_PTRACE.
func canTrace() bool {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			return err == nil && caps&(1<<unix.CAP_SYS_PTRACE) != 0
		}
	}
	return false
}
