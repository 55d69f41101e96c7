package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
	official "github.com/hashicorp/nomad/api"
	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/e2e/proc"
	"github.com/nomadlite/nomadlite/structs"
)

// actingJob is a job that stays, with an action.
func actingJob(t *testing.T, a *agent, id string) *structs.AllocationListStub {
	t.Helper()
	register(t, a.Client, job(id, `exec sleep 600`, func(_ *structs.Job, _ *structs.TaskGroup, task *structs.Task) {
		task.Env = map[string]string{"COLOUR": "blue"}
		task.Actions = []*structs.Action{{Name: "paint", Command: "/bin/echo", Args: []string{"in", "${COLOUR}", "${NOMAD_TASK_NAME}"}}}
	}))
	return awaitRunning(t, a.Client, id, 1)[0]
}

func TestExecByTheCommandLine(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	stub := actingJob(t, a, "shell")
	for _, tt := range []struct {
		name, stdin string
		args        []string
		out, errs   string
		code        int
	}{
		{"environment, directory, arguments", "", []string{stub.ID, "/bin/sh", "-c", `echo "$COLOUR $NOMAD_TASK_NAME $1"; ls -d local`, "sh", "-n"},
			"blue t -n\nlocal\n", "", 0},
		{"the exit code, and both outputs apart", "", []string{stub.ID[:8], "/bin/sh", "-c", "echo out; echo err >&2; exit 7"}, "out\n", "err\n", 7},
		{"a signal", "", []string{stub.ID, "/bin/sh", "-c", "kill -9 $$"}, "", "", 137},
		{"input and its end", "one\ntwo\n", []string{stub.ID, "wc", "-l"}, "2\n", "", 0},
		{"no input", "one\n", []string{"-i=false", stub.ID, "wc", "-l"}, "0\n", "", 0},
		{"by job", "", []string{"-job", "-task", "t", "shell", "echo", "-task"}, "-task\n", "", 0},
		{"no such program", "", []string{stub.ID, "no-such-program"}, "", "no-such-program", 1},
		{"no such task", "", []string{"-task", "web", stub.ID, "true"}, "", `has no task "web"`, 1},
		{"no such allocation", "", []string{"ffffffff", "true"}, "", "no allocation", 1},
		{"a wrong escape character", "", []string{"-e", "ab", stub.ID, "true"}, "", "-e wants a single character", 1},
	} {
		out, errs, code := a.cli(tt.stdin, append([]string{"alloc", "exec"}, tt.args...)...)
		if code != tt.code || out != tt.out || !strings.Contains(strings.ToLower(errs), tt.errs) || (tt.errs == "" && errs != "") {
			t.Errorf("%s: code %d, output %q, errors %q", tt.name, code, out, errs)
		}
	}
	if out, errs, code := a.cli("", "job", "action", "-job", "shell", "paint"); code != 0 || out != "in blue t\n" {
		t.Errorf("action: code %d, %q, %q", code, out, errs)
	}
	if _, errs, code := a.cli("", "job", "action", "-job", "shell", "wash"); code != 1 || !strings.Contains(errs, "paint (g/t)") {
		t.Errorf("unknown action: code %d, %q", code, errs)
	}
	list, _, err := a.Client.Jobs().Actions(limited(t), "shell", nil)
	if err != nil || len(list) != 1 || list[0].Name != "paint" || list[0].TaskName != "t" {
		t.Errorf("actions: %+v, %v", list, err)
	}
}

