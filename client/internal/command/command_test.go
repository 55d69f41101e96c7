package command

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/client/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(ctx context.Context, script string, req *driver.ExecRequest) (int, error) {
	cmd := exec.Command("/bin/sh", "-c", script)
	return Run(ctx, cmd, req, cmd.Start)
}

func TestRun(t *testing.T) {
	for script, want := range map[string]struct {
		in, out, errs string
		code          int
	}{
		"cat; echo e >&2; exit 4": {"typed", "typed", "e\n", 4},
		"kill -TERM $$":           {"", "", "", 143},
		"exec sleep 0":            {strings.Repeat("unread", 100000), "", "", 0},
		"sleep 1 & echo left":     {"", "left\n", "", 0}, // what it leaves behind is not waited for
	} {
		var out, errs bytes.Buffer
		code, err := run(t.Context(), script, &driver.ExecRequest{Stdin: strings.NewReader(want.in), Stdout: &out, Stderr: &errs})
		if err != nil || code != want.code || out.String() != want.out || errs.String() != want.errs {
			t.Errorf("%s: code %d, %v, %q, %q", script, code, err, out.String(), errs.String())
		}
	}
}

func TestRunWithATerminal(t *testing.T) {
	var out bytes.Buffer
	code, err := run(t.Context(), "stty -echo; tty; cat; echo e >&2", &driver.ExecRequest{TTY: true, Stdin: strings.NewReader("typed\n"), Stdout: &out})
	if err != nil || code != 0 || !strings.Contains(out.String(), "/dev/pts/") || !strings.HasSuffix(out.String(), "typed\r\ne\r\n") {
		t.Errorf("code %d, %v, %q", code, err, out.String())
	}
}

// Everything of the command's session is killed, also what ignores its terminal's end.
func TestRunUntilItIsLeft(t *testing.T) {
	for _, tty := range []bool{false, true} {
		ctx, leave := context.WithCancelCause(t.Context())
		gone := errors.New("left")
		begun := writerFunc(func(p []byte) (int, error) { leave(gone); return len(p), nil })
		if _, err := run(ctx, "trap '' HUP TERM; echo begun; while :; do sleep 100; done", &driver.ExecRequest{TTY: tty, Stdout: begun, Stderr: begun}); !errors.Is(err, gone) {
			t.Errorf("terminal %t: %v", tty, err)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
