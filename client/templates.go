package client

import (
	"math/rand/v2"
	"net/http"

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
		Render: template.NewRenderer(nil).Render,
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
