package docker

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/structs"
)

// endOfInput is what ends the input of a terminal.
const endOfInput = 4

// Exec runs a command in the task's container.
func (d *Driver) Exec(ctx context.Context, cfg *driver.TaskConfig, req *driver.ExecRequest) (int, error) {
	if len(req.Command) == 0 {
		return 0, structs.Errorf(structs.CodeInvalid, "run command: no command is given")
	}
	t, err := d.task(ctx, cfg.ID)
	if err != nil {
		return 0, fmt.Errorf("run command: %w", err)
	}
	select {
	case <-t.done:
		return 0, fmt.Errorf("run command: the task has ended: %w", driver.ErrTaskNotFound)
	default:
	}
	made, err := d.engine.ExecCreate(ctx, t.container, client.ExecCreateOptions{
		TTY: req.TTY, AttachStdin: req.Stdin != nil, AttachStdout: true, AttachStderr: true, Cmd: req.Command,
	})
	if err != nil {
		return 0, fmt.Errorf("run command: %w", contractError(err))
	}
	conn, err := d.engine.ExecAttach(ctx, made.ID, client.ExecAttachOptions{TTY: req.TTY})
	if err != nil {
		return 0, fmt.Errorf("run command: %w", err)
	}
	defer conn.Close()
	running, ended := context.WithCancel(ctx)
	defer ended()
	if req.Stdin != nil {
		go func() {
			_, _ = io.Copy(conn.Conn, req.Stdin)
			if req.TTY { // engines cut the output off when the input of a terminal is closed: end it as a user would
				_, _ = conn.Conn.Write([]byte{endOfInput})
				return
			}
			_ = conn.CloseWrite()
		}()
	}
	if req.TTY && req.Resize != nil {
		go d.resize(running, made.ID, req.Resize)
	}
	output := make(chan error, 1)
	go func() { output <- copyOutput(&conn, req) }()
	select {
	case err = <-output:
	case <-ctx.Done():
		d.endCommand(context.WithoutCancel(ctx), made.ID)
		conn.Close()
		<-output
		return 0, ctx.Err()
	}
	if err != nil {
		return 0, fmt.Errorf("run command: %w", err)
	}
	got, err := d.engine.ExecInspect(ctx, made.ID, client.ExecInspectOptions{})
	if err != nil {
		return 0, fmt.Errorf("run command: %w", err)
	}
	if got.Running {
		return 0, errors.New("run command: the engine cut its output off")
	}
	return got.ExitCode, nil
}

func copyOutput(conn *client.ExecAttachResult, req *driver.ExecRequest) error {
	stdout, stderr := req.Stdout, req.Stderr
	if stdout == nil {
		stdout = io.Discard
	}
	if stderr == nil {
		stderr = io.Discard
	}
	var err error
	if req.TTY {
		_, err = io.Copy(stdout, conn.Reader)
	} else {
		_, err = stdcopy.StdCopy(stdout, stderr, conn.Reader)
	}
	return err
}

func (d *Driver) resize(ctx context.Context, id string, sizes <-chan structs.TerminalSize) {
	for {
		select {
		case <-ctx.Done():
			return
		case size, ok := <-sizes:
			if !ok {
				return
			}
			if _, err := d.engine.ExecResize(ctx, id, client.ExecResizeOptions{Height: uint(size.Height), Width: uint(size.Width)}); err != nil {
				d.cfg.Logger.Debug("terminal of a command is not resized", "error", err)
			}
		}
	}
}

// endCommand kills a command and its process group: engines cannot.
func (d *Driver) endCommand(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, undoLimit)
	defer cancel()
	got, err := d.engine.ExecInspect(ctx, id, client.ExecInspectOptions{})
	if err != nil || !got.Running || got.PID <= 1 {
		return
	}
	if err := unix.Kill(-got.PID, unix.SIGKILL); err != nil { // it leads no group
		_ = unix.Kill(got.PID, unix.SIGKILL)
	}
}
