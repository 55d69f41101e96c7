package artifact

import (
	"archive/tar"
	"archive/zip"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// format is how a file is packed: a zip, or a stream that holds a tar or one file.
type format struct {
	zip, tar bool
	open     func(io.Reader) (io.Reader, error)
}

// formats are the packed files by extension.
func formats() map[string]format {
	plain := func(r io.Reader) (io.Reader, error) { return r, nil }
	gz := func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	bz := func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }
	xzip := func(r io.Reader) (io.Reader, error) { return xz.NewReader(r) }
	zst := func(r io.Reader) (io.Reader, error) {
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return map[string]format{
		"zip": {zip: true}, "tar": {tar: true, open: plain},
		"tar.gz": {tar: true, open: gz}, "tgz": {tar: true, open: gz}, "gz": {open: gz},
		"tar.bz2": {tar: true, open: bz}, "tbz2": {tar: true, open: bz}, "bz2": {open: bz},
		"tar.xz": {tar: true, open: xzip}, "txz": {tar: true, open: xzip}, "xz": {open: xzip},
		"tar.zst": {tar: true, open: zst}, "tzst": {tar: true, open: zst}, "zst": {open: zst},
	}
}

// maxWindow is how far back a zstd stream may refer, in bytes: what the format recommends for long distances.
const maxWindow = 128 << 20

// extension is the longest extension of the name that is a format; "" when there is none.
func extension(name string) string {
	found := ""
	for ext := range formats() {
		if strings.HasSuffix(name, "."+ext) && len(ext) > len(found) {
			found = ext
		}
	}
	return found
}

// entry is what an archive says of one of its members.
type entry struct {
	name  string
	mode  fs.FileMode
	link  string // target of a symbolic link
	hard  string // the earlier member that this one is
	mtime time.Time
}

// sink writes members below a directory and counts. Nothing goes outside, whatever links there are: see os.Root.
type sink struct {
	root     *os.Root
	maxBytes int64 // 0 is no limit
	maxFiles int   // 0 is no limit
	bytes    int64
	files    int
	dirs     []entry // whose modes and times are set last
}

// newSink makes the directory in the stage that becomes the artifact. The caller closes its root.
func (f *fetcher) newSink() (*sink, error) {
	if err := f.stage.Mkdir(wholeName, 0o755); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	root, err := f.stage.OpenRoot(wholeName)
	if err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	return &sink{root: root, maxBytes: f.Settings.UnpackedSize, maxFiles: f.Settings.UnpackedFiles}, nil
}

var errTooLarge = errors.New("it is larger than the node's configuration allows")

// local makes the name of a member relative, and refuses one that leads up.
func local(name string) (string, error) {
	name = strings.TrimPrefix(path.Clean("./"+strings.TrimLeft(name, "/")), "./")
	if name == ".." || strings.HasPrefix(name, "../") || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("member %q leads out of the archive", name)
	}
	return name, nil
}

// put writes one member; content is read for regular files.
func (s *sink) put(e entry, content io.Reader) error {
	if s.files++; s.maxFiles > 0 && s.files > s.maxFiles {
		return fmt.Errorf("archive has more than %d members: %w", s.maxFiles, errTooLarge)
	}
	name, err := local(e.name)
	if err != nil {
		return err
	}
	if name == "." {
		return nil
	}
	e.name = name
	if err := s.write(e, content); err != nil {
		return fmt.Errorf("unpack %q: %w", name, err)
	}
	return nil
}

