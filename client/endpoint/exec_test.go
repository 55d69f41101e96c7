package endpoint

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/nomadlite/nomadlite/structs"
)

// open starts a session, or gives the error with which it was closed.
func (s *server) open(path string, params ...string) *websocket.Conn {
	s.t.Helper()
	values := url.Values{}
	for i := 0; i < len(params); i += 2 {
		values.Set(params[i], params[i+1])
	}
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.URL, "http")+path+"?"+values.Encode(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// collect reads a session to its end.
func collect(t *testing.T, conn *websocket.Conn) (out, errs string, code int, end *websocket.CloseError) {
	t.Helper()
	for {
		var m structs.ExecOutput
		err := conn.ReadJSON(&m)
		if errors.As(err, &end) {
			return out, errs, code, end
		}
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case m.Stdout != nil:
			out += string(m.Stdout.Data)
		case m.Stderr != nil:
			errs += string(m.Stderr.Data)
		case m.Exited:
			code = m.Result.ExitCode
		}
	}
}

const execPath = "/v1/client/allocation/a1/exec"

func TestExecSession(t *testing.T) {
	s := newServer(t)
	conn := s.open(execPath, "task", "web", "tty", "true", "command", `["cat","-"]`, "ws_handshake", "true")
	for _, m := range []any{
		structs.ExecHandshake{Version: 1}, structs.ExecInput{}, structs.ExecInput{TTYSize: &structs.TerminalSize{Height: 3, Width: 4}},
		structs.ExecInput{Stdin: &structs.ExecStream{Data: []byte("hel")}}, structs.ExecInput{Stdin: &structs.ExecStream{Data: []byte("lo"), Close: true}},
	} {
		if err := conn.WriteJSON(m); err != nil {
			t.Fatal(err)
		}
	}
	out, errs, code, end := collect(t, conn)
	if out != "{3 4}HELLO" || errs != "5" || code != 5 || end.Code != websocket.CloseNormalClosure {
		t.Errorf("output %q, errors %q, code %d, %v", out, errs, code, end)
	}
	conn = s.open("/v1/job/some/thing/action", "allocID", "a1", "task", "web", "tty", "false", "action", "shout")
	if err := conn.WriteJSON(structs.ExecInput{Stdin: &structs.ExecStream{Close: true}}); err != nil {
		t.Fatal(err)
	}
	if _, _, code, end = collect(t, conn); code != 5 || end.Code != websocket.CloseNormalClosure {
		t.Errorf("action: %d, %v", code, end)
	}
	if want := []string{"exec web[cat -] true", "exec web[shout loud] false"}; !slices.Equal(s.backend.alloc.calls, want) {
		t.Errorf("called %q", s.backend.alloc.calls)
	}
}

func TestExecRefusals(t *testing.T) {
	s := newServer(t)
	s.backend.alloc.err = structs.Errorf(structs.CodeInvalid, "%s", strings.Repeat("no, ", 40)+"über")
	for name, tt := range map[string]struct {
		path, task, tty, command, handshake string
		code                                int
		text                                string
	}{
		"allocation": {"/v1/client/allocation/a2/exec", "web", "false", `["a"]`, "", 4404, `Unknown allocation "a2"`},
		"task":       {execPath, "db", "false", `["a"]`, "", 4404, `unknown task "db"`},
		"no task":    {execPath, "", "false", `["a"]`, "", 4400, "task name must be given"},
		"command":    {execPath, "web", "false", `a`, "", 4400, "command must be a JSON list"},
		"empty":      {execPath, "web", "false", `[]`, "", 4400, "command must be a JSON list"},
		"tty":        {execPath, "web", "maybe", `["a"]`, "", 4400, "error parsing tty"},
		"handshake":  {execPath, "web", "false", `["a"]`, "true", 4400, "handshake"},
		"driver":     {execPath, "web", "false", `["fail"]`, "", 4400, strings.Repeat("no, ", 30)},
	} {
		conn := s.open(tt.path, "task", tt.task, "tty", tt.tty, "command", tt.command, "ws_handshake", fmt.Sprint(tt.handshake == "true"))
		if err := conn.WriteJSON(structs.ExecInput{}); err != nil {
			t.Fatal(err)
		}
		_, _, _, end := collect(t, conn)
		if end.Code != tt.code || !strings.Contains(end.Text, tt.text) {
			t.Errorf("%s: %v", name, end)
		}
	}
	res, err := http.Get(s.URL + execPath)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("without an upgrade: %s", res.Status)
	}
	_, res, err = websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.URL, "http")+execPath, http.Header{"Origin": {"http://elsewhere.example"}})
	if err == nil || res.StatusCode != http.StatusForbidden {
		t.Errorf("from another origin: %v %v", res, err)
	}
}

// A user who is gone ends his command.
func TestExecWhoseUserLeaves(t *testing.T) {
	s := newServer(t)
	conn := s.open(execPath, "task", "web", "tty", "false", "command", `["wait"]`)
	conn.Close()
	<-s.backend.alloc.over
}
