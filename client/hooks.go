package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/artifact"
	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/service"
	"github.com/nomadlite/nomadlite/client/taskenv"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/client/template"
	"github.com/nomadlite/nomadlite/structs"
)

// allocHooks lists what happens around an allocation, in order.
func (c *Client) allocHooks(alloc *structs.Allocation) []hook.Hook {
	dir := allocdir.New(c.cfg.AllocDir, alloc.ID)
	return []hook.Hook{
		&supportedGroup{},
		&stopNotice{log: c.log},
		&allocDirHook{dir: dir},
		&stickyDisk{allocsDir: c.cfg.AllocDir, dir: dir},
		&service.GroupHook{Context: c.serviceContext()},
	}
}

// taskHooks lists what happens around each task of an allocation, in order.
func (c *Client) taskHooks(alloc *structs.Allocation) []hook.Hook {
	dir := allocdir.New(c.cfg.AllocDir, alloc.ID)
	env := func(r *hook.TaskRequest) *taskenv.Env { return c.env(r.Alloc, r.Task, nil) }
	return []hook.Hook{
		&taskStopNotice{},
		&validTask{drivers: c.drivers, interpolate: func(r *hook.TaskRequest) map[string]any {
			return c.env(r.Alloc, r.Task, nil).ReplaceConfig(r.Task.Config)
		}},
		&taskDirHook{dir: dir, user: func(r *hook.TaskRequest) string { return c.env(r.Alloc, r.Task, nil).Replace(r.Task.User) }},
		&payloadHook{dir: dir},
		&artifact.Hook{Config: c.artifacts, Dir: dir, Env: env, Owner: ownerOf},
		&template.Hook{Config: c.templates, Dir: dir, Env: env},
		&service.TaskHook{Context: c.serviceContext()},
	}
}

// supportedGroup refuses what this version cannot do, instead of running the group without it.
type supportedGroup struct{}

var _ hook.AllocPrerunner = (*supportedGroup)(nil)

func (*supportedGroup) Name() string { return "supported" }

func (*supportedGroup) Prerun(_ context.Context, r *hook.AllocRequest, _ *hook.AllocResponse) error {
	group := r.Alloc.Group()
	var errs structs.Errors
	for _, n := range group.Networks {
		if n.Mode != "" && n.Mode != "host" && n.Mode != "none" {
			errs.Addf("network mode %q is not supported by this node", n.Mode)
		}
	}
	for name, v := range group.Volumes {
		errs.Addf("volume %q of type %q is not supported by this node", name, v.Type)
	}
	return errs.Err()
}

// allocDirHook builds the directories and removes them.
type allocDirHook struct{ dir *allocdir.Dir }

var (
	_ hook.AllocPrerunner  = (*allocDirHook)(nil)
	_ hook.AllocPostrunner = (*allocDirHook)(nil)
	_ hook.AllocDestroyer  = (*allocDirHook)(nil)
)

func (*allocDirHook) Name() string { return "alloc_dir" }

func (h *allocDirHook) Prerun(context.Context, *hook.AllocRequest, *hook.AllocResponse) error {
	return h.dir.Build()
}

// Postrun keeps the directories for people until they are collected, and no secrets.
func (h *allocDirHook) Postrun(context.Context, *hook.AllocRequest, *hook.AllocResponse) error {
	return h.dir.DropSecrets()
}

func (h *allocDirHook) Destroy(context.Context, *hook.AllocRequest, *hook.AllocResponse) error {
	return h.dir.Destroy()
}

// stickyDisk takes the data of the allocation that is replaced along, when both are on this node.
type stickyDisk struct {
	allocsDir string
	dir       *allocdir.Dir
}

var _ hook.AllocPrerunner = (*stickyDisk)(nil)

func (*stickyDisk) Name() string { return "sticky_disk" }

func (h *stickyDisk) Prerun(_ context.Context, r *hook.AllocRequest, _ *hook.AllocResponse) error {
	group := r.Alloc.Group()
	if r.Alloc.PreviousAllocation == "" || group.EphemeralDisk == nil || !structs.Val(group.EphemeralDisk.Sticky) {
		return nil
	}
	previous := allocdir.New(h.allocsDir, r.Alloc.PreviousAllocation)
	moves := map[string]string{
		filepath.Join(previous.SharedDir(), allocdir.DataName): filepath.Join(h.dir.SharedDir(), allocdir.DataName),
	}
	for _, t := range group.Tasks {
		moves[previous.LocalDir(t.Name)] = h.dir.LocalDir(t.Name)
	}
	for from, to := range moves {
		if err := move(from, to); err != nil {
			return fmt.Errorf("take over data of allocation %s: %w", r.Alloc.PreviousAllocation, err)
		}
	}
	return nil
}

