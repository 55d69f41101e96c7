package client

import (
	"context"
	"math/rand/v2"
	"net/http"

	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/servers"
	"github.com/nomadlite/nomadlite/client/template"
)

// newTemplates is what the template hooks of all tasks share.
func (c *Client) newTemplates() *template.Config {
	settings := c.cfg.Templates
	if settings.Denylist == nil {
		settings.Denylist = template.DefaultDenylist()
	}
	return &template.Config{
		Settings: settings, Logger: c.log.Named("template"), Life: c.life, Go: c.running.Go, Random: rand.Float64,
		Source: template.Servers{Conn: session{c}, Region: c.cfg.Region},
		Render: template.NewRenderer(nil).Render, Script: c.script,
	}
}

// script runs change_scripts in the task, if its driver can.
func (c *Client) script(r *hook.TaskRequest) template.Script {
	if d, ok := c.drivers.Get(r.Task.Driver); !ok || !d.Capabilities().Exec {
		return nil
	}
	return func(ctx context.Context, command string, args []string) (int, string, error) {
		return r.Control.Exec(ctx, append([]string{command}, args...))
	}
}

// session sends requests over the node's connection, as soon as there is one.
type session struct{ client *Client }

func (s session) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.client.servers == nil {
		return nil, servers.ErrClosed
	}
	return s.client.servers.RoundTrip(req)
}
