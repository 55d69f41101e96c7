package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/internal/route"
	wire "github.com/nomadlite/nomadlite/internal/session"
	"github.com/nomadlite/nomadlite/structs"
)

// leaderWait bounds how long a request waits for a leader during an election.
const leaderWait = 5 * time.Second

// Leadership is what forwarding needs to know of raft.
type Leadership interface {
	// IsLeader says whether this server leads and has caught up.
	IsLeader() bool
	// LeaderAddr is the leader's host:port of 4647, empty when none is known.
	LeaderAddr() string
	// LeaderChanged gives a channel which is closed when what IsLeader or LeaderAddr say changes next.
	LeaderChanged() <-chan struct{}
	// Peers are host:port of all servers.
	Peers() []string
}

// Forwarder takes requests to the leader and to nodes. It is a route.Forwarder.
type Forwarder struct {
	port *Port
	lead Leadership
	log  hclog.Logger
	wait time.Duration
}

var _ route.Forwarder = (*Forwarder)(nil)

// NewForwarder makes the forwarder of a server.
func NewForwarder(port *Port, lead Leadership) *Forwarder {
	return &Forwarder{port: port, lead: lead, log: port.log, wait: leaderWait}
}

// ToLeader forwards a request unless this server leads. When no leader is known it waits up to 5 s for one, then
// answers structs.ErrNoLeader.
func (f *Forwarder) ToLeader(w http.ResponseWriter, r *route.Request) bool {
	if f.lead.IsLeader() {
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), f.wait)
	defer cancel()
	tripper := &leaderTripper{f: f, ctx: ctx}
	err := f.proxy(w, r, tripper)
	if errors.Is(err, ErrIsLeader) {
		return false
	}
	f.answer(w, err)
	return true
}

// ErrIsLeader says that this server leads, so that nothing needs forwarding.
var ErrIsLeader = errors.New("this server leads")

// errLost answers a request that was sent to a leader which was lost before it answered.
func errLost() error {
	return &structs.CodedError{Code: structs.CodeNoLeader, Err: structs.ErrNoLeader,
		Text: "No cluster leader: the leader was lost while the request was under way, it may have been carried out or not"}
}

// errSuperseded is the cause with which a request to a former leader ends.
var errSuperseded = errors.New("another server leads now")

// leaderTripper finds the leader and sends the request to it. As long as nothing was sent it goes on with whoever
// leads next; so it does with a read that the leader did not answer before it was lost or another one led.
type leaderTripper struct {
	f   *Forwarder
	ctx context.Context // bounds the first search, not the request
}

func (t *leaderTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	lead, search := t.f.lead, t.ctx
	repeatable := (req.Method == http.MethodGet || req.Method == http.MethodHead) &&
		(req.Body == nil || req.Body == http.NoBody) && req.Header.Get("Upgrade") == ""
	for backoff := 50 * time.Millisecond; ; backoff *= 2 {
		changed := lead.LeaderChanged()
		if lead.IsLeader() {
			return nil, ErrIsLeader
		}
		var err error = structs.ErrNoLeader
		if addr := lead.LeaderAddr(); addr != "" && addr != t.f.port.Addr() {
			var res *http.Response
			began := time.Now()
			res, err = t.attempt(search, req, addr, repeatable)
			switch {
			case err == nil || req.Context().Err() != nil:
				return res, err
			case !errors.Is(err, wire.ErrNotSent) && !repeatable:
				t.f.log.Warn("lost the leader while a request was under way", "leader", addr, "path", req.URL.Path, "error", err)
				return nil, errLost()
			}
			t.f.log.Debug("could not reach the leader", "leader", addr, "error", err)
			if time.Since(began) > t.f.wait { // it was sent, and took the time for a search with it
				var cancel context.CancelFunc
				search, cancel = context.WithTimeout(req.Context(), t.f.wait)
				defer cancel()
			}
		}
		var again <-chan time.Time
		if !errors.Is(err, structs.ErrNoLeader) {
			again = time.After(backoff) // the same leader may only have lost this connection
		}
		select {
		case <-changed:
		case <-again:
		case <-search.Done():
			return nil, structs.ErrNoLeader
		}
	}
}

