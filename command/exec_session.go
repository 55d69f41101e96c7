package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// execFlags are those of commands that run something beside a task.
type execFlags struct {
	set              *flag.FlagSet
	interactive, tty bool
	escape           string
	task, group      string
}

func (f *execFlags) add(fs *flag.FlagSet) {
	f.set = fs
	fs.BoolVar(&f.interactive, "i", true, "Pass standard input on.")
	fs.BoolVar(&f.tty, "t", false, "Give the command a terminal. It is given when standard input and output are one, unless -t=false.")
	fs.StringVar(&f.escape, "e", "~",
		"`CHARACTER` that, at the beginning of a line and followed by a dot, ends a session with a terminal; none for none.")
	fs.StringVar(&f.task, "task", "", "`NAME` of the task.")
	fs.StringVar(&f.group, "group", "", "With a job: an allocation of this `GROUP`.")
}

// errEscaped ends a session that the user leaves by the escape character.
var errEscaped = errors.New("session ended by the escape character")

// session runs req with the user's input and output, and ends the program with its exit code.
func (f *execFlags) session(ctx context.Context, c *call, req *api.ExecRequest, namespace string) error {
	if len(f.escape) != 1 && f.escape != "none" {
		return fmt.Errorf("-e wants a single character or none, not %q", f.escape)
	}
	in, isTerminal := terminalOf(c.in)
	chosen := false
	f.set.Visit(func(fl *flag.Flag) { chosen = chosen || fl.Name == "t" })
	if !chosen {
		f.tty = f.interactive && isTerminal && c.terminal
	}
	if f.tty && !f.interactive {
		return errors.New("a terminal wants input: -t needs -i")
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	req.TTY, req.Stdout, req.Stderr = f.tty, c.out, c.err
	if f.interactive {
		req.Stdin = c.in
	}
	if f.tty && isTerminal {
		restore, err := rawTerminal(in)
		if err != nil {
			return err
		}
		defer restore()
		sizes, stop := terminalSizes(in)
		defer stop()
		req.Resize = sizes
		if f.escape != "none" {
			req.Stdin = &escapeReader{in: c.in, char: f.escape[0], lineStart: true, escaped: func() { leave(errEscaped) }}
		}
	}
	code, err := c.client.Allocations().Exec(ctx, req, &api.QueryOptions{Namespace: namespace})
	switch {
	case errors.Is(context.Cause(ctx), errEscaped):
		return &exitError{code: 1}
	case err != nil:
		return fmt.Errorf("cannot run the command: %s", api.Text(err))
	case code != 0:
		return &exitError{code: code}
	}
	return nil
}

// terminalOf gives the file of an input, and whether it is a terminal.
func terminalOf(in io.Reader) (*os.File, bool) {
	f, ok := in.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// rawTerminal hands every key on as it is, until restore is called.
func rawTerminal(f *os.File) (restore func(), err error) {
	old, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, fmt.Errorf("set terminal: %w", err)
	}
	return func() { _ = term.Restore(int(f.Fd()), old) }, nil
}

// terminalSizes gives the size of a terminal, and again whenever it changes, until stop is called.
func terminalSizes(f *os.File) (sizes <-chan structs.TerminalSize, stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	out, done, ended := make(chan structs.TerminalSize), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if width, height, err := term.GetSize(int(f.Fd())); err == nil {
				select {
				case out <- structs.TerminalSize{Height: height, Width: width}:
				case <-done:
					return
				}
			}
			select {
			case <-changed:
			case <-done:
				return
			}
		}
	}()
	return out, func() {
		signal.Stop(changed)
		close(done)
		<-ended
	}
}

// escapeReader passes input on and looks for the escape character and a dot at the beginning of a line. The character
// twice is the character once.
type escapeReader struct {
	in        io.Reader
	char      byte
	escaped   func()
	lineStart bool // the next byte begins a line
	held      bool // the character came, what follows decides
}

func (e *escapeReader) Read(p []byte) (int, error) {
	if len(p) < 2 {
		return 0, io.ErrShortBuffer
	}
	for {
		// One byte less, since a character that was held may come before what is read now.
		n, err := e.in.Read(p[1:])
		out := p[:0:len(p)]
		for _, b := range p[1 : 1+n] {
			if e.held {
				e.held = false
				if b == '.' {
					e.escaped()
					return len(out), io.EOF
				}
				out = append(out, e.char)
				if b == e.char {
					e.lineStart = false
					continue
				}
			} else if e.lineStart && b == e.char {
				e.held = true
				continue
			}
			out = append(out, b)
			e.lineStart = b == '\n' || b == '\r'
		}
		if len(out) > 0 || err != nil {
			return len(out), err
		}
	}
}
