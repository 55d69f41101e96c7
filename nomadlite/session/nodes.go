package session

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/nomadlite/nomadlite/internal/route"
	wire "github.com/nomadlite/nomadlite/internal/session"
	"github.com/nomadlite/nomadlite/structs"
)

// Nodes knows the sessions of the nodes that are connected to this server, and remembers which other server holds
// those that are not.
type Nodes struct {
	port     *Port
	mu       sync.Mutex
	sessions map[string][]*nodeSession // newest first; several only while a node is unknown
	holders  map[string]string         // node -> server which had its session when it was asked last
}

// nodeSession is a node's session with the secret that it introduced itself with.
type nodeSession struct {
	*wire.Session
	nodeID, secret string
}

// add takes the place of the node's earlier session, which the node has left.
func (n *Nodes) add(s *nodeSession) {
	n.mu.Lock()
	list := []*nodeSession{s}
	var left []*nodeSession
	for _, old := range n.sessions[s.nodeID] {
		if sameSecret(old.secret, s.secret) {
			left = append(left, old)
		} else {
			list = append(list, old)
		}
	}
	n.sessions[s.nodeID] = list
	delete(n.holders, s.nodeID)
	n.mu.Unlock()
	for _, old := range left {
		_ = old.Close()
	}
}

func (n *Nodes) remove(s *nodeSession) {
	n.mu.Lock()
	defer n.mu.Unlock()
	// A copy: Local may be looking at the list.
	rest := slices.DeleteFunc(slices.Clone(n.sessions[s.nodeID]), func(other *nodeSession) bool { return other == s })
	if len(rest) == 0 {
		delete(n.sessions, s.nodeID)
		return
	}
	n.sessions[s.nodeID] = rest
}

// Count is the number of nodes connected to this server.
func (n *Nodes) Count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.sessions)
}

// Local gives the session of a node that is connected to this server and proved the secret which it registered with.
// Sessions that proved another one, from before the registration, end here.
func (n *Nodes) Local(nodeID string) (*wire.Session, bool) {
	n.mu.Lock()
	list := n.sessions[nodeID]
	n.mu.Unlock()
	if len(list) == 0 {
		return nil, false
	}
	secret, known := n.port.cfg.NodeSecret(nodeID)
	if !known {
		return nil, false
	}
	var found *wire.Session
	for _, s := range list {
		if !sameSecret(secret, s.secret) {
			_ = s.Close()
			continue
		}
		select {
		case <-s.Done():
		default:
			found = s.Session
		}
	}
	return found, found != nil
}

// Disconnect ends a node's sessions here, if there are any.
func (n *Nodes) Disconnect(nodeID string) {
	n.mu.Lock()
	list := n.sessions[nodeID]
	n.mu.Unlock()
	for _, s := range list {
		_ = s.Close()
	}
}

func sameSecret(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

const holdsPath = "/v1/internal/session/node/"

// Routes are what servers ask each other about sessions.
func (n *Nodes) Routes() []route.Route {
	return []route.Route{{
		Methods: []string{http.MethodGet}, Path: holdsPath + "{node_id}", ServedBy: route.Local,
		Callers: route.ServerSession,
		Handle: func(w http.ResponseWriter, r *route.Request) error {
			if _, ok := n.Local(r.Param("node_id")); !ok {
				return errNoPath()
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		},
	}}
}

// errNoPath is how the public API says that a node cannot be reached.
func errNoPath() error {
	return &structs.CodedError{Code: structs.CodeNotFound, Text: "No path to node", Err: structs.ErrNoNodeConn}
}

// holder finds the server which has a node's session: first the one that had it last, then all peers at once.
func (n *Nodes) holder(ctx context.Context, nodeID string, peers []string) (string, error) {
	n.mu.Lock()
	last := n.holders[nodeID]
	n.mu.Unlock()
	if last != "" && n.ask(ctx, last, nodeID) == nil {
		return last, nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.port.cfg.DialTimeout)
	defer cancel()
	type reply struct {
		addr string
		err  error
	}
	replies := make(chan reply, len(peers))
	asked := 0
	for _, addr := range peers {
		if addr == n.port.Addr() || addr == last {
			continue
		}
		asked++
		go func() { replies <- reply{addr, n.ask(ctx, addr, nodeID)} }()
	}
	found := ""
	for range asked {
		if r := <-replies; r.err == nil && found == "" {
			found = r.addr
			cancel() // the others need not answer any more
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if found == "" {
		delete(n.holders, nodeID)
		return "", errNoPath()
	}
	n.holders[nodeID] = found
	return found, nil
}

// ask gives nil when the server at addr has the node's session.
func (n *Nodes) ask(ctx context.Context, addr, nodeID string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, holdsPath+url.PathEscape(nodeID), nil)
	if err != nil {
		return fmt.Errorf("ask for node: %w", err)
	}
	res, err := n.port.Peer(addr).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("ask for node: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 4096))
		return errNoPath()
	}
	return nil
}
