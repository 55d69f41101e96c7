package logs

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"sync"
	"syscall"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/structs"
)

// MaxFrame is the most bytes that one frame carries.
const MaxFrame = 64 << 10

// Where a stream's offset is counted from.
const (
	OriginStart = "start"
	OriginEnd   = "end"
)

// Events which a frame may tell of, as the API names them.
const (
	EventDeleted   = "file deleted"
	EventTruncated = "file truncated"
)

// Stream reads a file, or one kind of a task's output over all of its rotated files, as frames. Next is called by one
// goroutine; Finish and Close may be called by any.
type Stream struct {
	dir    *allocdir.Dir
	path   string // of a single file; "" for logs
	base   string // of logs: "web.stdout"
	follow bool
	watch  *watch // nil unless following

	file   *os.File
	name   string // path of the open file as frames carry it
	index  int    // of the open log file
	offset int64  // next byte to read

	reading sync.Mutex // held by Next
	created bool       // a file may have come since the directory was last listed

	mu       sync.Mutex // guards the two below
	finished bool
	closed   bool
}

// Open streams one kind (Stdout, Stderr) of a task's output. Offset counts over all rotated files, from the start of
// the oldest or back from the end of the newest. With follow the stream goes on with what is written later, until
// Finish or Close. A task without output yet is an error (not found) unless following.
func Open(dir *allocdir.Dir, task, kind, origin string, offset int64, follow bool) (*Stream, error) {
	if kind != Stdout && kind != Stderr {
		return nil, structs.Errorf(structs.CodeInvalid, "log type must be %q or %q", Stdout, Stderr)
	}
	s := &Stream{dir: dir, base: task + "." + kind, follow: follow, index: -1, created: true}
	return s.start(dir.LogDir(), origin, offset, s.seekLogs)
}

// OpenFile streams the file at a path of the allocation's directory.
func OpenFile(dir *allocdir.Dir, name, origin string, offset int64, follow bool) (*Stream, error) {
	s := &Stream{dir: dir, path: name, name: name, follow: follow}
	return s.start("", origin, offset, s.seekFile)
}

func (s *Stream) start(watchDir, origin string, offset int64, seek func(string, int64) error) (*Stream, error) {
	if origin == "" {
		origin = OriginStart
	}
	if origin != OriginStart && origin != OriginEnd {
		return nil, structs.Errorf(structs.CodeInvalid, "origin must be %q or %q", OriginStart, OriginEnd)
	}
	if offset < 0 {
		return nil, structs.Errorf(structs.CodeInvalid, "offset %d is negative", offset)
	}
	if s.follow && watchDir != "" {
		// The watch comes first, so that nothing written after our first read goes unnoticed.
		w, err := newWatch(watchDir)
		if err != nil {
			return nil, err
		}
		s.watch = w
	}
	if err := seek(origin, offset); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Stream) seekFile(origin string, offset int64) error {
	f, err := s.dir.Open(s.path)
	if err != nil {
		return err
	}
	s.file = f
	if s.follow {
		// By way of the open file: a link swapped in since cannot lead the watch elsewhere.
		if s.watch, err = newFileWatch(f); err != nil {
			return err
		}
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	s.offset = min(offset, info.Size())
	if origin == OriginEnd {
		s.offset = info.Size() - s.offset
	}
	return nil
}

type logFile struct {
	index int
	size  int64
}

// logFiles lists the rotated files in order.
func (s *Stream) logFiles() ([]logFile, error) {
	entries, err := s.dir.List(path.Join(allocdir.SharedName, allocdir.LogsName))
	if err != nil {
		return nil, err
	}
	var out []logFile
	for _, e := range entries {
		if n, ok := fileIndex(e.Name, s.base); ok && !e.IsDir {
			out = append(out, logFile{n, e.Size})
		}
	}
	sortLogFiles(out)
	return out, nil
}

func (s *Stream) seekLogs(origin string, offset int64) error {
	files, err := s.logFiles()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		if s.follow {
			return nil
		}
		return structs.Errorf(structs.CodeNotFound, "no log file of %s yet", s.base)
	}
	at := position(files, origin, offset)
	s.offset = at.size
	return s.openLog(at.index)
}

