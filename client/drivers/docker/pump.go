package docker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/nomadlite/nomadlite/client/logs"
	"github.com/nomadlite/nomadlite/internal/pause"
)

// position is how far one kind of a container's output has been written: all entries before Time, and Count of those
// with that very time, went to the files before Size bytes of file Index.
type position struct {
	Time  int64 // nanoseconds of the engine's clock
	Count int64
	Index int64
	Size  int64
}

// kinds of output by their number in the engine's frames.
const (
	frameOut = 1
	frameErr = 2
)

// slack is how much later than its neighbours an entry may be stamped: stdout and stderr are stamped side by side.
const slack = 10 * time.Second

// saveEvery bounds the bytes that are looked at again after a crash.
const saveEvery = 64 << 10

// pump copies a container's output into its files.
type pump struct {
	d         *Driver
	container string
	tty       bool
	file      *os.File // of the positions
	streams   [2]*stream
	unsaved   int
}

// stream is one kind of output.
type stream struct {
	files *logs.Rotator
	at    position
	skip  int64 // bytes that follow the position and are in the files already
	seen  int64 // entries of this connection with the time of the position
}

// run copies until the container has ended and all of its output is written, or ctx is done.
func (p *pump) run(ctx context.Context, target logTarget) error {
	if err := p.open(target); err != nil {
		return err
	}
	defer p.close()
	for {
		got, err := p.d.engine.ContainerInspect(ctx, p.container, client.ContainerInspectOptions{})
		if errdefs.IsNotFound(err) {
			return nil
		}
		ended := err == nil && !got.Container.State.Running && !got.Container.State.Restarting
		if err == nil {
			// The engine may cut a reader off when a container ends or it does itself; one more turn after the end has all.
			err = p.read(ctx, !ended)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case ended && err == nil:
			return nil
		case ended && !client.IsErrConnectionFailed(err), errdefs.IsNotImplemented(err), errdefs.IsInvalidArgument(err):
			return err
		case err != nil:
			p.d.cfg.Logger.Warn("reading a container's output again", "container", p.container, "error", err)
			if !pause.For(ctx, retryAfter) {
				return ctx.Err()
			}
		}
	}
}

func (p *pump) open(target logTarget) error {
	if err := os.MkdirAll(p.d.cfg.StateDir, 0o700); err != nil {
		return fmt.Errorf("make directory of positions: %w", err)
	}
	var err error
	if p.file, err = os.OpenFile(p.d.positionPath(p.container), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("open positions: %w", err)
	}
	saved, known := readPositions(p.file)
	for i, fifo := range []string{target.Stdout, target.Stderr} {
		files, err := logs.NewRotator(fifo, target.MaxFiles, target.MaxBytes)
		if err != nil {
			p.close()
			return err
		}
		p.streams[i] = &stream{files: files}
		if known {
			p.streams[i].at = saved[i]
			p.streams[i].skip = files.Since(int(saved[i].Index), saved[i].Size)
		}
	}
	if known {
		return nil
	}
	return p.save() // before anything is written: what is in the files then is of earlier attempts
}

func (p *pump) close() {
	for _, s := range p.streams {
		if s != nil {
			s.files.Close()
		}
	}
	p.file.Close()
}

