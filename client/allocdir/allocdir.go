package allocdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/structs"
)

// Names below an allocation's directory.
const (
	SharedName  = "alloc"
	DataName    = "data"
	LogsName    = "logs"
	TmpName     = "tmp"
	LocalName   = "local"
	SecretsName = "secrets"
)

// DefaultSecretsMB is the size of a task's secrets file system when its job names none.
const DefaultSecretsMB = 1

// Dir is one allocation's directory. It holds no open files and may be copied.
type Dir struct {
	// Path is the directory itself, <alloc_dir>/<alloc id>.
	Path string
}

// New names the directory of an allocation; it touches nothing.
func New(allocsDir, allocID string) *Dir {
	return &Dir{Path: filepath.Join(allocsDir, allocID)}
}

// SharedDir is what tasks know as NOMAD_ALLOC_DIR.
func (d *Dir) SharedDir() string { return filepath.Join(d.Path, SharedName) }

// LogDir is where the tasks' logs and FIFOs lie.
func (d *Dir) LogDir() string { return filepath.Join(d.Path, SharedName, LogsName) }

// TaskDir is a task's root and working directory.
func (d *Dir) TaskDir(task string) string { return filepath.Join(d.Path, task) }

// LocalDir is what a task knows as NOMAD_TASK_DIR.
func (d *Dir) LocalDir(task string) string { return filepath.Join(d.Path, task, LocalName) }

// SecretsDir is what a task knows as NOMAD_SECRETS_DIR.
func (d *Dir) SecretsDir(task string) string { return filepath.Join(d.Path, task, SecretsName) }

// TmpDir is a task's own temporary directory.
func (d *Dir) TmpDir(task string) string { return filepath.Join(d.Path, task, TmpName) }

// Owner is who a task runs as. The zero value is root.
type Owner struct {
	UID, GID int
}

// Task says what to build for one task.
type Task struct {
	Name      string
	Owner     Owner
	SecretsMB int // 0 means DefaultSecretsMB
}

// Build makes the directory and what all tasks share. What is there already stays.
func (d *Dir) Build() error {
	if err := os.MkdirAll(filepath.Dir(d.Path), 0o711); err != nil {
		return fmt.Errorf("build allocation directory: %w", err)
	}
	Spread(filepath.Dir(d.Path))
	for _, dir := range []struct {
		path string
		mode fs.FileMode
	}{
		{d.Path, 0o755},
		{d.SharedDir(), 0o777},
		{filepath.Join(d.SharedDir(), DataName), 0o777},
		{d.LogDir(), 0o777},
		{filepath.Join(d.SharedDir(), TmpName), 0o777 | fs.ModeSticky},
	} {
		if err := makeDir(dir.path, dir.mode); err != nil {
			return fmt.Errorf("build allocation directory: %w", err)
		}
	}
	return nil
}

// BuildTask makes a task's directories below a built allocation directory. Secrets lie in a file system in memory
// where the agent may mount one; elsewhere in a directory that only the task's user can enter.
func (d *Dir) BuildTask(t Task) error {
	if t.Name == "" || t.Name == "." || t.Name == ".." || t.Name == SharedName || strings.ContainsRune(t.Name, '/') {
		return structs.Errorf(structs.CodeInvalid, "build task directory: %q cannot name a directory", t.Name)
	}
	for _, dir := range []struct {
		path string
		mode fs.FileMode
	}{
		{d.TaskDir(t.Name), 0o777},
		{d.LocalDir(t.Name), 0o777},
		{d.TmpDir(t.Name), 0o777 | fs.ModeSticky},
		{d.SecretsDir(t.Name), 0o700},
	} {
		if err := makeDir(dir.path, dir.mode); err != nil {
			return fmt.Errorf("build directory of task %q: %w", t.Name, err)
		}
	}
	if err := mountSecrets(d.SecretsDir(t.Name), t); err != nil {
		return fmt.Errorf("build secrets of task %q: %w", t.Name, err)
	}
	return nil
}

// makeDir makes one directory with exactly this mode, whatever the umask; a link in its place is refused.
func makeDir(path string, mode fs.FileMode) error {
	err := os.Mkdir(path, mode.Perm())
	if errors.Is(err, fs.ErrExist) {
		info, statErr := os.Lstat(path)
		switch {
		case statErr != nil:
			return statErr
		case !info.IsDir():
			return fmt.Errorf("%s is there and is no directory", path)
		}
		return nil // a task may have changed the mode of what is its own
	}
	if err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

func mountSecrets(path string, t Task) error {
	size := t.SecretsMB
	if size <= 0 {
		size = DefaultSecretsMB
	}
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return fmt.Errorf("stat file system: %w", err)
	}
	var parent unix.Stat_t
	var own unix.Stat_t
	if err := errors.Join(unix.Lstat(filepath.Dir(path), &parent), unix.Lstat(path, &own)); err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	if mounted := st.Type == unix.TMPFS_MAGIC && parent.Dev != own.Dev; !mounted {
		opts := fmt.Sprintf("size=%dm,mode=0700,uid=%d,gid=%d", size, t.Owner.UID, t.Owner.GID)
		err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_NOSUID, opts)
		// Without the right to mount (a container, say) the directory's own mode has to do.
		if err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
			return fmt.Errorf("mount tmpfs: %w", err)
		}
	}
	return os.Lchown(path, t.Owner.UID, t.Owner.GID)
}

// DropSecrets removes what is in the secrets of all tasks, and unmounts their file systems. The allocation must be over.
func (d *Dir) DropSecrets() error {
	entries, err := os.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("drop secrets: %w", err)
	}
	var faults []error
	for _, e := range entries {
		path := d.SecretsDir(e.Name())
		if info, err := os.Lstat(path); err != nil || !info.IsDir() || e.Name() == SharedName || !e.IsDir() {
			continue
		}
		// EINVAL: nothing is mounted there. One mount hides another.
		for err = nil; err == nil; {
			err = unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			faults = append(faults, fmt.Errorf("drop secrets: unmount %s: %w", path, err))
			continue
		}
		faults = append(faults, empty(path))
	}
	return errors.Join(faults...)
}

// empty removes all that is in a directory.
func empty(path string) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return fmt.Errorf("drop secrets: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	faults := []error{err}
	for _, e := range entries {
		faults = append(faults, root.RemoveAll(e.Name()))
	}
	return errors.Join(faults...)
}

// Destroy unmounts whatever is mounted below and removes the directory. It is no error when it is gone already.
func (d *Dir) Destroy() error {
	if d.Path == "" || d.Path == "/" {
		return errors.New("destroy allocation directory: no path")
	}
	mounts, err := mountsBelow(d.Path)
	if err != nil {
		return fmt.Errorf("destroy allocation directory: %w", err)
	}
	// Nothing is removed while something is still mounted: it might be a volume with data in it.
	for _, m := range mounts {
		err := unix.Unmount(m, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("destroy allocation directory: unmount %s: %w", m, err)
		}
	}
	if err := os.RemoveAll(d.Path); err != nil {
		return fmt.Errorf("destroy allocation directory: %w", err)
	}
	return nil
}

// mountsBelow lists what is mounted below dir, deepest and latest first.
func mountsBelow(dir string) ([]string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		if !strings.Contains(line, filepath.Base(real)) {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if point := unescapeMount(fields[4]); strings.HasPrefix(point, real+"/") {
			found = append([]string{point}, found...)
		}
	}
	return found, nil
}

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	if !strings.ContainsRune(s, '\\') {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
