package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/nomadlite/nomadlite/structs"
)

// ExecRequest is a command, or an action of a job, that is to be run beside a task.
type ExecRequest struct {
	AllocID string
	Task    string
	Command []string // the program and its arguments
	// Job and Action name an action of a job instead of Command.
	Job, Action string

	TTY    bool      // give it a terminal; all it writes comes to Stdout then
	Stdin  io.Reader // nil is no input
	Stdout io.Writer
	Stderr io.Writer
	// Resize gives the sizes of the user's terminal. nil for none.
	Resize <-chan structs.TerminalSize
}

const (
	execHandshakeTime = 30 * time.Second
	execSendTime      = time.Minute // for one message to be taken
	execBeat          = 10 * time.Second
)

// Exec runs a command and gives its exit code: that of its process, or 128 and the number of the signal that killed it.
// It returns an error when the command could not be run or contact was lost before its end; the agent then ends it. Stdin
// may still be read once after Exec has returned.
func (a *Allocations) Exec(ctx context.Context, req *ExecRequest, q *QueryOptions) (int, error) {
	conn, err := a.client.dialExec(ctx, req, q)
	if err != nil {
		return 0, err
	}
	s := &execSession{conn: conn}
	ctx, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer func() {
		cancel()
		_ = conn.Close()
		helpers.Wait()
	}()
	helpers.Go(func() { s.beat(ctx, req.Resize) })
	helpers.Go(func() {
		<-ctx.Done()
		_ = conn.Close() // ends who reads and writes
	})
	go s.sendInput(req.Stdin) // ends with its reader, or with the first message that cannot be sent
	code, err := s.receive(req)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return code, err
}

// dialExec opens the websocket.
func (c *Client) dialExec(ctx context.Context, req *ExecRequest, q *QueryOptions) (*websocket.Conn, error) {
	params := url.Values{"task": {req.Task}, "tty": {strconv.FormatBool(req.TTY)}}
	if q != nil && q.Namespace != "" {
		params.Set("namespace", q.Namespace)
	}
	if q != nil && q.Region != "" {
		params.Set("region", q.Region)
	}
	path := "/v1/client/allocation/" + url.PathEscape(req.AllocID) + "/exec"
	if req.Action != "" {
		path = jobPath(req.Job, "/action")
		params.Set("action", req.Action)
		params.Set("allocID", req.AllocID)
	} else {
		command, err := json.Marshal(req.Command)
		if err != nil {
			return nil, fmt.Errorf("encode command: %w", err)
		}
		params.Set("command", string(command))
	}
	r, err := c.newRequest(ctx, http.MethodGet, path, params, nil)
	if err != nil {
		return nil, err
	}
	dialer := websocket.Dialer{HandshakeTimeout: execHandshakeTime, ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10}
	if t, ok := c.http.Transport.(*http.Transport); ok {
		dialer.Proxy, dialer.NetDialContext, dialer.TLSClientConfig = t.Proxy, t.DialContext, t.TLSClientConfig
	}
	target := *r.URL
	target.Scheme = "ws"
	if r.URL.Scheme == "https" {
		target.Scheme = "wss"
	}
	conn, res, err := dialer.DialContext(ctx, target.String(), r.Header)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, websocket.ErrBadHandshake) && res != nil:
		defer res.Body.Close()
		return nil, readError(res)
	}
	return nil, fmt.Errorf("open session: %w", err)
}

// execSession is one websocket.
type execSession struct {
	conn *websocket.Conn
	mu   sync.Mutex // one message at a time
}

func (s *execSession) send(m structs.ExecInput) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(execSendTime))
	return s.conn.WriteJSON(m)
}

// sendInput carries the user's input. An error shows to who receives.
func (s *execSession) sendInput(in io.Reader) {
	buf := make([]byte, 16<<10)
	for in != nil {
		n, err := in.Read(buf)
		if n > 0 {
			if s.send(structs.ExecInput{Stdin: &structs.ExecStream{Data: buf[:n]}}) != nil {
				return
			}
		}
		if err != nil {
			break
		}
	}
	_ = s.send(structs.ExecInput{Stdin: &structs.ExecStream{Close: true}})
}

// beat tells now and then that the user is there, and the sizes of his terminal.
func (s *execSession) beat(ctx context.Context, sizes <-chan structs.TerminalSize) {
	t := time.NewTicker(execBeat)
	defer t.Stop()
	for {
		var in structs.ExecInput
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case size, ok := <-sizes:
			if !ok {
				sizes = nil
				continue
			}
			in.TTYSize = &size
		}
		if s.send(in) != nil {
			return
		}
	}
}

// receive hands the command's output on until it has ended.
func (s *execSession) receive(req *ExecRequest) (int, error) {
	for {
		var out structs.ExecOutput
		if err := s.conn.ReadJSON(&out); err != nil {
			var closed *websocket.CloseError
			if errors.As(err, &closed) && closed.Text != "" {
				return 0, &Error{StatusCode: max(closed.Code-4000, 0), Text: closed.Text}
			}
			return 0, fmt.Errorf("the session was lost: %w", err)
		}
		for _, part := range []struct {
			from *structs.ExecStream
			to   io.Writer
		}{{out.Stdout, req.Stdout}, {out.Stderr, req.Stderr}} {
			if part.from != nil && part.to != nil {
				if _, err := part.to.Write(part.from.Data); err != nil {
					return 0, fmt.Errorf("write output: %w", err)
				}
			}
		}
		if out.Exited && out.Result != nil {
			return out.Result.ExitCode, nil
		}
	}
}
