package supervisor

import (
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Beside lets f make a process where those of a task are, so that it is limited and ended with them: attr is changed so
// that the process is made in the task's cgroup of the unified hierarchy, and the thread is in those of v1 while f runs.
// f has to make the process on the goroutine that it is called on. Of a task without cgroups only the marks in the
// process's environment tell whose it is.
func (c *Client) Beside(t TaskInfo, attr *syscall.SysProcAttr, f func() error) error {
	found := findCgroups(c.cfg.Mountinfo)
	homes := found.homes()
	var m membership
	defer func() {
		m.close()
		for _, fd := range homes {
			unix.Close(fd)
		}
	}()
	for _, dir := range withFirst(t.Cgroup, t.Cgroups) {
		if strings.HasPrefix(dir, found.unified+"/") && found.unified != "" {
			fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("open cgroup %s: %w", dir, err)
			}
			defer unix.Close(fd)
			attr.UseCgroupFD, attr.CgroupFD = true, fd
			continue
		}
		home, ok := homes[found.mountOf(dir)]
		if !ok {
			return fmt.Errorf("use cgroup %s: the way back out of it is not known", dir)
		}
		fd, err := openTasks(dir)
		if err != nil {
			return err
		}
		m.enter, m.home = append(m.enter, fd), append(m.home, home)
	}
	return m.within(c.logger, f)
}

// withFirst lists first and what others has beside it.
func withFirst(first string, others []string) []string {
	var out []string
	if first != "" {
		out = append(out, first)
	}
	for _, o := range others {
		if o != first {
			out = append(out, o)
		}
	}
	return out
}

// mountOf gives the v1 hierarchy that a cgroup is in; "" for none.
func (c cgroups) mountOf(dir string) string {
	for _, h := range c.v1 {
		if strings.HasPrefix(dir, h.mount+"/") {
			return h.mount
		}
	}
	return ""
}