// attempt sends the request to the leader at addr and gives it up when another server leads: a leader that hangs would be
// waited for until its connection is found dead. A write gets some time more for its answer, since it is not sent again.
// search bounds how long a connection may take.
func (t *leaderTripper) attempt(search context.Context, req *http.Request, addr string, repeatable bool) (*http.Response, error) {
	ctx, give := context.WithCancelCause(req.Context()) // an answer is read under it, so it ends with the request's
	answered := make(chan struct{})
	defer close(answered)
	go func() { // ends with this attempt
		for t.f.lead.LeaderAddr() == addr || t.f.lead.LeaderAddr() == "" {
			changed := t.f.lead.LeaderChanged()
			if now := t.f.lead.LeaderAddr(); now != addr && now != "" {
				break
			}
			select {
			case <-changed:
			case <-answered:
				return
			}
		}
		if !repeatable {
			last := time.NewTimer(t.f.wait)
			defer last.Stop()
			select {
			case <-last.C:
			case <-answered:
				return
			}
		}
		give(errSuperseded)
	}()
	res, err := t.send(search, req.WithContext(ctx), addr)
	if err != nil && req.Context().Err() == nil && context.Cause(ctx) != nil {
		err = errSuperseded
	}
	return res, err
}

func (t *leaderTripper) send(search context.Context, req *http.Request, addr string) (*http.Response, error) {
	s, err := t.f.port.peers.get(search, addr)
	if err != nil {
		return nil, err
	}
	return s.RoundTrip(keepBody(req))
}

// keepBody lets a request that was not sent be sent elsewhere: a transport closes the body even then.
func keepBody(req *http.Request) *http.Request {
	if req.Body == nil || req.Body == http.NoBody {
		return req
	}
	out := *req
	out.Body = io.NopCloser(req.Body)
	return &out
}

// ToNode forwards a request to a node, over its session with this server or with another one.
func (f *Forwarder) ToNode(w http.ResponseWriter, r *route.Request, nodeID string) bool {
	if _, known := f.port.cfg.NodeSecret(nodeID); !known {
		f.answer(w, structs.Errorf(structs.CodeNotFound, "Unknown node %q", nodeID))
		return true
	}
	f.answer(w, f.toNode(w, r, nodeID))
	return true
}

func (f *Forwarder) toNode(w http.ResponseWriter, r *route.Request, nodeID string) error {
	if s, ok := f.port.nodes.Local(nodeID); ok {
		return f.proxy(w, r, s)
	}
	if r.Caller.Server != "" {
		return errNoPath() // another server asked here because the node was here
	}
	addr, err := f.port.nodes.holder(r.Context(), nodeID, f.lead.Peers())
	if err != nil {
		return err
	}
	return f.proxy(w, r, f.port.Peer(addr))
}

func (f *Forwarder) proxy(w http.ResponseWriter, r *route.Request, rt http.RoundTripper) error {
	return route.Proxy(w, r, rt, f.log)
}

// answer tells why nothing could be forwarded. It is called only when no answer has begun.
func (f *Forwarder) answer(w http.ResponseWriter, err error) {
	if err == nil {
		return
	}
	var coded *structs.CodedError
	if !errors.As(err, &coded) {
		err = structs.Errorf(structs.CodeInternal, "forward request: %w", err)
	}
	route.WriteError(w, err)
}

// Do sends a request of this server's own to the leader; it waits for one as ToLeader does. When this server leads
// the error is session.ErrIsLeader.
func (f *Forwarder) Do(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), f.wait)
	defer cancel()
	res, err := (&leaderTripper{f: f, ctx: ctx}).RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("ask leader: %w", err)
	}
	return res, nil
}
