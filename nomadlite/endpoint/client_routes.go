package endpoint

import (
	"net/http"
	"strings"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// clientRoutes are the rows which only a node can answer: the mux takes them to the node that NodeOf finds. They have no
// handler here.
func clientRoutes(b *Backend) []route.Route {
	var rows []route.Route
	add := func(nodeOf func(*route.Request) (string, error), methods []string, paths ...string) {
		for _, path := range paths {
			rows = append(rows, route.Route{Methods: methods, Path: path, ServedBy: route.Node, Callers: route.Public,
				NodeOf: nodeOf, Handle: noNode})
		}
	}
	get := []string{http.MethodGet}
	add(b.NodeOfAlloc, get, "/v1/client/fs/ls/{alloc_id}", "/v1/client/fs/stat/{alloc_id}", "/v1/client/fs/readat/{alloc_id}",
		"/v1/client/fs/cat/{alloc_id}", "/v1/client/fs/stream/{alloc_id}", "/v1/client/fs/logs/{alloc_id}",
		"/v1/client/allocation/{alloc_id}/stats", "/v1/client/allocation/{alloc_id}/checks", "/v1/allocation/{alloc_id}/checks")
	add(b.NodeOfAlloc, []string{http.MethodPut, http.MethodPost},
		"/v1/client/allocation/{alloc_id}/restart", "/v1/client/allocation/{alloc_id}/signal")
	add(b.NodeOfAlloc, []string{http.MethodGet, http.MethodPut, http.MethodPost}, "/v1/client/allocation/{alloc_id}/gc")
	rows = append(rows,
		route.Route{Methods: get, Path: "/v1/client/allocation/{alloc_id}/exec", ServedBy: route.Node, Callers: route.Public,
			NodeOf: b.NodeOfAlloc, Handle: noNodeFor(b.NodeOfAlloc), WebSocket: true},
		route.Route{Methods: get, Path: "/v1/job/{job_id}/action", ServedBy: route.Node, Callers: route.Public,
			NodeOf: b.nodeOfAction, Handle: noNodeFor(b.nodeOfAction), WebSocket: true})
	add(b.NodeOfParam, get, "/v1/client/stats", "/v1/client/gc")
	add(b.NodeOfBody, []string{http.MethodGet, http.MethodPut, http.MethodPost}, "/v1/client/metadata")

	for _, row := range []struct{ methods, path, what string }{
		{"GET", "/v1/client/allocation/{alloc_id}/snapshot", "a snapshot of an allocation's disk"},
		{"GET PUT POST", "/v1/client/allocation/{alloc_id}/pause", "a task schedule"},
	} {
		rows = append(rows, route.Route{Methods: strings.Fields(row.methods), Path: row.path, ServedBy: route.Leader,
			Callers: route.Public, Handle: func(_ http.ResponseWriter, r *route.Request) error {
				if _, err := b.NodeOfAlloc(r); err != nil {
					return err
				}
				return unsupported(row.what)
			}})
	}
	return rows
}

// noNode answers a request that names no node on an agent which is none itself.
func noNode(http.ResponseWriter, *route.Request) error {
	return structs.Errorf(structs.CodeInvalid, "this agent runs no client: name a node with the parameter node_id")
}

// noNodeFor says first what is wrong with what the request names.
func noNodeFor(nodeOf func(*route.Request) (string, error)) route.Handler {
	return func(w http.ResponseWriter, r *route.Request) error {
		if _, err := nodeOf(r); err != nil {
			return err
		}
		return noNode(w, r)
	}
}
