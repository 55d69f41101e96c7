package artifact

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
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// unpackTime is for how long a process may unpack, beyond what it may fetch for.
const unpackTime = 30 * time.Minute

// maxAnswer bounds the response of a process, in bytes.
const maxAnswer = 64 << 10

// Process starts the fetching process.
type Process struct {
	// Command starts it; empty means this very binary.
	Command []string
	// Env is all that it gets of the environment beside a PATH.
	Env []string

	shared bool // no namespaces are made, as where there is no right to
}

// fetch lets a process fill the stage. When ctx ends, it is killed with all that it has started before fetch returns.
func (p Process) fetch(ctx context.Context, req *Request, stage *os.File) (*Response, error) {
	file, err := requestFile(req)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if limit := req.limit(); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
		defer cancel()
	}
	resp, err := p.run(ctx, file, stage, os.Geteuid() == 0 && !p.shared)
	if errors.Is(err, unix.EPERM) && ctx.Err() == nil { // root without the right to make namespaces, as in a container
		resp, err = p.run(ctx, file, stage, false)
	}
	return resp, err
}

// limit is how long a process may take in all; 0 is no limit.
func (r *Request) limit() time.Duration {
	limit := r.Settings.HTTPTimeout
	if r.Source.By == byGit {
		limit = r.Settings.GitTimeout
	}
	if limit <= 0 {
		return 0
	}
	return limit + unpackTime
}

// requestFile keeps a request in memory: there may be secrets in it.
func requestFile(req *Request) (*os.File, error) {
	text, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	fd, err := unix.MemfdCreate("artifact", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("keep request: %w", err)
	}
	f := os.NewFile(uintptr(fd), "request")
	if _, err := f.Write(text); err != nil {
		return nil, errors.Join(fmt.Errorf("keep request: %w", err), f.Close())
	}
	return f, nil
}

// run starts one process and waits for its end. In namespaces of its own all that it starts ends with it, and it can make
// the host's files read-only for itself; elsewhere the process group has to do.
func (p Process) run(ctx context.Context, request, stage *os.File, namespace bool) (*Response, error) {
	command := p.Command
	if len(command) == 0 {
		command = []string{"/proc/self/exe", Command}
	}
	life, held, err := os.Pipe() // its end is the agent's
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	defer held.Close()
	defer life.Close()
	runtime.LockOSThread() // the signal on the parent's death is that of the thread which started the process
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Stdin, cmd.ExtraFiles = "/", life, []*os.File{request, stage}
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, p.Env...)
	out, said := &bounded{left: maxAnswer}, &bounded{left: maxSaid}
	cmd.Stdout, cmd.Stderr = out, said
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGTERM}
	if namespace {
		cmd.Args = append(cmd.Args, apart)
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	}
	killGroup := func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = killGroup, 10*time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start fetching process: %w", err)
	}
	err = cmd.Wait()
	if !namespace {
		_ = killGroup() // whatever it left behind
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	resp := &Response{}
	if err == nil {
		err = json.Unmarshal(out.buf.Bytes(), resp)
	}
	if err != nil {
		return nil, fmt.Errorf("fetching process ended without a result: %w: %s", err, strings.TrimSpace(said.buf.String()))
	}
	return resp, nil
}

// bounded keeps the first bytes.
type bounded struct {
	buf  bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.buf.Write(p[:n])
	return len(p), nil
}

var _ io.Writer = (*bounded)(nil)
