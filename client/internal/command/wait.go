package command

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// waitExited blocks until the child has ended, and leaves it to be waited for: until then its number is not given again.
func waitExited(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for process %d: %w", pid, err)
		}
		return nil
	}
}
