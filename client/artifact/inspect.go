package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/nomadlite/nomadlite/structs"
)

// owner is to whom files are given.
type owner struct{ uid, gid int }

// look is what the agent wants of a fetched tree before it lies where a task finds it.
type look struct {
	maxBytes int64 // 0 is no limit
	anyLink  bool  // links may lead out of the tree
	owner    *owner
}

// inspect walks a tree and refuses what leads out of it or is no file, directory or link. Bits that lend rights are
// taken away. Nobody writes to the tree any more.
func (l look) inspect(tree *os.Root) error {
	var bytes int64
	err := fs.WalkDir(tree.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := l.member(tree, name, info); err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("inspect artifact: %w", err)
	}
	if l.maxBytes > 0 && bytes > l.maxBytes {
		return fmt.Errorf("artifact has %d bytes, above %d: %w", bytes, l.maxBytes, errTooLarge)
	}
	return nil
}

func (l look) member(tree *os.Root, name string, info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		if err := l.link(tree, name); err != nil {
			return err
		}
	case !mode.IsRegular() && !mode.IsDir():
		return structs.Errorf(structs.CodePermission, "%q is a %s, which no artifact may bring", name, kind(mode))
	}
	if l.owner != nil {
		if err := tree.Lchown(name, l.owner.uid, l.owner.gid); err != nil {
			return err
		}
	}
	if lends := mode & (fs.ModeSetuid | fs.ModeSetgid); lends != 0 && mode&fs.ModeSymlink == 0 {
		return tree.Chmod(name, mode.Perm()|mode&fs.ModeSticky)
	}
	return nil
}

// link refuses one that leads out, whether by itself or by way of others.
func (l look) link(tree *os.Root, name string) error {
	if l.anyLink {
		return nil
	}
	target, err := tree.Readlink(name)
	if err != nil {
		return err
	}
	out := filepath.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target))
	if !out {
		_, err := tree.Stat(name)
		out = err != nil && !errors.Is(err, fs.ErrNotExist)
	}
	if out {
		return structs.Errorf(structs.CodePermission, "link %q leads out of the artifact, to %q", name, target)
	}
	return nil
}