// move renames a directory over an empty one; a missing source is nothing to move.
func move(from, to string) error {
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // it holds data already: never lose either
	}
	return os.Rename(from, to)
}

// validTask refuses a task before anything is done for it.
type validTask struct {
	drivers     *driver.Registry
	interpolate func(*hook.TaskRequest) map[string]any
}

var _ hook.TaskPrestarter = (*validTask)(nil)

func (*validTask) Name() string { return "validate" }

func (h *validTask) Prestart(_ context.Context, r *hook.TaskRequest, _ *hook.TaskResponse) error {
	var errs structs.Errors
	d, ok := h.drivers.Get(r.Task.Driver)
	if !ok {
		errs.Addf("this node has no driver %q", r.Task.Driver)
	} else {
		errs.Add(d.Validate(h.interpolate(r)))
	}
	if r.Task.Vault != nil {
		errs.Addf("vault blocks are not supported by this node")
	}
	if len(r.Task.VolumeMounts) > 0 {
		errs.Addf("volume_mount blocks are not supported by this node")
	}
	if err := errs.Err(); err != nil {
		return fmt.Errorf("%w: %w", driver.ErrUnrecoverable, err)
	}
	return nil
}

// taskDirHook builds the task's directories before each start; what is there stays.
type taskDirHook struct {
	dir  *allocdir.Dir
	user func(*hook.TaskRequest) string
}

var _ hook.TaskPrestarter = (*taskDirHook)(nil)

func (*taskDirHook) Name() string { return "task_dir" }

func (h *taskDirHook) Prestart(_ context.Context, r *hook.TaskRequest, resp *hook.TaskResponse) error {
	if r.Attempt <= 1 {
		resp.Events = append(resp.Events, taskrunner.EventSetup("Building Task Directory"))
	}
	task := allocdir.Task{Name: r.Task.Name}
	if r.Task.Resources != nil {
		task.SecretsMB = structs.Val(r.Task.Resources.SecretsMB)
	}
	owner, err := ownerOf(h.user(r))
	if err != nil {
		return fmt.Errorf("%w: %w", driver.ErrUnrecoverable, err)
	}
	task.Owner = owner
	if _, err := os.Lstat(h.dir.LogDir()); errors.Is(err, fs.ErrNotExist) {
		if err := h.dir.Build(); err != nil { // somebody removed it, perhaps the task itself
			return err
		}
	}
	return h.dir.BuildTask(task)
}

func ownerOf(name string) (allocdir.Owner, error) {
	if name == "" {
		return allocdir.Owner{UID: os.Getuid(), GID: os.Getgid()}, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return allocdir.Owner{}, fmt.Errorf("find user %q: %w", name, err)
		}
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return allocdir.Owner{UID: uid, GID: gid}, errors.Join(err1, err2)
}

// payloadHook writes a dispatched job's payload into the task's directory.
type payloadHook struct{ dir *allocdir.Dir }

var _ hook.TaskPrestarter = (*payloadHook)(nil)

func (*payloadHook) Name() string { return "dispatch_payload" }

func (h *payloadHook) Prestart(_ context.Context, r *hook.TaskRequest, resp *hook.TaskResponse) error {
	p := r.Task.DispatchPayload
	if p == nil || p.File == "" || len(r.Alloc.Job.Payload) == 0 {
		return nil
	}
	local := h.dir.LocalDir(r.Task.Name)
	if strings.Contains(p.File, "..") {
		return fmt.Errorf("%w: dispatch_payload file %q leads out of the task's directory", driver.ErrUnrecoverable, p.File)
	}
	path := filepath.Join(local, filepath.Clean("/"+p.File))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("write dispatch payload: %w", err)
	}
	if err := os.WriteFile(path, r.Alloc.Job.Payload, 0o644); err != nil {
		return fmt.Errorf("write dispatch payload: %w", err)
	}
	resp.Once = true
	return nil
}