func (s *sink) write(e entry, content io.Reader) error {
	if e.mode.IsDir() {
		s.dirs = append(s.dirs, e)
		return s.root.MkdirAll(e.name, 0o755)
	}
	if err := s.root.MkdirAll(path.Dir(e.name), 0o755); err != nil {
		return err
	}
	if err := s.root.Remove(e.name); err != nil && !errors.Is(err, fs.ErrNotExist) { // a later member of the same name wins
		return err
	}
	switch {
	case e.hard != "":
		target, err := local(e.hard)
		if err != nil {
			return err
		}
		return s.root.Link(target, e.name)
	case e.mode&fs.ModeSymlink != 0:
		return s.root.Symlink(e.link, e.name)
	case !e.mode.IsRegular():
		return fmt.Errorf("it is a %s, which no archive may bring", kind(e.mode))
	}
	f, err := s.root.OpenFile(e.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(s.copy(f, content), f.Chmod(e.mode.Perm()), f.Close())
	if err == nil && !e.mtime.IsZero() {
		err = s.root.Chtimes(e.name, e.mtime, e.mtime)
	}
	return err
}

// copy counts what was really written, not what a header promised.
func (s *sink) copy(w io.Writer, r io.Reader) error {
	if s.maxBytes > 0 {
		r = io.LimitReader(r, s.maxBytes-s.bytes+1)
	}
	n, err := io.Copy(w, r)
	s.bytes += n
	if s.maxBytes > 0 && s.bytes > s.maxBytes {
		return fmt.Errorf("content is above %d bytes: %w", s.maxBytes, errTooLarge)
	}
	return err
}

// finish gives directories their modes, deepest first, now that nothing is written into them any more. Their owner can
// always enter and change them: who is to remove them must.
func (s *sink) finish() error {
	for i := len(s.dirs) - 1; i >= 0; i-- {
		d := s.dirs[i]
		info, err := s.root.Lstat(d.name)
		if err == nil && !info.IsDir() {
			continue // a later member took its name
		}
		if err == nil {
			err = s.root.Chmod(d.name, d.mode.Perm()|0o700)
		}
		if err == nil && !d.mtime.IsZero() {
			err = s.root.Chtimes(d.name, d.mtime, d.mtime)
		}
		if err != nil {
			return fmt.Errorf("unpack %q: %w", d.name, err)
		}
	}
	return nil
}

// untar unpacks a tar.
func (s *sink) untar(r io.Reader) error {
	members := tar.NewReader(r)
	for n := 0; ; n++ {
		h, err := members.Next()
		switch {
		case errors.Is(err, io.EOF) && n == 0:
			return errors.New("archive is empty")
		case errors.Is(err, io.EOF):
			return s.finish()
		case err != nil:
			return fmt.Errorf("read archive: %w", err)
		case h.Typeflag == tar.TypeXGlobalHeader:
			continue
		}
		e := entry{name: h.Name, mode: h.FileInfo().Mode(), mtime: h.ModTime}
		switch h.Typeflag {
		case tar.TypeSymlink:
			e.link = h.Linkname
		case tar.TypeLink:
			e.hard = h.Linkname
		}
		if err := s.put(e, members); err != nil {
			return err
		}
	}
}

// maxLink bounds the target of a link in a zip, in bytes.
const maxLink = 4096

// unzip unpacks a zip.
func (s *sink) unzip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	members, err := zip.NewReader(f, info.Size())
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	if len(members.File) == 0 {
		return errors.New("archive is empty")
	}
	for _, m := range members.File {
		if err := s.unzipMember(m); err != nil {
			return err
		}
	}
	return s.finish()
}

func (s *sink) unzipMember(m *zip.File) error {
	e := entry{name: m.Name, mode: m.Mode(), mtime: m.Modified}
	if e.mode.IsDir() {
		return s.put(e, nil)
	}
	content, err := m.Open()
	if err != nil {
		return fmt.Errorf("unpack %q: %w", m.Name, err)
	}
	if e.mode&fs.ModeSymlink != 0 {
		target, err := io.ReadAll(io.LimitReader(content, maxLink))
		if err != nil {
			return errors.Join(fmt.Errorf("unpack %q: %w", m.Name, err), content.Close())
		}
		e.link = string(target)
	}
	return errors.Join(s.put(e, content), content.Close())
}

// kind names what is neither file, directory nor link.
func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeDevice != 0:
		return "device"
	case mode&fs.ModeNamedPipe != 0:
		return "FIFO"
	case mode&fs.ModeSocket != 0:
		return "socket"
	default:
		return "special file"
	}
}
