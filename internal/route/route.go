// Package route is the one table of HTTP routes between processes: each row says which method and path it answers,
// who serves it and who may call it. Three muxes (public port, node session, server session) are built from the same
// table, default deny. Handlers contain no forwarding: the mux asks a Forwarder when the row is served elsewhere.
package route

import (
	"net/http"
)

// ServedBy says which process answers a route.
type ServedBy uint8

// Local routes are answered by the agent that was asked, Any by any server, Leader by the leading server (a GET with
// ?stale by any server), Node by the node which NodeOf names.
const (
	Local ServedBy = iota
	Any
	Leader
	Node
)

// Callers is the set of those who may call a route.
type Callers uint8

// Public is the HTTP port, NodeSession an authenticated node, ServerSession an authenticated server. A public route is
// open to the other two as well.
const (
	Public Callers = 1 << iota
	NodeSession
	ServerSession
)

// Identity says who sent a request. It is set by the mux from the connection, never from what the sender wrote.
type Identity struct {
	Kind   Callers
	NodeID string // of a node session; proven once the node has registered, until then only claimed
	Server string // raft id of a server session
	Addr   string // host:port of the first sender, as far as it is known
	Hops   int    // how often the request was forwarded
}

// Request is one call of a route.
type Request struct {
	*http.Request
	Params map[string]string // path parameters, unescaped
	Caller Identity
}

// Param gives a path parameter.
func (r *Request) Param(name string) string { return r.Params[name] }

// Handler answers a route. A returned error is written by the mux as text/plain with the status of its
// structs.Code; a handler that has begun to write its answer returns nil and logs itself.
type Handler func(w http.ResponseWriter, r *Request) error

// Route is one row of the table.
type Route struct {
	Methods  []string // empty: any method
	Path     string   // "/v1/job/{job_id}/allocations"; a job_id parameter may itself contain slashes
	ServedBy ServedBy
	Callers  Callers
	// NodeOf finds the node which serves the request (ServedBy Node); it may look at state.
	NodeOf func(r *Request) (nodeID string, err error)
	Handle Handler
	// MaxBody bounds the request's body in bytes: 0 is the mux's limit, negative is none.
	MaxBody int64
	// Stream marks answers which are never compressed, such as followed logs and events.
	Stream bool
	// WebSocket marks rows whose handler upgrades to a websocket, with Upgrade. What fails before is told by closing one,
	// since clients of websockets see no other answer; pages of other origins are refused on the public port.
	WebSocket bool
}

// Forwarder takes a request to the process which serves it. It streams both bodies, passes upgrades through, never
// replays a non-GET once bytes were sent, and counts hops.
type Forwarder interface {
	// ToLeader forwards unless this process is the leader: then it returns false and writes nothing.
	ToLeader(w http.ResponseWriter, r *Request) bool
	// ToNode forwards unless nodeID is this very process: then it returns false and writes nothing.
	ToNode(w http.ResponseWriter, r *Request, nodeID string) bool
}
