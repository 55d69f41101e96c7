package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/nomadlite/nomadlite/jobspec"
)

func fmtCommand() *spec {
	return &spec{name: "fmt", args: "[<path>...]", synopsis: "Rewrite jobspecs and configuration in the canonical layout",
		help: `Rewrites HCL files in the canonical layout and names those that were not in it. In folders, files that end in
.nomad and .hcl are taken, in the folder itself or with -recursive in those below it too; a file that is named is taken
whatever its ending, such as a file of variables. Without a path the working folder is meant. The path "-" formats
standard input to standard output.

A file that is no HCL stays as it is; its faults are told with file, line and column.

Exit code 1: a file is no HCL or cannot be read or written or, with -check, a file is not in the canonical layout.`,
		maxArgs: -1,
		prepare: func(flags *flag.FlagSet) func(context.Context, *call) error {
			f := &formatter{}
			flags.BoolVar(&f.check, "check", false, "Write nothing; end with exit code 1 when a file is not in the canonical layout.")
			flags.BoolVar(&f.diff, "diff", false, "Print what changes.")
			flags.BoolVar(&f.list, "list", true, "Print the names of the files that change.")
			flags.BoolVar(&f.recursive, "recursive", false, "Take files in folders below a folder too.")
			flags.BoolVar(&f.write, "write", true, "Write changed files.")
			return func(_ context.Context, c *call) error { return f.run(c) }
		}}
}

// formatter is one run of fmt.
type formatter struct {
	check, diff, list, recursive, write bool

	faults  []string
	changed int
}

func (f *formatter) run(c *call) error {
	paths := c.args
	if len(paths) == 0 {
		paths = []string{"."}
	}
	for _, path := range paths {
		if path == "-" {
			if len(paths) > 1 {
				return errors.New(`the path "-" stands alone: standard input is the only thing to format`)
			}
			return f.finish(f.stream(c))
		}
		files, err := f.files(path)
		if err != nil {
			f.fault(err)
			continue
		}
		for _, file := range files {
			if err := f.file(c, file); err != nil {
				f.fault(err)
			}
		}
	}
	return f.finish(nil)
}

func (f *formatter) fault(err error) {
	f.faults = append(f.faults, strings.TrimRight(err.Error(), "\n"))
}

// finish gives the outcome of the whole run.
func (f *formatter) finish(err error) error {
	if err != nil {
		f.fault(err)
	}
	switch {
	case len(f.faults) > 0:
		return errors.New(strings.Join(f.faults, "\n"))
	case f.check && f.changed > 0:
		return &exitError{code: 1}
	}
	return nil
}

// files lists what a path stands for.
func (f *formatter) files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no file or folder at %s", path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot look at %s: %w", path, err)
	}
	if !info.IsDir() {
		if filepath.Ext(path) == ".json" {
			return nil, fmt.Errorf("%s: JSON files have no canonical layout; only HCL is formatted", path)
		}
		return []string{path}, nil
	}
	var found []string
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name != path && (!f.recursive || strings.HasPrefix(entry.Name(), ".")) {
				return fs.SkipDir
			}
		case canFormat(entry):
			found = append(found, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", path, err)
	}
	return found, nil
}

// canFormat says whether a file of a folder is one to format: regular files and links, by ending, no hidden ones.
func canFormat(entry fs.DirEntry) bool {
	ext := filepath.Ext(entry.Name())
	kind := entry.Type()
	return (ext == ".hcl" || ext == ".nomad") && !strings.HasPrefix(entry.Name(), ".") && (kind.IsRegular() || kind&fs.ModeSymlink != 0)
}

func (f *formatter) stream(c *call) error {
	src, err := io.ReadAll(c.in)
	if err != nil {
		return fmt.Errorf("cannot read standard input: %w", err)
	}
	out, err := canonical("<stdin>", src)
	if err != nil {
		return err
	}
	if !bytes.Equal(src, out) {
		f.changed++
	}
	switch {
	case f.diff:
		c.printf("%s", lineDiff("<stdin>", src, out))
	case !f.check:
		_, err = c.out.Write(out)
	}
	return err
}

func (f *formatter) file(c *call, path string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, errors.Unwrap(err))
	}
	out, err := canonical(path, src)
	if err != nil {
		return err
	}
	if bytes.Equal(src, out) {
		return nil
	}
	f.changed++
	if f.write && !f.check {
		if err := replaceFile(path, out); err != nil {
			return fmt.Errorf("cannot write %s, which stays as it was: %w", path, err)
		}
	}
	if f.list {
		c.printf("%s\n", path)
	}
	if f.diff {
		c.printf("%s", lineDiff(path, src, out))
	}
	return nil
}

// canonical gives the canonical layout of src, or its faults.
func canonical(name string, src []byte) ([]byte, error) {
	if fault := jobspec.Unreadable(src, name); fault != nil {
		return nil, &jobspec.Error{Diags: hcl.Diagnostics{fault}, Files: map[string]*hcl.File{name: {Bytes: src}}}
	}
	file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		if file == nil {
			file = &hcl.File{Bytes: src}
		}
		return nil, &jobspec.Error{Diags: diags, Files: map[string]*hcl.File{name: file}}
	}
	return hclwrite.Format(src), nil
}

// replaceFile puts a file with the same mode and owner in the place of another, whole or not at all. Of a link the file
// it points to is replaced.
func replaceFile(path string, body []byte) (err error) {
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o222 == 0 {
		return errors.New("the file is read-only")
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".fmt-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	if _, err = tmp.Write(body); err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		// Who is not root can only write files of others in place of them as files of his own.
		_ = tmp.Chown(int(owner.Uid), int(owner.Gid))
	}
	if err = tmp.Chmod(info.Mode()); err != nil { // after the owner, whose change clears bits
		return err
	}
	if err = tmp.Sync(); err != nil {
		return err
	}
	if err = tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
