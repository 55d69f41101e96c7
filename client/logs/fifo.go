package logs

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MakeFIFO makes a FIFO that its task's user may open, or takes the one that is there.
func MakeFIFO(path string, uid, gid int) error {
	if _, _, ok := splitFIFO(path); !ok {
		return fmt.Errorf("make log FIFO: %q is no name of a log FIFO", path)
	}
	dir, err := openDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = unix.Mknodat(dir, filepath.Base(path), unix.S_IFIFO|0o600, 0)
	unix.Close(dir)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make log FIFO %s: %w", path, err)
	}
	fd, err := OpenFIFO(path, false)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("stat log FIFO %s: %w", path, err)
	}
	if int(st.Uid) != uid || int(st.Gid) != gid {
		if err := unix.Fchown(fd, uid, gid); err != nil {
			return fmt.Errorf("hand log FIFO %s over: %w", path, err)
		}
	}
	return nil
}

// openDir opens a log directory, and not what a link in its place leads to: a task may have put one there to have us
// write elsewhere.
func openDir(dir string) (int, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open log directory %s: %w", dir, err)
	}
	return fd, nil
}

// OpenFIFO opens a FIFO read-write, so that it has no end while any of its ends is open and its writers never die
// for lack of a reader. The supervisor's own end does not block.
func OpenFIFO(path string, block bool) (int, error) {
	flags := unix.O_RDWR | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if !block {
		flags |= unix.O_NONBLOCK
	}
	dir, err := openDir(filepath.Dir(path))
	if err != nil {
		return -1, err
	}
	fd, err := unix.Openat(dir, filepath.Base(path), flags, 0)
	unix.Close(dir)
	if err != nil {
		return -1, fmt.Errorf("open log FIFO %s: %w", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("stat log FIFO %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFIFO {
		unix.Close(fd)
		return -1, fmt.Errorf("open log FIFO %s: it is no FIFO", path)
	}
	return fd, nil
}
