package logs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Rotator writes one kind of output of one task into its rotated files. It carries on in the newest file it finds. It
// is not safe for concurrent use.
type Rotator struct {
	dir      string
	base     string
	maxFiles int
	maxBytes int64

	file     int // fd, -1 when none is open
	index    int // of the open file
	size     int64
	noSplice bool // the file system refused splice once
	closed   bool
}

// NewRotator opens the files that belong to a FIFO (FIFOPath). Zero limits mean the defaults.
func NewRotator(fifo string, maxFiles int, maxBytes int64) (*Rotator, error) {
	dir, base, ok := splitFIFO(fifo)
	if !ok {
		return nil, fmt.Errorf("open log: %q is no name of a log FIFO", fifo)
	}
	if maxFiles <= 0 {
		maxFiles = DefaultMaxFiles
	}
	if maxBytes <= 0 {
		maxBytes = DefaultMaxBytes
	}
	r := &Rotator{dir: dir, base: base, maxFiles: maxFiles, maxBytes: maxBytes, file: -1}
	indexes, err := r.existing()
	if err == nil {
		if len(indexes) > 0 {
			r.index = indexes[len(indexes)-1]
		}
		err = r.open()
	}
	if err == nil {
		err = r.prune(indexes)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Rotator) name(index int) string { return r.base + "." + strconv.Itoa(index) }

// openDir opens the log directory. It is not kept open: that would be one more file for each output of each task.
func (r *Rotator) openDir() (int, error) { return openDir(r.dir) }

// existing lists the numbers of the files there are, in order.
func (r *Rotator) existing() ([]int, error) {
	fd, err := r.openDir()
	if err != nil {
		return nil, err
	}
	d := os.NewFile(uintptr(fd), r.dir)
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list log directory: %w", err)
	}
	var out []int
	for _, name := range names {
		if n, ok := fileIndex(name, r.base); ok {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// open opens the file of the current number, at its end. Something that is no plain file there (a task may have put
// it) is passed over by taking the next number.
func (r *Rotator) open() error {
	dir, err := r.openDir()
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	for tries := 0; ; tries++ {
		fd, err := unix.Openat(dir, r.name(r.index), unix.O_WRONLY|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o644)
		if err == nil {
			var st unix.Stat_t
			if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink == 1 {
				if r.size, err = unix.Seek(fd, 0, unix.SEEK_END); err == nil {
					r.file = fd
					return nil
				}
			} else if err == nil {
				err = unix.ELOOP
			}
			unix.Close(fd)
		}
		blocked := errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EISDIR)
		if !blocked || tries >= 100 {
			return fmt.Errorf("open log file %s: %w", r.name(r.index), err)
		}
		r.index++
	}
}

// prune deletes what is older than the newest maxFiles.
func (r *Rotator) prune(indexes []int) error {
	if len(indexes) == 0 || indexes[0] > r.index-r.maxFiles || r.index < r.maxFiles {
		return nil
	}
	dir, err := r.openDir()
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	for _, n := range indexes {
		if n > r.index-r.maxFiles {
			break
		}
		if err := unix.Unlinkat(dir, r.name(n), 0); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EISDIR) {
			return fmt.Errorf("delete log file %s: %w", r.name(n), err)
		}
	}
	return nil
}

// room makes sure that a file with room is open, and says how much it has.
func (r *Rotator) room() (int64, error) {
	if r.closed {
		return 0, os.ErrClosed
	}
	if r.file >= 0 {
		// Somebody may have truncated the file: go on from its end and leave no hole.
		var st unix.Stat_t
		if err := unix.Fstat(r.file, &st); err != nil {
			return 0, fmt.Errorf("stat log file: %w", err)
		}
		if st.Size != r.size {
			size, err := unix.Seek(r.file, 0, unix.SEEK_END)
			if err != nil {
				return 0, fmt.Errorf("seek in log file: %w", err)
			}
			r.size = size
		}
		if r.size < r.maxBytes {
			return r.maxBytes - r.size, nil
		}
		unix.Close(r.file)
		r.file = -1
		r.index++
	}
	for {
		if err := r.open(); err != nil {
			return 0, err
		}
		if r.size < r.maxBytes {
			break
		}
		unix.Close(r.file)
		r.file = -1
		r.index++
	}
	// The usual case is one file to delete; a lowered max_files is seen to when the rotator is made.
	return r.maxBytes - r.size, r.prune([]int{r.index - r.maxFiles})
}

// Position gives the number of the file that is written, and how many bytes are in it.
func (r *Rotator) Position() (index int, size int64) { return r.index, r.size }

// Since counts the bytes that were written after a position, as far as the files are still there.
func (r *Rotator) Since(index int, size int64) int64 {
	total := r.size - size
	for n := index; n < r.index; n++ {
		if info, err := os.Lstat(filepath.Join(r.dir, r.name(n))); err == nil {
			total += info.Size()
		}
	}
	return max(total, 0)
}

// Write appends p, rotating as needed.
func (r *Rotator) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		room, err := r.room()
		if err != nil {
			return done, err
		}
		n, err := unix.Write(r.file, p[done:done+int(min(room, int64(len(p)-done)))])
		if n > 0 {
			done += n
			r.size += int64(n)
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return done, fmt.Errorf("write log file: %w", err)
		}
	}
	return done, nil
}

// Drain moves what waits in the FIFO to the files, up to about budget bytes, and says how much that was and whether
// the FIFO is empty now. The kernel moves the bytes (splice): they are in the FIFO or in the file, whenever the
// process dies. buf serves where the file system cannot do that.
func (r *Rotator) Drain(fifo int, budget int, buf []byte) (moved int, empty bool, err error) {
	for moved < budget {
		room, err := r.room()
		if err != nil {
			return moved, false, err
		}
		var n int
		if r.noSplice {
			n, err = r.copy(fifo, buf[:min(int64(len(buf)), room)])
		} else {
			var n64 int64
			n64, err = unix.Splice(fifo, nil, r.file, nil, int(min(room, 1<<20)), unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
			n = int(n64)
			if err == unix.EINVAL {
				r.noSplice = true
				continue
			}
			r.size += int64(max(n, 0))
		}
		switch {
		case err == unix.EAGAIN:
			return moved, true, nil
		case err == unix.EINTR:
			continue
		case err != nil:
			return moved, false, fmt.Errorf("drain log FIFO: %w", err)
		case n == 0:
			return moved, true, nil
		}
		moved += n
	}
	return moved, false, nil
}

func (r *Rotator) copy(fifo int, buf []byte) (int, error) {
	n, err := unix.Read(fifo, buf)
	if n <= 0 || err != nil {
		return 0, err
	}
	return r.Write(buf[:n])
}

// Close closes the files. It may be called more than once.
func (r *Rotator) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.file >= 0 {
		return unix.Close(r.file)
	}
	return nil
}
