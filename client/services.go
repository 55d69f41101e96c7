package client

import (
	"context"

	"github.com/nomadlite/nomadlite/client/service"
	"github.com/nomadlite/nomadlite/client/state"
	"github.com/nomadlite/nomadlite/client/taskenv"
	"github.com/nomadlite/nomadlite/structs"
)

// serviceServers sends what the node offers over the client's connection.
type serviceServers struct{ client *Client }

var _ service.Servers = serviceServers{}

func (s serviceServers) UpdateServices(ctx context.Context, req structs.NodeServicesRequest) error {
	err := s.client.conn.UpdateServices(ctx, req)
	if err != nil {
		nudge(s.client.wakeDuty) // maybe they do not know this node any more: a heartbeat finds out
	}
	return err
}

// SaveServices keeps what an owner offers.
func (s store) SaveServices(owner string, list []*structs.ServiceRegistration) {
	if len(list) == 0 {
		s.db.Delete(state.Services, owner)
		return
	}
	s.db.Put(state.Services, owner, list, nil)
}

func (c *Client) newServices() *service.Registry {
	return service.New(service.Config{
		Servers: serviceServers{c}, Store: store{c.db}, Logger: c.log.Named("services"),
		Reachable: func() bool { return c.Healthy() == nil },
	})
}

// restoreServices takes over what an earlier agent offered for allocations that go on. It runs after restore.
func (c *Client) restoreServices() error {
	bad := func(key string, err error) { c.log.Error("damaged record in client state", "key", key, "error", err) }
	return state.Each(c.db, state.Services, func(owner string, list *[]*structs.ServiceRegistration) {
		if list == nil || len(*list) == 0 {
			return
		}
		if h := c.held[(*list)[0].AllocID]; h == nil || h.runner == nil || h.runner.Terminal() {
			c.db.Delete(state.Services, owner)
			return
		}
		c.services.Restore(owner, *list)
	}, bad)
}

// offer tells the servers which services run here.
func (c *Client) offer(ctx context.Context) { c.services.Run(ctx, c.registered.ch) }

// serviceContext is what the hooks of services know of the node.
func (c *Client) serviceContext() service.Context {
	env := func(alloc *structs.Allocation, task *structs.Task) *taskenv.Env {
		if task != nil {
			return c.env(alloc, task, nil)
		}
		return taskenv.Build(taskenv.Input{Alloc: alloc, Node: c.Node(), Region: c.cfg.Region})
	}
	return service.Context{Registry: c.services, Checks: c.checks, Node: c.Node, Env: env}
}
