package template

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/structs"
)

// maxFile bounds what is read: a source, a file that a template shows, and what a template gives, in bytes.
const maxFile = 10 << 20

// place is a file: a path below a directory, cleaned, in which no link leads elsewhere.
type place struct {
	root string // absolute; "/" without confinement
	rel  string // relative to root
	name string // as the job calls it
}

// places finds the files that a task's templates name.
type places struct {
	allocDir string            // the allocation's directory on the host
	taskDir  string            // the task's below it, against which relative paths count
	seen     map[string]string // directories as the task knows them -> on the host
	free     bool              // no confinement
}

// find resolves a path of the job. Without confinement an absolute path is the host's.
func (p places) find(name string) (place, error) {
	if strings.ContainsRune(name, 0) {
		return place{}, structs.Errorf(structs.CodeInvalid, "path %q cannot name a file", name)
	}
	path := filepath.Clean(name)
	known := false
	for dir, host := range p.seen {
		if rest, ok := strings.CutPrefix(path, dir+"/"); ok && dir != "" {
			path, known = filepath.Join(host, rest), true
			break
		}
	}
	switch {
	case known:
	case filepath.IsAbs(path) && (p.free || strings.HasPrefix(path, p.allocDir+"/")):
	default:
		path = p.taskDir + "/" + path
	}
	path = filepath.Clean(path)
	if p.free {
		return place{root: "/", rel: strings.TrimPrefix(path, "/"), name: name}, nil
	}
	rel, ok := strings.CutPrefix(path, p.allocDir+"/")
	if !ok {
		return place{}, structs.Errorf(structs.CodePermission, "path %q leads out of the directory of the allocation", name)
	}
	return place{root: p.allocDir, rel: rel, name: name}, nil
}

// read gives a regular file's content.
func (p place) read() ([]byte, error) {
	f, info, err := p.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > maxFile {
		return nil, structs.Errorf(structs.CodeInvalid, "file %q has %d bytes, above %d", p.name, info.Size(), maxFile)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = structs.Errorf(structs.CodeInvalid, "file %q is above %d bytes", p.name, maxFile)
	}
	return data, err
}

func (p place) open() (*os.File, fs.FileInfo, error) {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return nil, nil, fmt.Errorf("open %q: %w", p.name, err)
	}
	defer root.Close()
	f, err := root.OpenFile(p.rel, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0) // a FIFO must not hold us up
	if err != nil {
		return nil, nil, fmt.Errorf("open %q: %w", p.name, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = structs.Errorf(structs.CodeInvalid, "%q is no regular file", p.name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// owner says to whom a file is given; -1 leaves it as it is.
type owner struct {
	mode     fs.FileMode
	uid, gid int
}

// permissions reads the octal perms.
func permissions(text string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(text, 8, 12)
	if err != nil {
		return 0, structs.Errorf(structs.CodeInvalid, "perms %q are not an octal number", text)
	}
	mode := fs.FileMode(n).Perm()
	for bit, flag := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if n&bit != 0 {
			mode |= flag
		}
	}
	return mode, nil
}

// write replaces the file in one step, and says whether its content differs from what was there. A link in its place, or
// on the way to it, is refused: the task may have made it.
func (p place) write(data []byte, o owner) (changed bool, err error) {
	dir, base, err := p.openDir()
	if err != nil {
		return false, fmt.Errorf("write %q: %w", p.name, err)
	}
	defer unix.Close(dir)
	var st unix.Stat_t
	switch err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case errors.Is(err, unix.ENOENT):
		changed = true
	case err != nil:
		return false, fmt.Errorf("write %q: %w", p.name, err)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return false, structs.Errorf(structs.CodePermission, "write %q: there is a link, a directory or a device", p.name)
	default:
		old, err := p.read()
		changed = err != nil || !bytes.Equal(old, data)
	}
	if !changed && uint32(st.Mode&0o7777) == bits(o.mode) && (o.uid < 0 || st.Uid == uint32(o.uid)) && (o.gid < 0 || st.Gid == uint32(o.gid)) {
		return false, nil
	}
	if err := replace(dir, base, data, o); err != nil {
		return false, fmt.Errorf("write %q: %w", p.name, err)
	}
	return changed, nil
}

// bits are the permissions as the kernel counts them.
func bits(mode fs.FileMode) uint32 {
	n := uint32(mode.Perm())
	for flag, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			n |= bit
		}
	}
	return n
}

// replace writes beside the file and renames.
func replace(dir int, base string, data []byte, o owner) error {
	temp := "." + base[:min(len(base), 100)] + "." + uuid.New()[:8]
	fd, err := unix.Openat(dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), temp)
	_, err = f.Write(data)
	if err == nil && (o.uid >= 0 || o.gid >= 0) {
		err = f.Chown(o.uid, o.gid)
	}
	if err == nil {
		err = f.Chmod(o.mode) // after chown, which clears set-id bits
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = unix.Renameat(dir, temp, dir, base)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temp, 0)
	}
	return err
}

// openDir opens the file's directory step by step, without following links, and makes what is not there.
func (p place) openDir() (fd int, base string, err error) {
	parts := strings.Split(p.rel, "/")
	base = parts[len(parts)-1]
	if p.rel == "" || base == "." || base == ".." {
		return 0, "", structs.Errorf(structs.CodeInvalid, "it names no file")
	}
	const how = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if fd, err = unix.Open(p.root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return 0, "", err
	}
	for _, part := range parts[:len(parts)-1] {
		next, err := unix.Openat(fd, part, how, 0)
		if errors.Is(err, unix.ENOENT) {
			if err = unix.Mkdirat(fd, part, 0o755); err == nil || errors.Is(err, unix.EEXIST) {
				next, err = unix.Openat(fd, part, how, 0)
			}
		}
		_ = unix.Close(fd)
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
			return 0, "", structs.Errorf(structs.CodePermission, "%q on the way is a link or no directory", part)
		}
		if err != nil {
			return 0, "", err
		}
		fd = next
	}
	return fd, base, nil
}
