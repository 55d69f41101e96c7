package nomadlite

import (
	"net/http"
	"sync/atomic"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/session"
	"github.com/nomadlite/nomadlite/structs"
)

// forwarder is the session forwarder, which exists once Run has opened the port.
type forwarder struct {
	inner atomic.Pointer[session.Forwarder]
}

var _ route.Forwarder = (*forwarder)(nil)

func (f *forwarder) set(inner *session.Forwarder) { f.inner.Store(inner) }

// ToLeader forwards unless this server leads.
func (f *forwarder) ToLeader(w http.ResponseWriter, r *route.Request) bool {
	if inner := f.inner.Load(); inner != nil {
		return inner.ToLeader(w, r)
	}
	route.WriteError(w, structs.ErrNoLeader)
	return true
}

// ToNode forwards to the server or node which can reach nodeID.
func (f *forwarder) ToNode(w http.ResponseWriter, r *route.Request, nodeID string) bool {
	if inner := f.inner.Load(); inner != nil {
		return inner.ToNode(w, r, nodeID)
	}
	route.WriteError(w, structs.ErrNoNodeConn)
	return true
}

// Do sends a request of this server's own to the leader.
func (f *forwarder) Do(req *http.Request) (*http.Response, error) {
	if inner := f.inner.Load(); inner != nil {
		return inner.Do(req)
	}
	return nil, structs.ErrNoLeader
}
