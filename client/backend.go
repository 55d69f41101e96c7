package client

import (
	"context"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/allocrunner"
	"github.com/nomadlite/nomadlite/client/endpoint"
	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// Locate says how the agent's HTTP port finds the node that answers; see endpoint.Locate.
type Locate = endpoint.Locate

// ActionAlloc is the parameter that names the allocation of a job's action; see endpoint.ActionAlloc.
const ActionAlloc = endpoint.ActionAlloc

// backend is the client as its handlers see it.
type backend struct{ *Client }

var _ endpoint.Backend = backend{}

// Routes are the rows which this node serves. An agent that is a server too locates by the servers' state, one that
// is only a client by LocalLocate.
func (c *Client) Routes(l Locate) []route.Route { return endpoint.Routes(backend{c}, l) }

// LocalLocate is for an agent without a server: what this node holds it answers, everything else the servers find.
func (c *Client) LocalLocate() Locate {
	return Locate{
		Alloc: func(r *route.Request) (string, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.held[r.Param("alloc_id")] != nil {
				return c.nodeID, nil
			}
			return "", nil
		},
		Param: func(r *route.Request) (string, error) {
			if id := r.URL.Query().Get("node_id"); id != "" && id != c.nodeID {
				return "", nil // maybe a prefix of ours: the servers know
			}
			return c.nodeID, nil
		},
	}
}

// Alloc finds an allocation that has something on this node.
func (b backend) Alloc(id string) (endpoint.Alloc, error) {
	r, err := b.runner(id)
	if err != nil {
		return nil, err
	}
	return durable{r, b.Client}, nil
}

// durable is a runner whose requests are on disk when they are answered: an agent killed right after goes on with them.
type durable struct {
	*allocrunner.Runner
	client *Client
}

func (d durable) RestartTask(name string, terms allocrunner.Terms) error {
	return d.settle(d.Runner.RestartTask(name, terms))
}

func (d durable) RestartRunning(terms allocrunner.Terms) error {
	return d.settle(d.Runner.RestartRunning(terms))
}

func (d durable) RestartAll(terms allocrunner.Terms) error {
	return d.settle(d.Runner.RestartAll(terms))
}

// settle waits for the disk after a request that was taken. On a full disk, which the state has logged, it is carried
// out all the same.
func (d durable) settle(err error) error {
	if err == nil {
		_ = d.client.db.Sync()
	}
	return err
}

// AllocDir is the directory of an allocation that has one.
func (b backend) AllocDir(id string) (*allocdir.Dir, error) {
	if _, err := b.runner(id); err != nil {
		return nil, err
	}
	return allocdir.New(b.cfg.AllocDir, id), nil
}

// HostStats measures the machine.
func (b backend) HostStats(ctx context.Context) (*structs.HostStats, error) {
	return b.host.Collect(ctx)
}

// Action gives the command of an action of a task, with what it refers to of the task's environment put in.
func (d durable) Action(name, action string) ([]string, error) {
	alloc := d.Alloc()
	task := alloc.Group().LookupTask(name)
	if task == nil {
		return nil, structs.Errorf(structs.CodeNotFound, "unknown task %q", name)
	}
	for _, a := range task.Actions {
		if a.Name == action {
			return d.client.env(alloc, task, nil).ReplaceAll(append([]string{a.Command}, a.Args...)), nil
		}
	}
	return nil, structs.Errorf(structs.CodeNotFound, "task %q has no action %q", name, action)
}
