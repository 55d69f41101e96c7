package client

import (
	"context"
	"os"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/logs"
	"github.com/nomadlite/nomadlite/client/taskenv"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/structs"
)

// hostEnv is what tasks inherit from the agent's environment.
func (c *Client) hostEnv() map[string]string {
	deny := taskenv.DefaultHostEnvDenylist()
	for _, key := range []string{"env.denylist", "env.blacklist"} {
		if list := csv(c.cfg.Options[key]); len(list) > 0 {
			deny = list
		}
	}
	return taskenv.HostEnv(os.Environ(), deny)
}

// isolation says what the task sees of the host's file system.
func (c *Client) isolation(task *structs.Task) string {
	if c.drivers != nil {
		if d, ok := c.drivers.Get(task.Driver); ok {
			return d.Capabilities().FSIsolation
		}
	}
	return driver.FSNone
}

// env makes a task's environment.
func (c *Client) env(alloc *structs.Allocation, task *structs.Task, hookEnv map[string]string) *taskenv.Env {
	dir := allocdir.New(c.cfg.AllocDir, alloc.ID)
	in := taskenv.Input{
		Alloc: alloc, Task: task, Node: c.Node(), Region: c.cfg.Region,
		AllocDir: dir.SharedDir(), LocalDir: dir.LocalDir(task.Name), SecretsDir: dir.SecretsDir(task.Name),
		HostEnv: c.environ, HookEnv: hookEnv, CgroupParent: c.cfg.CgroupParent,
	}
	switch c.isolation(task) {
	case driver.FSImage: // the host's variables are of programs that are not there
		in.HostEnv = nil
		fallthrough
	case driver.FSChroot:
		in.AllocDir, in.LocalDir, in.SecretsDir = "/alloc", "/local", "/secrets"
	}
	return taskenv.Build(in)
}

// build makes the driver's configuration of one start.
func (c *Client) build(_ context.Context, req taskrunner.BuildRequest) (*driver.TaskConfig, error) {
	alloc, task := req.Alloc, req.Task
	dir := allocdir.New(c.cfg.AllocDir, alloc.ID)
	env := c.env(alloc, task, req.HookEnv)
	cfg := &driver.TaskConfig{
		ID: req.TaskID, AllocID: alloc.ID, JobID: alloc.JobID, Namespace: alloc.Namespace, Group: alloc.TaskGroup, Task: task.Name,
		User: env.Replace(task.User), Env: env.Map(), Config: env.ReplaceConfig(task.Config),
		AllocDir: dir.SharedDir(), TaskDir: dir.TaskDir(task.Name),
		StdoutPath:   logs.FIFOPath(dir.LogDir(), task.Name, logs.Stdout),
		StderrPath:   logs.FIFOPath(dir.LogDir(), task.Name, logs.Stderr),
		CgroupParent: c.cfg.CgroupParent, KillSignal: task.KillSignal,
	}
	if until, leased := c.leases.Until(alloc.ID); leased {
		cfg.Lease = &until
	}
	if r := alloc.AllocatedResources; r != nil {
		cfg.Resources, cfg.Ports = r.Tasks[task.Name], r.Shared.Ports
	}
	if l := task.LogConfig; l != nil {
		cfg.MaxLogFiles = structs.Val(l.MaxFiles)
		cfg.LogFileBytes = int64(structs.Val(l.MaxFileSizeMB)) << 20
		cfg.LogsDisabled = structs.Val(l.Disabled) || (l.Enabled != nil && !*l.Enabled)
	}
	return cfg, nil
}
