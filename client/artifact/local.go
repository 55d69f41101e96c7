package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/structs"
)

// showsHost says whether the node's configuration shows files of the host to artifacts. Which ones is up to the
// kernel, unless it is all.
func (f *fetcher) showsHost() error {
	if !f.Settings.NoIsolation && len(f.Settings.ExtraPaths) == 0 {
		return final("files of the node are not shown to artifacts: its configuration has neither disable_filesystem_isolation " +
			"nor filesystem_isolation_extra_paths")
	}
	return nil
}

// file fetches a file or directory of the host, as a copy.
func (f *fetcher) file(context.Context) error {
	if err := f.showsHost(); err != nil {
		return err
	}
	info, err := os.Stat(f.Source.URL)
	if err != nil {
		return fmt.Errorf("look at file: %w", err)
	}
	if info.IsDir() {
		if f.Source.Checksum != "" {
			return final("checksum is of one file, and %q is a directory", f.Source.URL)
		}
		if err := f.copyTree(f.Source.URL); err != nil {
			return err
		}
		return f.keepTree()
	}
	if err := f.unpackable(); err != nil {
		return err
	}
	want, err := f.wanted(context.Background())
	if err != nil {
		return err
	}
	if err := f.save(want, func(w io.Writer) error { return f.readHost(f.Source.URL, w, f.Settings.HTTPMaxSize) }); err != nil {
		return err
	}
	if f.archive() == "" || f.Mode == structs.ArtifactModeFile {
		_ = f.stage.Chmod(downloadName, info.Mode().Perm()) // a program stays one
	}
	return f.unpack()
}

// readHost copies a regular file of the host.
func (f *fetcher) readHost(name string, w io.Writer, limit int64) error {
	if err := f.showsHost(); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("open file: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(fmt.Errorf("%q is no regular file", name), err)
	}
	in := io.Reader(file)
	if limit > 0 {
		in = io.LimitReader(file, limit+1)
	}
	n, err := io.Copy(w, in)
	if err == nil && limit > 0 && n > limit {
		err = fmt.Errorf("file is above %d bytes: %w", limit, errTooLarge)
	}
	return err
}

// copyTree copies a directory of the host, links as links.
func (f *fetcher) copyTree(dir string) error {
	s, err := f.newSink()
	if err != nil {
		return err
	}
	defer s.root.Close()
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := entry{name: rel, mode: info.Mode(), mtime: info.ModTime()}
		switch {
		case d.IsDir():
			return s.put(e, nil)
		case d.Type()&fs.ModeSymlink != 0:
			if e.link, err = os.Readlink(p); err != nil {
				return err
			}
			return s.put(e, nil)
		case !d.Type().IsRegular():
			return fmt.Errorf("%q is a %s", path.Base(p), kind(d.Type()))
		}
		in, err := os.Open(p)
		if err != nil {
			return err
		}
		defer in.Close()
		return s.put(e, in)
	})
	if err != nil {
		return fmt.Errorf("copy directory: %w", err)
	}
	return s.finish()
}
