// Package command runs a command beside a task for a driver: with streams of its own or a terminal, until it ends or its
// context does. Drivers say how its process comes to where the task is.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/structs"
)

// outputDelay is how long the output of a command that has ended is still read, when what it left behind holds it open.
const outputDelay = 500 * time.Millisecond

// Run starts cmd by start, with the streams of req, and waits for its end. start has to start cmd as exec.Cmd.Start does.
// The command gets a session of its own, so that all of it can be killed when ctx is done.
func Run(ctx context.Context, cmd *exec.Cmd, req *driver.ExecRequest, start func() error) (int, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	var streams *streams
	var err error
	if req.TTY {
		streams, err = openTerminal(cmd, req)
	} else {
		streams, err = openPipes(cmd, req)
	}
	if err != nil {
		return 0, err
	}
	if err := start(); err != nil {
		streams.abandon()
		return 0, fmt.Errorf("start command: %w", err)
	}
	streams.run(req)
	ended := make(chan struct{})
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		select {
		case <-ctx.Done():
			// The process is not waited for yet, so its number, and with it that of its group, is its own.
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		case <-ended:
		}
	}()
	state, err := waitEnd(cmd, ended, killed)
	streams.finish()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("wait for command: %w", err)
	}
	return exitCode(state), nil
}

// waitEnd waits until the process has ended, then for who may just signal it, and only then lets its number go.
func waitEnd(cmd *exec.Cmd, ended, killed chan struct{}) (*os.ProcessState, error) {
	err := waitExited(cmd.Process.Pid)
	close(ended)
	<-killed
	if err != nil {
		return nil, err
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return cmd.ProcessState, err
}

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// streams carries a command's input and output.
type streams struct {
	child []*os.File // the command's ends, closed here once it has them
	in    io.WriteCloser
	outs  []source
	tty   *os.File // the terminal, when there is one

	reading sync.WaitGroup
	done    chan struct{}
}

// source is one output of the command.
type source struct {
	from *os.File
	to   io.Writer
}

func openPipes(cmd *exec.Cmd, req *driver.ExecRequest) (*streams, error) {
	s := &streams{done: make(chan struct{})}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make input: %w", err)
	}
	s.child, s.in, cmd.Stdin = append(s.child, inR), inW, inR
	for _, out := range []struct {
		to   io.Writer
		file *io.Writer
	}{{req.Stdout, &cmd.Stdout}, {req.Stderr, &cmd.Stderr}} {
		r, w, err := os.Pipe()
		if err != nil {
			s.abandon()
			return nil, fmt.Errorf("make output: %w", err)
		}
		s.child, s.outs = append(s.child, w), append(s.outs, source{r, out.to})
		*out.file = w
	}
	return s, nil
}

// openTerminal gives the command a terminal as its controlling one.
func openTerminal(cmd *exec.Cmd, req *driver.ExecRequest) (*streams, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("make terminal: %w", err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr.Setctty = true
	return &streams{child: []*os.File{slave}, tty: master, outs: []source{{master, req.Stdout}}, done: make(chan struct{})}, nil
}

// abandon closes everything of a command that did not start.
func (s *streams) abandon() {
	for _, f := range s.child {
		f.Close()
	}
	if s.in != nil {
		s.in.Close()
	}
	for _, o := range s.outs {
		o.from.Close()
	}
}

func (s *streams) run(req *driver.ExecRequest) {
	for _, f := range s.child {
		f.Close()
	}
	for _, o := range s.outs {
		s.reading.Go(func() {
			// A terminal whose other side is closed gives an error instead of an end; a reader that is gone ends the session
			// by its context.
			_, _ = io.Copy(o.to, o.from)
		})
	}
	go s.feed(req.Stdin)
	if s.tty != nil && req.Resize != nil {
		go s.resize(req.Resize)
	}
}

// feed ends with its input, or when the command reads no more. Who hands the input in ends it with the session.
func (s *streams) feed(in io.Reader) {
	if s.tty != nil {
		if in != nil {
			if _, err := io.Copy(s.tty, in); err != nil {
				return
			}
		}
		_, _ = s.tty.Write([]byte{4}) // what a terminal's end of input is
		return
	}
	defer s.in.Close()
	if in != nil {
		_, _ = io.Copy(s.in, in)
	}
}

func (s *streams) resize(sizes <-chan structs.TerminalSize) {
	for {
		select {
		case <-s.done:
			return
		case size, ok := <-sizes:
			if !ok {
				return
			}
			const most = 1 << 15
			if size.Height > 0 && size.Width > 0 && size.Height < most && size.Width < most {
				_ = pty.Setsize(s.tty, &pty.Winsize{Rows: uint16(size.Height), Cols: uint16(size.Width)})
			}
		}
	}
}

// finish reads what is left of the output. Whoever still holds it open without being the command is not waited for.
func (s *streams) finish() {
	close(s.done)
	read := make(chan struct{})
	go func() { s.reading.Wait(); close(read) }()
	late := time.NewTimer(outputDelay)
	defer late.Stop()
	select {
	case <-read:
	case <-late.C:
	}
	for _, o := range s.outs {
		o.from.Close() // ends who still reads
	}
	if s.in != nil {
		s.in.Close()
	}
	<-read
}
