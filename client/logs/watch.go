package logs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/structs"
)

// watch waits for changes of a file or of the files in a directory by inotify.
type watch struct {
	file *os.File // the inotify descriptor, in Go's poller

	mu    sync.Mutex
	woken bool
}

type watchEvent struct {
	deleted bool // the watched file itself is gone
	created bool // a file has come
}

// newWatch watches the files in a directory.
func newWatch(dir string) (*watch, error) {
	return addWatch(dir, unix.IN_MODIFY|unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_DELETE|unix.IN_ONLYDIR)
}

// newFileWatch watches one open file.
func newFileWatch(f *os.File) (*watch, error) {
	// IN_ATTRIB: a file that is open still exists after its last name is gone; its link count changes.
	return addWatch(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.IN_MODIFY|unix.IN_ATTRIB|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF)
}

func addWatch(path string, mask uint32) (*watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	if _, err := unix.InotifyAddWatch(fd, path, mask); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			return nil, structs.Errorf(structs.CodeNotFound, "watch files: %w", err)
		}
		return nil, fmt.Errorf("watch files: %w", err)
	}
	return &watch{file: os.NewFile(uintptr(fd), "inotify")}, nil
}

// wait returns at the next change, after a wake, when ctx is done (its error), or when closed (os.ErrClosed).
func (w *watch) wait(ctx context.Context) (watchEvent, error) {
	if err := ctx.Err(); err != nil {
		return watchEvent{}, err
	}
	stop := context.AfterFunc(ctx, w.interrupt)
	defer stop()
	w.mu.Lock()
	if w.woken {
		w.woken = false
		w.mu.Unlock()
		return watchEvent{}, nil
	}
	w.file.SetReadDeadline(time.Time{})
	w.mu.Unlock()
	if err := ctx.Err(); err != nil { // it may have been interrupted before the deadline was cleared
		return watchEvent{}, err
	}
	var buf [4096]byte
	n, err := w.file.Read(buf[:])
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.mu.Lock()
		w.woken = false
		w.mu.Unlock()
		return watchEvent{}, ctx.Err()
	case err != nil:
		return watchEvent{}, err
	}
	return parseEvents(buf[:n]), nil
}

func parseEvents(buf []byte) watchEvent {
	var e watchEvent
	for len(buf) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(buf[4:])
		name := binary.NativeEndian.Uint32(buf[12:])
		if mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED) != 0 {
			e.deleted = true
		}
		if mask&(unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_Q_OVERFLOW) != 0 {
			e.created = true
		}
		buf = buf[min(len(buf), unix.SizeofInotifyEvent+int(name)):]
	}
	return e
}

// interrupt ends a wait that is under way.
func (w *watch) interrupt() {
	w.file.SetReadDeadline(time.Unix(1, 0))
}

// wake makes the wait that is under way, or the next one, return.
func (w *watch) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken = true
	w.interrupt()
}

func (w *watch) close() { w.file.Close() }
