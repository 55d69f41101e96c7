package allocdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/structs"
)

// clean makes a path of the API relative to the allocation's directory and refuses secrets.
func clean(p string) (string, error) {
	if strings.ContainsRune(p, 0) {
		return "", structs.Errorf(structs.CodeInvalid, "path %q has a NUL character", p)
	}
	rel := strings.TrimPrefix(path.Clean("/"+p), "/")
	if rel == "" {
		rel = "."
	}
	parts := strings.Split(rel, "/")
	if len(parts) >= 2 && parts[0] != SharedName && parts[1] == SecretsName {
		return "", structs.Errorf(structs.CodePermission, "Reading secret file prohibited: %s", p)
	}
	return rel, nil
}

// root opens the allocation's directory for one operation.
func (d *Dir) root() (*os.Root, error) {
	r, err := os.OpenRoot(d.Path)
	if err != nil {
		return nil, fileError("open allocation directory", err)
	}
	return r, nil
}

// resolve opens a path for reading without following links out of the directory or into secrets, and without
// blocking on a FIFO. The caller closes the file.
func (d *Dir) resolve(p string) (*os.File, fs.FileInfo, error) {
	rel, err := clean(p)
	if err != nil {
		return nil, nil, err
	}
	r, err := d.root()
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	f, err := r.OpenFile(rel, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fileError("open "+p, err)
	}
	// A link inside the directory may still lead to secrets: what counts is where we arrived.
	if target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err == nil {
		if real, err := filepath.EvalSymlinks(d.Path); err == nil && strings.HasPrefix(target, real+"/") {
			if _, err := clean(strings.TrimPrefix(target, real)); err != nil {
				f.Close()
				return nil, nil, err
			}
		}
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, fileError("stat "+p, err)
	}
	return f, info, nil
}

// List gives the entries of a directory by name. Errors carry a code: not found, permission, invalid.
func (d *Dir) List(p string) ([]*structs.AllocFileInfo, error) {
	f, info, err := d.resolve(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !info.IsDir() {
		return nil, structs.Errorf(structs.CodeInvalid, "%s is not a directory", p)
	}
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, fileError("list "+p, err)
	}
	out := make([]*structs.AllocFileInfo, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since
		}
		if err != nil {
			return nil, fileError("list "+p, err)
		}
		out = append(out, fileInfo(info, ""))
	}
	slices.SortFunc(out, func(a, b *structs.AllocFileInfo) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Stat describes one file, with its content type when it is a regular one.
func (d *Dir) Stat(p string) (*structs.AllocFileInfo, error) {
	f, info, err := d.resolve(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content := ""
	if info.Mode().IsRegular() {
		content = contentType(f, info.Name())
	}
	return fileInfo(info, content), nil
}

// Open opens a regular file for reading; the caller closes it.
func (d *Dir) Open(p string) (*os.File, error) {
	f, info, err := d.resolve(p)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		f.Close()
		return nil, structs.Errorf(structs.CodeInvalid, "%s is not a regular file", p)
	}
	return f, nil
}

// ReadAt reads limit bytes from offset on; a negative limit reads to the end. Beyond the end there is nothing. The
// caller closes the reader.
func (d *Dir) ReadAt(p string, offset, limit int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, structs.Errorf(structs.CodeInvalid, "offset %d is negative", offset)
	}
	f, err := d.Open(p)
	if err != nil {
		return nil, err
	}
	_, err = f.Seek(offset, io.SeekStart)
	if errors.Is(err, unix.EINVAL) { // more than any file of this file system can have
		_, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		f.Close()
		return nil, fileError("seek in "+p, err)
	}
	if limit < 0 {
		return f, nil
	}
	return &limitedFile{Reader: io.LimitReader(f, limit), file: f}, nil
}

type limitedFile struct {
	io.Reader
	file *os.File
}

func (l *limitedFile) Close() error { return l.file.Close() }

func fileInfo(info fs.FileInfo, content string) *structs.AllocFileInfo {
	return &structs.AllocFileInfo{
		Name:        info.Name(),
		IsDir:       info.IsDir(),
		Size:        info.Size(),
		FileMode:    info.Mode().String(),
		ModTime:     info.ModTime(),
		ContentType: content,
	}
}

func contentType(f *os.File, name string) string {
	if t := mime.TypeByExtension(filepath.Ext(name)); t != "" {
		return t
	}
	head := make([]byte, 512)
	n, _ := f.ReadAt(head, 0)
	return http.DetectContentType(head[:n])
}

// fileError gives an error of the file system the code with which the API answers it. A path that leads out of the
// directory is answered as one that may not be read.
func fileError(what string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return structs.Errorf(structs.CodeNotFound, "%s: %w", what, err)
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENAMETOOLONG):
		return structs.Errorf(structs.CodeInvalid, "%s: %w", what, err)
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV): // a socket, or a device that is not there
		return structs.Errorf(structs.CodeInvalid, "%s: %w", what, err)
	case errors.Is(err, fs.ErrPermission):
		return structs.Errorf(structs.CodePermission, "%s: %w", what, err)
	case isEscape(err):
		return structs.Errorf(structs.CodePermission, "%s: path escapes the alloc directory", what)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// isEscape: os.Root has no exported error for a path that leads out; it is a PathError whose cause is no errno.
func isEscape(err error) bool {
	var pathErr *fs.PathError
	if !errors.As(err, &pathErr) {
		return false
	}
	var errno unix.Errno
	return !errors.As(pathErr.Err, &errno)
}
