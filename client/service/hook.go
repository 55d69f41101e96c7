package service

import (
	"context"
	"fmt"
	"sync"

	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/taskenv"
	"github.com/nomadlite/nomadlite/structs"
)

// Context is what the hooks know of the node.
type Context struct {
	Registry *Registry
	Node     func() *structs.Node
	// Env gives the environment in whose terms a task's services are written, or with a nil task those of a group.
	Env func(alloc *structs.Allocation, task *structs.Task) *taskenv.Env
}

const hookName = "services"

// The hooks note in their data that their services are offered: an update must not offer what has left already.
func offeredData() map[string]string { return map[string]string{"offered": "true"} }

func leftData() map[string]string { return map[string]string{} }

func isOffered(data map[string]string) bool { return data["offered"] != "" }

// offer makes the registrations and hands them to the registry.
func (c Context) offer(alloc *structs.Allocation, task *structs.Task, services []*structs.Service) error {
	in := Input{Alloc: alloc, Node: c.Node(), Services: c.Env(alloc, task).ReplaceServices(services)}
	if task != nil {
		in.Task = task.Name
	}
	list, err := Registrations(in)
	if err != nil {
		return fmt.Errorf("register services: %w", err)
	}
	c.Registry.Set(Owner(alloc.ID, in.Task), list)
	return nil
}

// GroupHook offers the services of an allocation's group.
type GroupHook struct{ Context }

var (
	_ hook.AllocPrerunner  = (*GroupHook)(nil)
	_ hook.AllocUpdater    = (*GroupHook)(nil)
	_ hook.AllocPreKiller  = (*GroupHook)(nil)
	_ hook.AllocResumer    = (*GroupHook)(nil)
	_ hook.AllocPostrunner = (*GroupHook)(nil)
)

// Name is the hook's name.
func (*GroupHook) Name() string { return hookName }

// Prerun offers the services.
func (h *GroupHook) Prerun(_ context.Context, r *hook.AllocRequest, resp *hook.AllocResponse) error {
	return h.begin(r, resp)
}

// Resume offers them again after a restart.
func (h *GroupHook) Resume(_ context.Context, r *hook.AllocRequest, resp *hook.AllocResponse) error {
	return h.begin(r, resp)
}

func (h *GroupHook) begin(r *hook.AllocRequest, resp *hook.AllocResponse) error {
	resp.Data = offeredData() // also without services: an update may bring some
	if len(r.Alloc.Group().Services) == 0 {
		return nil
	}
	return h.offer(r.Alloc, nil, r.Alloc.Group().Services)
}

// Update offers what changed, as long as the services are offered.
func (h *GroupHook) Update(_ context.Context, r *hook.AllocRequest, _ *hook.AllocResponse) error {
	if !isOffered(r.Data) || r.Alloc.ServerTerminal() {
		return nil
	}
	return h.offer(r.Alloc, nil, r.Alloc.Group().Services)
}

// PreKill takes the services away before anything is waited for or stopped.
func (h *GroupHook) PreKill(ctx context.Context, r *hook.AllocRequest, resp *hook.AllocResponse) error {
	resp.Data = leftData()
	if len(r.Alloc.Group().Services) == 0 {
		return nil
	}
	return h.Registry.Leave(ctx, Owner(r.Alloc.ID, ""))
}

// Postrun makes sure that nothing stays of an allocation that ended by itself.
func (h *GroupHook) Postrun(_ context.Context, r *hook.AllocRequest, resp *hook.AllocResponse) error {
	resp.Data = leftData()
	h.Registry.Set(Owner(r.Alloc.ID, ""), nil)
	return nil
}

// TaskHook offers the services of a task while it runs.
type TaskHook struct {
	Context

	mu sync.Mutex // an update comes from another goroutine than the rest
	// left is set while the task is ending or has ended: no update may offer its services then.
	left bool
}

var (
	_ hook.TaskPoststarter = (*TaskHook)(nil)
	_ hook.TaskUpdater     = (*TaskHook)(nil)
	_ hook.TaskPreKiller   = (*TaskHook)(nil)
	_ hook.TaskExiter      = (*TaskHook)(nil)
	_ hook.TaskStopper     = (*TaskHook)(nil)
)

// Name is the hook's name.
func (*TaskHook) Name() string { return hookName }

// Poststart offers the services.
func (h *TaskHook) Poststart(_ context.Context, r *hook.TaskRequest, resp *hook.TaskResponse) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = false
	resp.Data = offeredData() // also without services: an update may bring some
	if len(r.Task.Services) == 0 {
		return nil
	}
	return h.offer(r.Alloc, r.Task, r.Task.Services)
}

// Update offers what changed, as long as the task runs.
func (h *TaskHook) Update(_ context.Context, r *hook.TaskRequest, _ *hook.TaskResponse) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left || !isOffered(r.Data) || r.Alloc.ServerTerminal() {
		return nil
	}
	return h.offer(r.Alloc, r.Task, r.Task.Services)
}

// PreKill takes the services away before anything is waited for or stopped.
func (h *TaskHook) PreKill(ctx context.Context, r *hook.TaskRequest, resp *hook.TaskResponse) error {
	h.leave(r, resp)
	if len(r.Task.Services) == 0 {
		return nil
	}
	return h.Registry.Leave(ctx, Owner(r.Alloc.ID, r.Task.Name))
}

// Exited takes the services away when the task ended by itself.
func (h *TaskHook) Exited(_ context.Context, r *hook.TaskRequest, resp *hook.TaskResponse) error {
	h.leave(r, resp)
	return nil
}

// Stop makes sure that nothing stays.
func (h *TaskHook) Stop(_ context.Context, r *hook.TaskRequest, resp *hook.TaskResponse) error {
	h.leave(r, resp)
	return nil
}

func (h *TaskHook) leave(r *hook.TaskRequest, resp *hook.TaskResponse) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = true
	resp.Data = leftData()
	h.Registry.Set(Owner(r.Alloc.ID, r.Task.Name), nil)
}