// position finds file and offset in it (size) for an offset over all files.
func position(files []logFile, origin string, offset int64) logFile {
	if origin == OriginEnd {
		for i := len(files) - 1; i >= 0; i-- {
			if offset <= files[i].size {
				return logFile{files[i].index, files[i].size - offset}
			}
			offset -= files[i].size
		}
		return logFile{files[0].index, 0}
	}
	for i, f := range files {
		if offset < f.size || i == len(files)-1 {
			return logFile{f.index, min(offset, f.size)}
		}
		offset -= f.size
	}
	return logFile{}
}

func (s *Stream) openLog(index int) error {
	name := path.Join(allocdir.SharedName, allocdir.LogsName, indexName(s.base, index))
	f, err := s.dir.Open(name)
	if err != nil {
		return err
	}
	if s.file != nil {
		s.file.Close()
	}
	s.file, s.index, s.name = f, index, name
	return nil
}

// Next gives the next frame: data with the file it is from and the offset where it begins, or an event. At the end it
// waits when following, until ctx is done (the stream may then be used again); io.EOF ends the stream.
func (s *Stream) Next(ctx context.Context) (*structs.StreamFrame, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	for {
		finished, closed := s.state()
		if closed {
			return nil, io.EOF
		}
		if s.file != nil {
			frame, err := s.read()
			if frame != nil || err != nil {
				return frame, err
			}
		}
		if s.path == "" && (s.created || finished || !s.follow) {
			moved, err := s.advance()
			if err != nil {
				return nil, err
			}
			if moved {
				continue
			}
		}
		if !s.follow || finished {
			return nil, io.EOF
		}
		event, err := s.watch.wait(ctx)
		switch {
		case errors.Is(err, os.ErrClosed):
			return nil, io.EOF
		case err != nil:
			return nil, err
		}
		s.created = s.created || event.created
		if s.path != "" && (event.deleted || s.unlinked()) {
			s.Finish()
			return &structs.StreamFrame{File: s.name, Offset: s.offset, FileEvent: EventDeleted}, nil
		}
	}
}

// read gives what the open file still has, nil at its end.
func (s *Stream) read() (*structs.StreamFrame, error) {
	info, err := s.file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < s.offset {
		s.offset = 0
		return &structs.StreamFrame{File: s.name, FileEvent: EventTruncated}, nil
	}
	left := info.Size() - s.offset
	if left == 0 {
		return nil, nil
	}
	buf := make([]byte, min(left, MaxFrame))
	n, err := s.file.ReadAt(buf, s.offset)
	if n == 0 {
		if err == io.EOF {
			err = nil
		}
		return nil, err
	}
	frame := &structs.StreamFrame{File: s.name, Offset: s.offset, Data: buf[:n]}
	s.offset += int64(n)
	return frame, nil
}

// advance opens the next log file once there is one. The one before has then had its last byte, which read may have
// come too early for: so the end of the old file is looked at once more.
func (s *Stream) advance() (bool, error) {
	files, err := s.logFiles()
	if err != nil {
		if structs.ErrorCode(err) == structs.CodeNotFound {
			return false, nil
		}
		return false, err
	}
	for _, f := range files {
		if f.index <= s.index {
			continue
		}
		if s.file != nil {
			if info, err := s.file.Stat(); err == nil && info.Size() > s.offset {
				return true, nil
			}
		}
		if err := s.openLog(f.index); err != nil {
			if structs.ErrorCode(err) == structs.CodeNotFound {
				continue // rotated away since
			}
			return false, err
		}
		s.offset = 0
		return true, nil
	}
	s.created = false
	return false, nil
}

// unlinked says whether the open file has lost its last name.
func (s *Stream) unlinked() bool {
	info, err := s.file.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}

func (s *Stream) state() (finished, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finished, s.closed
}

// Finish says that nothing more will be written: a following stream ends once it has read all there is.
func (s *Stream) Finish() {
	s.mu.Lock()
	s.finished = true
	s.mu.Unlock()
	if s.watch != nil {
		s.watch.wake()
	}
}

// Close ends the stream; a Next that waits returns io.EOF first.
func (s *Stream) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if s.watch != nil {
		s.watch.close()
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
	return nil
}
