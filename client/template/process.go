package template

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Command is the word behind which the binary calls Main.
const Command = "render-template"

// Bounds of one pass over a template, which runs in a process of its own.
const (
	renderTime   = 30 * time.Second
	renderMemory = 768 << 20 // bytes of data
	maxOutput    = 24 << 20  // bytes of what a template gives, as it is sent
)

// Main is the process of one pass: it reads a Request and writes its Response. It returns the exit code.
func Main(in io.Reader, out io.Writer) int {
	seconds := uint64(renderTime / time.Second)
	for what, limit := range map[int]uint64{unix.RLIMIT_DATA: renderMemory, unix.RLIMIT_CPU: seconds, unix.RLIMIT_CORE: 0} {
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			fmt.Fprintln(os.Stderr, "limit a template's process:", err)
			return 1
		}
	}
	runtime.GOMAXPROCS(2) // templates are many, and each is small
	var req Request
	if err := json.NewDecoder(in).Decode(&req); err != nil {
		fmt.Fprintln(os.Stderr, Command+": it is started by the agent and is not meant to be run by hand")
		return 2
	}
	if err := json.NewEncoder(out).Encode(Execute(&req)); err != nil {
		fmt.Fprintln(os.Stderr, "send a rendered template:", err)
		return 1
	}
	return 0
}

// ErrBounds says that a template took more time or memory than it may.
var ErrBounds = errors.New("template takes more than it may")

// Renderer starts a process for each pass, not too many at a time.
type Renderer struct {
	command []string
	slots   chan struct{}
	limit   time.Duration
}

// NewRenderer makes a renderer; without a command it starts this very binary.
func NewRenderer(command []string) *Renderer {
	if len(command) == 0 {
		command = []string{"/proc/self/exe", Command}
	}
	return &Renderer{command: command, slots: make(chan struct{}, max(4, 2*runtime.NumCPU())), limit: renderTime}
}

// Render makes one pass. The process is killed when ctx is done. ErrBounds tells of a template that has to be given up.
func (r *Renderer) Render(ctx context.Context, req *Request) (*Response, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	input, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode template: %w", err)
	}
	timed, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	cmd := exec.CommandContext(timed, r.command[0], r.command[1:]...)
	cmd.Env, cmd.Dir = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, "/"
	out, errs := &bounded{left: maxOutput}, &bounded{left: 4 << 10, drop: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), out, errs
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case timed.Err() != nil:
		return nil, fmt.Errorf("%w: %s of time", ErrBounds, r.limit)
	case out.full:
		return nil, fmt.Errorf("%w: its output is above %d MiB", ErrBounds, maxOutput>>20)
	case err != nil && cmd.ProcessState != nil && cmd.ProcessState.ExitCode() != 1:
		// The runtime's own end, when it gets no memory or no stack.
		return nil, fmt.Errorf("%w: its process ended: %w: %.200s", ErrBounds, err, errs.buf.Bytes())
	case err != nil:
		return nil, fmt.Errorf("run template: %w: %.200s", err, errs.buf.Bytes())
	}
	var resp Response
	if err := json.Unmarshal(out.buf.Bytes(), &resp); err != nil {
		return nil, fmt.Errorf("decode rendered template: %w", err)
	}
	return &resp, nil
}

// bounded keeps what fits. What does not is an error, or dropped.
type bounded struct {
	buf  bytes.Buffer
	left int
	drop bool
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.buf.Write(p[:n])
	if n < len(p) {
		b.full = true
		if !b.drop {
			return n, io.ErrShortBuffer
		}
	}
	return len(p), nil
}
