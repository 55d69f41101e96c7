package proc

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// unmountBelow unmounts what is mounted below a folder, such as the secrets of allocations that an agent keeps until
// they are collected, so that the folder can be removed.
func unmountBelow(dir string) error {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	lines := strings.Split(string(raw), "\n")
	for i := len(lines) - 1; i >= 0; i-- { // later mounts may lie on earlier ones
		f := strings.Fields(lines[i])
		if len(f) < 5 || !strings.HasPrefix(f[4], dir+"/") {
			continue
		}
		if err := syscall.Unmount(f[4], syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", f[4], err)
		}
	}
	return nil
}
