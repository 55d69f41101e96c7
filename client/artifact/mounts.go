package artifact

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// writeOnlyHere makes all file systems read-only for this process, but the working directory and those of paths that may
// be written. Landlock alone does not keep root from changing modes and times of root's files. The process must be in a
// mount namespace of its own.
func writeOnlyHere(here string, paths []Path) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("part from the host's mounts: %w", err)
	}
	open := []string{here}
	for _, p := range paths {
		if _, err := os.Stat(p.Name); err == nil && (p.Write || p.Create) {
			open = append(open, p.Name)
		}
	}
	for _, path := range open {
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("keep %s: %w", path, err)
		}
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		if errors.Is(err, unix.ENOSYS) { // a kernel without it has no Landlock either
			return nil
		}
		return fmt.Errorf("close the host's mounts: %w", err)
	}
	for _, path := range open {
		if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("open %s: %w", path, err)
		}
	}
	return nil
}

// enter goes to the working directory by way of this namespace, and makes sure that it is the one which was handed over.
func enter(path string) error {
	if err := unix.Chdir(path); err != nil {
		return fmt.Errorf("enter directory: %w", err)
	}
	var meant, here unix.Stat_t
	if err := errors.Join(unix.Fstat(stageFD, &meant), unix.Stat(".", &here)); err != nil {
		return fmt.Errorf("look at directory: %w", err)
	}
	if meant.Dev != here.Dev || meant.Ino != here.Ino {
		return errors.New("the directory was exchanged")
	}
	return nil
}
