package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// dirs are the directories of a task as the blocks name them.
type dirs struct {
	alloc string            // the allocation's directory on the host
	task  string            // the task's below it, against which paths count
	seen  map[string]string // directories as the task knows them -> on the host
}

// find gives a destination relative to the allocation's directory, in which it must lie.
func (d dirs) find(destination string) (string, error) {
	if strings.ContainsRune(destination, 0) {
		return "", structs.Errorf(structs.CodeInvalid, "destination %q cannot name a file", destination)
	}
	at, known := destination, false
	for dir, host := range d.seen {
		if rest, ok := strings.CutPrefix(at+"/", dir+"/"); ok && dir != "" {
			at, known = filepath.Join(host, rest), true
			break
		}
	}
	if !known && !strings.HasPrefix(at, d.alloc+"/") {
		at = filepath.Join(d.task, strings.TrimLeft(destination, "/"))
	}
	rel, err := filepath.Rel(d.alloc, at)
	if err != nil || !filepath.IsLocal(rel) {
		return "", structs.Errorf(structs.CodePermission, "destination %q leads out of the directory of the allocation", destination)
	}
	return rel, nil
}

// place is a directory to which something is fetched, opened without following a link below the allocation's.
type place struct {
	dir   *os.Root
	stage string // name of the directory in it that is filled first
}

// openPlace opens the directory rel of an allocation and makes what is not there. Links on the way are refused: a task
// of the allocation may have made them.
func openPlace(allocDir, rel, stage string) (*place, error) {
	dir, err := os.OpenRoot(allocDir)
	if err != nil {
		return nil, fmt.Errorf("open allocation directory: %w", err)
	}
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		next, err := step(dir, part)
		if closed := dir.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return nil, fmt.Errorf("open destination %q: %w", rel, err)
		}
		dir = next
	}
	return &place{dir: dir, stage: stage}, nil
}

func step(dir *os.Root, name string) (*os.Root, error) {
	if name == "" || name == "." {
		return dir.OpenRoot(".")
	}
	if err := dir.Mkdir(name, 0o755); err == nil {
		err = dir.Chmod(name, 0o755) // whatever the umask
		if err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, structs.Errorf(structs.CodePermission, "%q on the way is a link or no directory", name)
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if arrived, err := next.Stat("."); err != nil || !os.SameFile(info, arrived) {
		return nil, errors.Join(structs.Errorf(structs.CodePermission, "%q on the way was exchanged", name), err, next.Close())
	}
	return next, nil
}

// prepare makes the stage anew and opens it.
func (p *place) prepare() (*os.File, error) {
	if err := p.clean(); err != nil {
		return nil, err
	}
	if err := p.dir.Mkdir(p.stage, 0o700); err != nil {
		return nil, fmt.Errorf("make directory to fetch to: %w", err)
	}
	return p.dir.Open(p.stage)
}

// clean removes the stage with all that is in it.
func (p *place) clean() error {
	if err := p.dir.RemoveAll(p.stage); err != nil {
		return fmt.Errorf("remove what was half fetched: %w", err)
	}
	return nil
}

// Close gives the directory back.
func (p *place) Close() error { return p.dir.Close() }

// fetched opens what the process made.
func (p *place) fetched() (*os.Root, error) {
	info, err := p.dir.Lstat(p.out())
	if err == nil && !info.IsDir() {
		err = errors.New("it is no directory")
	}
	if err != nil {
		return nil, fmt.Errorf("look at what was fetched: %w", err)
	}
	return p.dir.OpenRoot(p.out())
}

func (p *place) out() string { return p.stage + "/" + outName }

// take moves what was fetched to its place, beside what is there: directories are joined, files replaced.
func (p *place) take() error { return p.join(p.out(), ".") }

func (p *place) join(from, to string) error {
	entries, err := fs.ReadDir(p.dir.FS(), from)
	if err != nil {
		return fmt.Errorf("read what was fetched: %w", err)
	}
	for _, e := range entries {
		src, dst := from+"/"+e.Name(), filepath.Join(to, e.Name())
		if dst == p.stage {
			return fmt.Errorf("%q cannot be brought by an artifact", dst)
		}
		there, err := p.dir.Lstat(dst)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = p.dir.Rename(src, dst)
		case err != nil:
		case there.Mode()&fs.ModeSymlink != 0:
			err = structs.Errorf(structs.CodePermission, "there is a link in its place")
		case e.IsDir() && there.IsDir():
			if err := p.join(src, dst); err != nil {
				return err
			}
		case e.IsDir() || there.IsDir():
			err = errors.New("of a file and a directory one would replace the other")
		default:
			err = p.dir.Rename(src, dst)
		}
		if err != nil {
			return fmt.Errorf("put %q in its place: %w", dst, err)
		}
	}
	return nil
}
