package driver

import (
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/structs"
)

// DefaultKillSignal ends a task whose job names no other.
const DefaultKillSignal = "SIGINT"

// ParseSignal understands SIGHUP, hup and 1 alike; "" is DefaultKillSignal.
func ParseSignal(name string) (syscall.Signal, error) {
	if name == "" {
		name = DefaultKillSignal
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n > 0 && n <= 64 {
			return syscall.Signal(n), nil
		}
		return 0, structs.Errorf(structs.CodeInvalid, "unknown signal %q", name)
	}
	upper := strings.ToUpper(name)
	if !strings.HasPrefix(upper, "SIG") {
		upper = "SIG" + upper
	}
	if sig := unix.SignalNum(upper); sig != 0 {
		return sig, nil
	}
	return 0, structs.Errorf(structs.CodeInvalid, "unknown signal %q", name)
}
