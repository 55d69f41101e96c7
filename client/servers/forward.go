package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// forwardWait bounds how long a request of the public port waits for a session.
const forwardWait = 5 * time.Second

// Forwarder sends what a client agent's public port does not answer itself to the servers. It is a route.Forwarder.
type Forwarder struct{ conn *Conn }

var _ route.Forwarder = (*Forwarder)(nil)

// Forwarder gives the forwarder over this connection.
func (c *Conn) Forwarder() *Forwarder { return &Forwarder{conn: c} }

// ToLeader forwards always: a client agent never leads.
func (f *Forwarder) ToLeader(w http.ResponseWriter, r *route.Request) bool {
	f.forward(w, r)
	return true
}

// ToNode forwards unless nodeID is this very node. An empty one means that only the servers can tell.
func (f *Forwarder) ToNode(w http.ResponseWriter, r *route.Request, nodeID string) bool {
	if nodeID == f.conn.cfg.NodeID {
		return false
	}
	f.forward(w, r)
	return true
}

// Handle is a route.Handler that forwards: a client agent's answer to whatever is not in its own table.
func (f *Forwarder) Handle(w http.ResponseWriter, r *route.Request) error {
	return route.Proxy(w, r, boundedWait{f.conn}, f.conn.log)
}

func (f *Forwarder) forward(w http.ResponseWriter, r *route.Request) {
	if err := f.Handle(w, r); err != nil {
		var coded *structs.CodedError
		if !errors.As(err, &coded) {
			err = structs.Errorf(structs.CodeInternal, "forward request: %w", err)
		}
		route.WriteError(w, err)
	}
}

// boundedWait is RoundTrip for requests whose senders would wait for ever.
type boundedWait struct{ conn *Conn }

func (b boundedWait) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), forwardWait)
	_, err := b.conn.wait(ctx)
	cancel()
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		if req.Context().Err() == nil {
			return nil, structs.Errorf(structs.CodeNoLeader, "No path to the servers: %w", err)
		}
		return nil, fmt.Errorf("forward request: %w", err)
	}
	return b.conn.RoundTrip(req)
}
