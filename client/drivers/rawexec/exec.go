package rawexec

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/internal/command"
	"github.com/nomadlite/nomadlite/structs"
)

var _ driver.Execer = (*Driver)(nil)

// Exec runs a command as the task's user, in its directory, with its environment and in its cgroups. It is the agent's
// child, not the supervisor's: a session ends with the agent.
func (d *Driver) Exec(ctx context.Context, cfg *driver.TaskConfig, req *driver.ExecRequest) (int, error) {
	if len(req.Command) == 0 {
		return 0, structs.Errorf(structs.CodeInvalid, "run command: no command is given")
	}
	info, err := d.cfg.Supervisor.Status(ctx, cfg.ID)
	if err != nil {
		return 0, fmt.Errorf("run command: %w", contractError(err))
	}
	if !info.Running {
		return 0, fmt.Errorf("run command: the task has ended: %w", driver.ErrTaskNotFound)
	}
	c, err := parseConfig(cfg.Config)
	if err != nil {
		return 0, fmt.Errorf("run command: %w", err)
	}
	user, err := d.user(cfg.User)
	if err != nil {
		return 0, fmt.Errorf("run command: %w", err)
	}
	program, err := lookCommand(req.Command[0], cfg.TaskDir, cfg.Env["PATH"], os.Getenv("PATH"))
	if err != nil {
		return 0, structs.Errorf(structs.CodeInvalid, "run command: %w", err)
	}
	cmd := &exec.Cmd{Path: program, Args: req.Command, Dir: cfg.TaskDir, SysProcAttr: &syscall.SysProcAttr{},
		Env: envList(cfg.Env, slices.Concat(d.cfg.DeniedEnv, c.deniedEnv))}
	if c.workDir != "" {
		cmd.Dir = c.workDir
	}
	if user != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user.UID, Gid: user.GID, Groups: user.Groups, NoSetGroups: os.Geteuid() != 0}
	}
	return command.Run(ctx, cmd, req, func() error { return d.cfg.Supervisor.Beside(*info, cmd.SysProcAttr, cmd.Start) })
}
