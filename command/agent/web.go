package agent

import (
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
	limiter := &connLimiter{max: a.set.MaxHTTPConns, byHost: map[string]int{}}
	return &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ConnState: limiter.state,
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
			if a.client.Serves(r.Param("alloc_id"), r.URL.Query().Get("node_id")) {
				return handle(w, r)
			}
			return elsewhere(w, r)
		}
		rows = append(rows, row)
	}
	return rows, elsewhere
}

// connLimiter closes connections of a host that has too many open.
type connLimiter struct {
	max    int
	mu     sync.Mutex
	byHost map[string]int
	known  map[net.Conn]string
}

func (l *connLimiter) state(conn net.Conn, state http.ConnState) {
	if l.max <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew:
		host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
		if err != nil {
			return
		}
		if l.byHost[host] >= l.max {
			_ = conn.Close()
			return
		}
		if l.known == nil {
			l.known = map[net.Conn]string{}
		}
		l.byHost[host]++
		l.known[conn] = host
	case http.StateClosed, http.StateHijacked:
		host, ok := l.known[conn]
		if !ok {
			return
		}
		delete(l.known, conn)
		if l.byHost[host]--; l.byHost[host] == 0 {
			delete(l.byHost, host)
		}
	}
}