// A session with a terminal, as a person has it: keys, the window's size, the escape character.
func TestExecWithATerminal(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	stub := actingJob(t, a, "terminal")
	cmd := exec.Command(proc.Binary(t), "alloc", "exec", stub.ID, "/bin/sh")
	cmd.Env = append(os.Environ(), "NOMAD_ADDR="+a.Addr())
	term, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 31, Cols: 97})
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	screen := newScreen(term)
	say := func(keys string) {
		if _, err := term.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	say("until [ \"$(stty size)\" = '31 97' ]; do :; done; tty && echo at-${COLOUR}-\r")
	screen.await(t, `/dev/pts/\d+\r?\nat-blue-`)
	if err := pty.Setsize(term, &pty.Winsize{Rows: 40, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	say("until [ \"$(stty size)\" = '40 120' ]; do :; done; echo resized-$((1+1))\r")
	screen.await(t, `resized-2`)
	say("echo asleep-$((4+1)); sleep 300\r")
	screen.await(t, `asleep-5`)
	say("\x03") // Ctrl-C is for the command there
	say("echo interrupted-$((2+1))\r")
	screen.await(t, `interrupted-3`)
	say("\r~.")
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("left by the escape character: %v", err)
	}
}

// screen collects what a terminal shows.
type screen struct {
	lines chan []byte
	all   bytes.Buffer
}

func newScreen(r io.Reader) *screen {
	s := &screen{lines: make(chan []byte)}
	go func() {
		defer close(s.lines)
		for {
			buf := make([]byte, 4096)
			n, err := r.Read(buf)
			if n > 0 {
				s.lines <- buf[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *screen) await(t *testing.T, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	ctx := limited(t)
	for !re.Match(s.all.Bytes()) {
		select {
		case part, ok := <-s.lines:
			if !ok {
				t.Fatalf("the terminal was closed before %q; it shows:\n%s", pattern, s.all.String())
			}
			s.all.Write(part)
		case <-ctx.Done():
			t.Fatalf("no %q; the terminal shows:\n%s", pattern, s.all.String())
		}
	}
}

// What a session runs ends with its user, with its task, and is in the task's cgroup.
func TestExecEndsWithItsUserAndItsTask(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	stub := actingJob(t, a, "bound")
	pidFile := filepath.Join(a.Dir, "pid")
	start := func(ctx context.Context) (pid int, ended chan error) {
		t.Helper()
		os.Remove(pidFile)
		ended = make(chan error, 1)
		go func() {
			_, err := a.Client.Allocations().Exec(ctx, &api.ExecRequest{AllocID: stub.ID, Task: "t",
				Command: []string{"/bin/sh", "-c", fmt.Sprintf("echo $$ > %s; exec sleep 600", pidFile)}}, nil)
			ended <- err
		}()
		var raw []byte
		awaitFile(t, a.Dir, func() bool {
			raw, _ = os.ReadFile(pidFile)
			return bytes.HasSuffix(raw, []byte("\n"))
		})
		if _, err := fmt.Sscan(string(raw), &pid); err != nil {
			t.Fatal(err)
		}
		return pid, ended
	}
	ctx, leave := context.WithCancel(limited(t))
	pid, ended := start(ctx)
	gone := processEnd(t, pid)
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the user left: %v", err)
	}
	gone()

	pid, ended = start(limited(t))
	gone = processEnd(t, pid)
	if out, errs, code := a.cli("", "job", "stop", "-detach", "bound"); code != 0 {
		t.Fatal(out, errs)
	}
	if err := <-ended; err != nil {
		t.Errorf("a session whose task ended: %v", err)
	}
	gone()
}

// processEnd opens a process, and gives what waits for its end.
func processEnd(t *testing.T, pid int) func() {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("process %d of the session does not run: %v", pid, err)
	}
	return func() {
		t.Helper()
		defer unix.Close(fd)
		awaitPidfd(t, fd, pid)
	}
}

func TestExecByTheOfficialClient(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	stub := actingJob(t, a, "official")
	cfg := official.DefaultConfig()
	cfg.Address = a.Addr()
	c, err := official.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	alloc, _, err := c.Allocations().Info(stub.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code, err := c.Allocations().Exec(limited(t), alloc, "t", false, []string{"/bin/sh", "-c", "cat; echo err >&2; exit 3"},
		strings.NewReader("typed\n"), &out, &errs, nil, nil)
	if err != nil || code != 3 || out.String() != "typed\n" || errs.String() != "err\n" {
		t.Errorf("code %d, %v, output %q, errors %q", code, err, out.String(), errs.String())
	}
	out.Reset()
	code, err = c.Jobs().ActionExec(limited(t), alloc, "official", "t", false, nil, "paint", strings.NewReader(""), &out, &errs, nil, nil)
	if err != nil || code != 0 || out.String() != "in blue t\n" {
		t.Errorf("action: code %d, %v, output %q", code, err, out.String())
	}
	if _, err = c.Allocations().Exec(limited(t), alloc, "web", false, []string{"true"}, strings.NewReader(""), &out, &errs, nil, nil); err == nil ||
		!strings.Contains(err.Error(), `unknown task "web"`) {
		t.Errorf("a task that is not there: %v", err)
	}
}
