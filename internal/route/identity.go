package route

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// MaxHops is how often a request may be forwarded.
const MaxHops = 3

// The headers in which a server tells another whom it forwards for. Every entry strips them; only a server session's
// are honoured.
const (
	identityPrefix = "X-Nomadlite-Caller-"
	headerKind     = identityPrefix + "Kind"
	headerNode     = identityPrefix + "Node"
	headerHops     = identityPrefix + "Hops"
	headerAddr     = identityPrefix + "Addr"
)

var kindNames = map[Callers]string{Public: "public", NodeSession: "node", ServerSession: "server"}

// take removes the identity headers from h and gives the caller: the connection's own identity, or, when a server
// forwards, that of the first sender.
func take(h http.Header, conn Identity) (Identity, error) {
	kind, node, hops, addr := h.Get(headerKind), h.Get(headerNode), h.Get(headerHops), h.Get(headerAddr)
	for name := range h {
		if strings.HasPrefix(name, identityPrefix) {
			delete(h, name)
		}
	}
	if conn.Kind == NodeSession && hops != "" {
		// A node's agent forwards for its public port: whoever asked there may not what the node itself may.
		n, err := parseHops(hops)
		if kind == kindNames[Public] {
			conn = Identity{Kind: Public, Addr: conn.Addr}
		}
		conn.Hops = n
		return conn, err
	}
	if conn.Kind != ServerSession || kind == "" {
		return conn, nil
	}
	id := Identity{Addr: addr, Server: conn.Server}
	for k, name := range kindNames {
		if name == kind {
			id.Kind = k
		}
	}
	if id.Kind == 0 {
		return id, structs.Errorf(structs.CodeInvalid, "unknown kind of caller %q", kind)
	}
	if id.Kind == NodeSession {
		id.NodeID = node
	}
	n, err := parseHops(hops)
	id.Hops = n
	return id, err
}

func parseHops(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, structs.Errorf(structs.CodeInvalid, "invalid hop count %q", s)
	}
	if n > MaxHops {
		return n, structs.Errorf(structs.CodeInternal, "request was forwarded more than %d times", MaxHops)
	}
	return n, nil
}

// Forward writes caller into the headers of a request that is about to be forwarded, one hop further on. Forwarders
// call it on the outgoing request only.
func Forward(h http.Header, caller Identity) {
	for name := range h {
		if strings.HasPrefix(name, identityPrefix) {
			delete(h, name)
		}
	}
	h.Set(headerKind, kindNames[caller.Kind])
	h.Set(headerHops, strconv.Itoa(caller.Hops+1))
	if caller.NodeID != "" {
		h.Set(headerNode, caller.NodeID)
	}
	if caller.Addr != "" {
		h.Set(headerAddr, caller.Addr)
	}
}
