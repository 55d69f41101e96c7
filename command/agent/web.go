package agent

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client"
	"github.com/nomadlite/nomadlite/internal/route"
)

// webServer builds the public port from the rows of server, client and agent.
func (a *Agent) webServer(ctx context.Context) (*http.Server, error) {
	mux, err := route.NewPublic(a.muxConfig())
	if err != nil {
		return nil, err
	}
	a.conns = newConns(a.set.MaxHTTPConns)
	return &http.Server{Handler: boundBodies(mux, bodyPause, bodyLimit), ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute, ConnState: a.conns.state,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    a.log.Named("http").StandardLogger(&hclog.StandardLoggerOptions{InferLevels: true})}, nil
}

func (a *Agent) muxConfig() route.Config {
	cfg := route.Config{Logger: a.log.Named("http"), Headers: a.set.Headers}
	var own map[string]route.Route
	if a.client != nil {
		own = map[string]route.Route{}
		for _, row := range a.client.Routes(client.Locate{}) {
			own[row.Path] = row
		}
	}
	if a.server != nil {
		cfg.Forwarder = a.server.Forwarder()
		for _, row := range a.server.HTTPRoutes() {
			if node, ok := own[row.Path]; ok && row.ServedBy == route.Node {
				row.Handle = node.Handle // for requests that name no node
			}
			cfg.Routes = append(cfg.Routes, row)
		}
	} else {
		cfg.Routes, cfg.Unmatched = a.clientOnlyRoutes()
	}
	cfg.Routes = append(cfg.Routes, a.ownRoutes()...)
	return cfg
}

// clientOnlyRoutes serves what this node runs itself, also when no server can be reached, and takes all else to the
// servers.
func (a *Agent) clientOnlyRoutes() ([]route.Route, route.Handler) {
	elsewhere := func(w http.ResponseWriter, r *route.Request) error { return a.client.Forwarder().Handle(w, r) }
	var rows []route.Route
	for _, row := range a.client.Routes(client.Locate{}) {
		handle := row.Handle
		row.ServedBy, row.NodeOf = route.Local, nil
		row.Handle = func(w http.ResponseWriter, r *route.Request) error {
			node := ""
			alloc := cmp.Or(r.Param("alloc_id"), r.URL.Query().Get(client.ActionAlloc))
			if alloc == "" {
				var err error
				if node, err = r.NamedNode(); err != nil {
					return err
				}
			}
			if a.client.Serves(alloc, node) {
				return handle(w, r)
			}
			return elsewhere(w, r)
		}
		rows = append(rows, row)
	}
	return rows, elsewhere
}

// conns knows the port's connections: it closes those of a host that has too many open, and at the end those which
// never asked anything, for which a shutdown would wait.
type conns struct {
	max    int // of one host; 0 is no bound
	mu     sync.Mutex
	byHost map[string]int
	known  map[net.Conn]*connInfo
}

type connInfo struct {
	host string
	idle bool // nothing was asked yet
}

func newConns(limit int) *conns {
	return &conns{max: limit, byHost: map[string]int{}, known: map[net.Conn]*connInfo{}}
}

func (c *conns) state(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
		if err != nil {
			return
		}
		if c.max > 0 && c.byHost[host] >= c.max {
			_ = conn.Close()
			return
		}
		c.byHost[host]++
		c.known[conn] = &connInfo{host: host, idle: true}
	case http.StateActive:
		if info := c.known[conn]; info != nil {
			info.idle = false
		}
	case http.StateClosed, http.StateHijacked:
		info := c.known[conn]
		if info == nil {
			return
		}
		delete(c.known, conn)
		if c.byHost[info.host]--; c.byHost[info.host] == 0 {
			delete(c.byHost, info.host)
		}
	}
}

// closeUnused closes the connections on which nothing was asked.
func (c *conns) closeUnused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn, info := range c.known {
		if info.idle {
			_ = conn.Close()
		}
	}
}
