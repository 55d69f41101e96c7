package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What Landlock is asked for, by the kernel's version of it: later versions know more to forbid.
const (
	accessV1  = 1<<13 - 1 // from LANDLOCK_ACCESS_FS_EXECUTE to _MAKE_SYM
	readFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readDir   = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	create    = unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REFER
	execute = unix.LANDLOCK_ACCESS_FS_EXECUTE
	// onFiles is what a rule about a file, not a directory, may hold.
	onFiles = readFile | writeFile | execute | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// rule is what may be done at and below a path.
type rule struct {
	path   string
	access uint64
}

// systemRules are what fetching needs of any host: programs and libraries, certificates, names, and how git and ssh
// are set up for all users. No host key, no home and no /proc is among them.
func systemRules() []rule {
	rules := []rule{{"/proc/self/exe", readFile | execute}, {"/dev/null", readFile | writeFile}}
	for _, dir := range []string{"/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/libx32"} {
		rules = append(rules, rule{dir, readDir | execute})
	}
	for _, dir := range []string{"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/alternatives",
		"/etc/ld.so.conf.d", "/etc/ssh/ssh_config.d"} {
		rules = append(rules, rule{dir, readDir})
	}
	for _, file := range []string{"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services",
		"/etc/protocols", "/etc/passwd", "/etc/group", "/etc/gitconfig", "/etc/ssh/ssh_config", "/etc/ssh/ssh_known_hosts",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/localtime", "/dev/urandom", "/dev/random", "/dev/zero"} {
		rules = append(rules, rule{file, readFile})
	}
	return rules
}

// access is what a configured path allows.
func (p Path) access() uint64 {
	var a uint64
	for _, x := range []struct {
		on     bool
		access uint64
	}{{p.Read, readDir}, {p.Write, writeFile}, {p.Create, create}, {p.Execute, execute}} {
		if x.on {
			a |= x.access
		}
	}
	return a
}

// errNoLandlock says that the kernel has no Landlock, or has it switched off.
var errNoLandlock = errors.New("the kernel has no Landlock")

// lockDown confines this very thread, and whatever it executes, to the working directory and what rules allow, without a
// way back. The caller has locked the goroutine to its thread.
func lockDown(rules []rule) error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno == unix.ENOSYS || errno == unix.EOPNOTSUPP {
		return errNoLandlock
	}
	if errno != 0 {
		return fmt.Errorf("ask for Landlock: %w", errno)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: accessV1}
	if version >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP
	}
	if version >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), sizeOf(version), 0)
	if errno != 0 {
		return fmt.Errorf("make Landlock rules: %w", errno)
	}
	defer unix.Close(int(fd))
	for _, r := range append(rules, rule{".", attr.Handled_access_fs &^ execute}) {
		if err := allow(int(fd), r, attr.Handled_access_fs); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("lock down: %w", errno)
	}
	return nil
}

// sizeOf is how many bytes of the attributes a version knows.
func sizeOf(version uintptr) uintptr {
	switch {
	case version < 4:
		return 8
	case version < 6:
		return 16
	default:
		return 24
	}
}

// allow adds a rule; what is not there needs none.
func allow(ruleset int, r rule, handled uint64) error {
	fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", r.path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", r.path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		r.access &= onFiles
	}
	beneath := unix.LandlockPathBeneathAttr{Allowed_access: r.access & handled, Parent_fd: int32(fd)}
	if beneath.Allowed_access == 0 {
		return nil
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&beneath)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("allow %s: %w", r.path, errno)
	}
	return nil
}

// dropCapabilities leaves none: who fetches needs no more than to own its directory. What Landlock does not know of,
// such as to change the owners of files or the modes of others', falls with them.
func dropCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// rules are all paths of a request but the working directory.
func (r *Request) rules() []rule {
	rules := systemRules()
	if real, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
		rules = append(rules, rule{real, readFile})
	}
	for _, p := range r.Settings.ExtraPaths {
		if info, err := os.Stat(p.Name); err == nil && info.IsDir() == p.Dir {
			rules = append(rules, rule{p.Name, p.access()})
		}
	}
	return rules
}