// read copies what the engine has, and with follow what comes.
func (p *pump) read(ctx context.Context, follow bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	newest := max(p.streams[0].at.Time, p.streams[1].at.Time)
	options := client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true, Follow: follow}
	if newest > 0 {
		from := time.Unix(0, newest).Add(-slack)
		options.Since = fmt.Sprintf("%d.%09d", from.Unix(), from.Nanosecond())
	}
	for _, s := range p.streams {
		s.seen = 0
	}
	body, err := p.d.engine.ContainerLogs(ctx, p.container, options)
	if err != nil {
		return fmt.Errorf("read output: %w", err)
	}
	defer body.Close()
	r := bufio.NewReaderSize(body, saveEvery)
	next := readFrame
	if p.tty {
		next = readLine
	}
	for {
		kind, entry, err := next(r)
		if err == nil {
			err = p.entries(kind, entry)
		}
		if err == nil && (r.Buffered() == 0 || p.unsaved >= saveEvery) {
			err = p.save()
		}
		if err != nil {
			if saving := p.save(); saving != nil {
				return saving
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// entries writes an entry of the engine's. What a terminal writes without a newline comes as several in one line.
func (p *pump) entries(kind int, entry []byte) error {
	if kind != frameOut && kind != frameErr {
		return fmt.Errorf("read output: the engine says: %s", entry)
	}
	s := p.streams[kind-1]
	for {
		at, text, err := stamped(entry)
		if err != nil {
			return err
		}
		var rest []byte
		if p.tty && len(text) > enginePart {
			if _, _, err := stamped(text[enginePart:]); err == nil {
				text, rest = text[:enginePart], text[enginePart:]
			}
		}
		n, err := s.write(at, text)
		p.unsaved += n
		if err != nil || len(rest) == 0 {
			return err
		}
		entry = rest
	}
}

// enginePart is the size of the pieces into which engines cut long lines.
const enginePart = 16 << 10

// write writes one entry unless it was before; it says how many bytes that were.
func (s *stream) write(at int64, text []byte) (int, error) {
	switch {
	case at < s.at.Time:
		return 0, nil
	case at == s.at.Time:
		if s.seen++; s.seen <= s.at.Count {
			return 0, nil
		}
	default:
		s.seen = 1
	}
	have := min(s.skip, int64(len(text)))
	n, err := s.files.Write(text[have:])
	if err != nil {
		s.skip += int64(n) // of this entry, which comes again
		return n, err
	}
	s.skip -= have
	s.at.Time, s.at.Count = at, s.seen
	return n, nil
}

// save writes the positions down. While one kind still finds what is in its files already, the old ones stay: they say
// the same.
func (p *pump) save() error {
	var all [2]position
	for i, s := range p.streams {
		if s.skip > 0 {
			return nil
		}
		index, size := s.files.Position()
		s.at.Index, s.at.Size = int64(index), size
		all[i] = s.at
	}
	p.unsaved = 0
	var buf bytes.Buffer
	if err := binary.Write(&buf, binary.BigEndian, all); err != nil {
		return fmt.Errorf("save positions: %w", err)
	}
	sum := crc32.ChecksumIEEE(buf.Bytes())
	if _, err := p.file.WriteAt(binary.BigEndian.AppendUint32(buf.Bytes(), sum), 0); err != nil {
		return fmt.Errorf("save positions: %w", err)
	}
	return nil
}

func readPositions(f io.ReaderAt) (all [2]position, known bool) {
	size := binary.Size(all)
	data := make([]byte, size+crc32.Size)
	if _, err := f.ReadAt(data, 0); err != nil || crc32.ChecksumIEEE(data[:size]) != binary.BigEndian.Uint32(data[size:]) {
		return all, false
	}
	err := binary.Read(bytes.NewReader(data), binary.BigEndian, &all)
	return all, err == nil
}

// readFrame reads one entry of a container without a terminal.
func readFrame(r *bufio.Reader) (kind int, entry []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, cut(err)
	}
	const largest = 16 << 20
	n := binary.BigEndian.Uint32(head[4:])
	if n > largest {
		return 0, nil, fmt.Errorf("read output: an entry of %d bytes", n)
	}
	entry = make([]byte, n)
	if _, err := io.ReadFull(r, entry); err != nil {
		return 0, nil, cut(err)
	}
	return int(head[0]), entry, nil
}

// readLine reads one line of a container's terminal.
func readLine(r *bufio.Reader) (kind int, entry []byte, err error) {
	entry, err = r.ReadBytes('\n')
	if len(entry) > 0 && errors.Is(err, io.EOF) {
		return 0, nil, cut(io.ErrUnexpectedEOF)
	}
	return frameOut, entry, err
}

// cut makes an entry that was cut off the end: it comes again.
func cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// stamped takes an entry's time from before its text.
func stamped(entry []byte) (at int64, text []byte, err error) {
	stamp, _, found := bytes.Cut(entry[:min(len(entry), len(time.RFC3339Nano)+1)], []byte(" "))
	if !found {
		return 0, nil, fmt.Errorf("read output: an entry without a time: %.40q", entry)
	}
	t, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return 0, nil, fmt.Errorf("read output: %w", err)
	}
	return t.UnixNano(), entry[len(stamp)+1:], nil
}
