package service

import (
	"context"
	"fmt"
	"sync"

	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/service/check"
	"github.com/nomadlite/nomadlite/client/taskenv"
	"github.com/nomadlite/nomadlite/structs"
)

// Context is what the hooks know of the node.
type Context struct {
	Registry *Registry
	Checks   *check.Board
	Node     func() *structs.Node
	// Env gives the environment in whose terms a task's services are written, or with a nil task those of a group.
	Env func(alloc *structs.Allocation, task *structs.Task) *taskenv.Env
}

// HookName is the name of both hooks.
const HookName = "services"

// The hooks note in their data that their services are offered: an update must not offer what has left already.
func offeredData() map[string]string { return map[string]string{"offered": "true"} }

func leftData() map[string]string { return map[string]string{} }

func isOffered(data map[string]string) bool { return data["offered"] != "" }

// offer makes the registrations and the checks, and hands them on.
func (c Context) offer(alloc *structs.Allocation, task *structs.Task, services []*structs.Service) error {
	in := Input{Alloc: alloc, Node: c.Node(), Services: c.Env(alloc, task).ReplaceServices(services)}
	if task != nil {
		in.Task = task.Name
	}
	list, err := Registrations(in)
	if err != nil {
		return fmt.Errorf("register services: %w", err)
	}
	checks, err := in.checks(services)
	if err != nil {
		return fmt.Errorf("register services: %w", err)
	}
	c.Checks.Offer(alloc.ID, in.Task, checks)
	c.Registry.Set(Owner(alloc.ID, in.Task), list)
	return nil
}

// Restore has the checks of a group asked again whose services an earlier agent had offered: no point of the group is run
// when an agent is restarted. data is what GroupHook had kept.
func (c Context) Restore(alloc *structs.Allocation, data map[string]string) error {
	group := alloc.Group()
	if !isOffered(data) || group == nil || len(group.Services) == 0 {
		return nil
	}
	checks, err := Input{Alloc: alloc, Node: c.Node(), Services: c.Env(alloc, nil).ReplaceServices(group.Services)}.checks(group.Services)
	if err != nil {
		return fmt.Errorf("restore checks: %w", err)
	}
	c.Checks.Offer(alloc.ID, "", checks)
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
	_ hook.AllocDestroyer  = (*GroupHook)(nil)
)

// Name is the hook's name.
func (*GroupHook) Name() string { return HookName }

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
	h.Checks.Withdraw(r.Alloc.ID, "")
	if len(r.Alloc.Group().Services) == 0 {
		return nil
	}
	return h.Registry.Leave(ctx, Owner(r.Alloc.ID, ""))
}

// Postrun makes sure that nothing stays of an allocation that ended by itself.
func (h *GroupHook) Postrun(_ context.Context, r *hook.AllocRequest, resp *hook.AllocResponse) error {
	resp.Data = leftData()
	h.Checks.Withdraw(r.Alloc.ID, "")
	h.Registry.Set(Owner(r.Alloc.ID, ""), nil)
	return nil
}

// Destroy forgets the results of the checks, which until then tell people why an allocation was not healthy.
func (h *GroupHook) Destroy(_ context.Context, r *hook.AllocRequest, _ *hook.AllocResponse) error {
	h.Checks.Drop(r.Alloc.ID)
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
	_ hook.TaskReattacher  = (*TaskHook)(nil)
	_ hook.TaskUpdater     = (*TaskHook)(nil)
	_ hook.TaskPreKiller   = (*TaskHook)(nil)
	_ hook.TaskExiter      = (*TaskHook)(nil)
	_ hook.TaskStopper     = (*TaskHook)(nil)
)

// Name is the hook's name.
func (*TaskHook) Name() string { return HookName }

// Poststart offers the services.
func (h *TaskHook) Poststart(_ context.Context, r *hook.TaskRequest, resp *hook.TaskResponse) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = false
	resp.Data = offeredData() // also without services: an update may bring some
	h.Checks.TaskUp(r.Alloc.ID, r.Task.Name, isMain(r.Task), true)
	if len(r.Task.Services) == 0 {
		return nil
	}
	return h.offer(r.Alloc, r.Task, r.Task.Services)
}

// Reattach has the checks asked again of a task which an earlier agent had started, unless it was ending already.
func (h *TaskHook) Reattach(_ context.Context, r *hook.TaskRequest, _ *hook.TaskResponse) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left || !isOffered(r.Data) {
		return nil
	}
	h.Checks.TaskUp(r.Alloc.ID, r.Task.Name, isMain(r.Task), false)
	if len(r.Task.Services) == 0 {
		return nil
	}
	return h.offer(r.Alloc, r.Task, r.Task.Services)
}

// isMain says that a task is one for whose sake the allocation is there.
func isMain(t *structs.Task) bool { return t.Lifecycle == nil || t.Lifecycle.Hook == "" }

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
	h.Checks.TaskDown(r.Alloc.ID, r.Task.Name)
	h.Checks.Withdraw(r.Alloc.ID, r.Task.Name)
	h.Registry.Set(Owner(r.Alloc.ID, r.Task.Name), nil)
}
