package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// ActionAlloc is the parameter that names the allocation in which a job's action runs.
const ActionAlloc = "allocID"

const (
	// maxMessage bounds a message of the user, in bytes; clients send some KiB of input at once.
	maxMessage = 1 << 20
	// pingEvery is how often the user's side is asked whether it is still there, goneAfter when it is given up.
	pingEvery = 10 * time.Second
	goneAfter = 45 * time.Second
	// sendTime bounds how long a message may take to be taken. A user whose terminal is held up keeps it waiting.
	sendTime = 10 * time.Minute
)

// exec runs the command of the parameter command, a JSON list, beside a task.
func (e *endpoint) exec(w http.ResponseWriter, r *route.Request) error {
	alloc, err := e.Alloc(r.Param("alloc_id"))
	if err != nil {
		return err
	}
	task := r.URL.Query().Get("task")
	if err := knownTask(alloc, task); err != nil {
		return err
	}
	var command []string
	if err := json.Unmarshal([]byte(r.URL.Query().Get("command")), &command); err != nil || len(command) == 0 || command[0] == "" {
		return structs.Errorf(structs.CodeInvalid, `command must be a JSON list of a program and its arguments, such as ["ls", "-l"]`)
	}
	return serveExec(w, r, alloc, task, command)
}

// action runs a command that the job defines.
func (e *endpoint) action(w http.ResponseWriter, r *route.Request) error {
	q := r.URL.Query()
	alloc, err := e.Alloc(q.Get(ActionAlloc))
	if err != nil {
		return err
	}
	if err := knownTask(alloc, q.Get("task")); err != nil {
		return err
	}
	command, err := alloc.Action(q.Get("task"), q.Get("action"))
	if err != nil {
		return err
	}
	return serveExec(w, r, alloc, q.Get("task"), command)
}

func knownTask(alloc Alloc, task string) error {
	if task == "" {
		return structs.Errorf(structs.CodeInvalid, "task name must be given")
	}
	if !alloc.HasTask(task) {
		return structs.Errorf(structs.CodeNotFound, "unknown task %q", task)
	}
	return nil
}

func serveExec(w http.ResponseWriter, r *route.Request, alloc Alloc, task string, command []string) error {
	tty, err := strconv.ParseBool(r.URL.Query().Get("tty"))
	if err != nil {
		return structs.Errorf(structs.CodeInvalid, "error parsing tty: %q is neither true nor false", r.URL.Query().Get("tty"))
	}
	handshake, err := flag(r, "ws_handshake", false)
	if err != nil {
		return err
	}
	conn, err := route.Upgrade(w, r)
	if err != nil {
		return nilOnceBegun(err)
	}
	s := &execSession{conn: conn}
	if handshake {
		if err := s.handshake(); err != nil {
			route.CloseWebSocket(conn, err)
			return nil
		}
	}
	code, err := s.run(r.Context(), alloc, task, command, tty)
	if err == nil {
		err = s.send(structs.ExecOutput{Exited: true, Result: &structs.ExecResult{ExitCode: code}})
	}
	s.close(err)
	return nil
}

// execSession is one websocket and the command behind it.
type execSession struct {
	conn    *websocket.Conn
	helpers sync.WaitGroup

	sending sync.Mutex // one message at a time

	mu      sync.Mutex
	closing bool // the last message was sent
}

// handshake reads the first message of browsers.
func (s *execSession) handshake() error {
	var h structs.ExecHandshake
	if err := s.receive(&h); err != nil || h.Version != 1 {
		return structs.Errorf(structs.CodeInvalid, "the first message must be a handshake of version 1")
	}
	return nil
}

func (s *execSession) receive(v any) error {
	s.conn.SetReadLimit(maxMessage)
	_ = s.heard("")
	return s.conn.ReadJSON(v)
}

// heard gives the user's side some time more, unless the session is over.
func (s *execSession) heard(string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil
	}
	return s.conn.SetReadDeadline(time.Now().Add(goneAfter))
}

func (s *execSession) send(m structs.ExecOutput) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(sendTime))
	return s.conn.WriteJSON(m)
}

// close ends the session. The user's side closes after the last message; until then its messages are read, since a
// connection that is closed with unread ones is reset, and what was sent last is lost with it.
func (s *execSession) close(err error) {
	route.WriteClose(s.conn, err)
	s.mu.Lock()
	s.closing = true
	_ = s.conn.SetReadDeadline(time.Now().Add(route.CloseTime))
	s.mu.Unlock()
	s.helpers.Wait()
	_ = s.conn.Close()
}

var errGone = errors.New("the user of the session is gone")

// run joins the websocket and the command until the command has ended. A user who is gone ends it.
func (s *execSession) run(ctx context.Context, alloc Alloc, task string, command []string, tty bool) (int, error) {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	input, typed := io.Pipe()
	defer input.Close()
	sizes := make(chan structs.TerminalSize, 1)
	gone := func() {
		if ctx.Err() != nil {
			return // it is over
		}
		leave(errGone)
		_ = input.Close()
		_ = s.conn.NetConn().SetWriteDeadline(time.Now()) // for who still sends to somebody who is gone
	}
	s.conn.SetPongHandler(s.heard)
	s.helpers.Go(func() { s.readInput(typed, sizes); gone() })
	s.helpers.Go(func() { s.ping(ctx, gone) })
	req := &driver.ExecRequest{Command: command, TTY: tty, Stdin: input, Resize: sizes,
		Stdout: outputWriter{s, false}, Stderr: outputWriter{s, true}}
	code, err := alloc.Exec(ctx, task, req)
	if err != nil {
		return 0, err
	}
	if err := s.send(structs.ExecOutput{Stdout: &structs.ExecStream{Close: true}}); err != nil {
		return 0, err
	}
	if !tty {
		err = s.send(structs.ExecOutput{Stderr: &structs.ExecStream{Close: true}})
	}
	return code, err
}

// readInput takes messages of the user until there are no more.
func (s *execSession) readInput(typed *io.PipeWriter, sizes chan structs.TerminalSize) {
	defer typed.Close()
	for {
		var in structs.ExecInput
		if err := s.receive(&in); err != nil {
			return
		}
		if in.Stdin != nil {
			// An error means that the command reads no more, which is its own affair.
			_, _ = typed.Write(in.Stdin.Data)
			if in.Stdin.Close {
				_ = typed.Close()
			}
		}
		if in.TTYSize != nil {
			select {
			case <-sizes: // one that nobody has looked at is outdated
			default:
			}
			sizes <- *in.TTYSize
		}
	}
}

// ping keeps proxies from closing a session in which nothing happens, and finds out whether the user is still there,
// also while his input waits for a command that does not read it.
func (s *execSession) ping(ctx context.Context, gone func()) {
	t := time.NewTicker(pingEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if err := s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(pingEvery)); err != nil {
				gone()
				return
			}
		}
	}
}

// outputWriter sends what the command writes.
type outputWriter struct {
	s      *execSession
	stderr bool
}

func (o outputWriter) Write(p []byte) (int, error) {
	m := structs.ExecOutput{Stdout: &structs.ExecStream{Data: p}}
	if o.stderr {
		m = structs.ExecOutput{Stderr: m.Stdout}
	}
	if err := o.s.send(m); err != nil {
		return 0, err
	}
	return len(p), nil
}
