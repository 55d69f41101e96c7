package endpoint

import (
	"net/http"
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// unsupported is the answer to what the public API has and this version does not do.
func unsupported(what string) error {
	return structs.Errorf(structs.CodeNotImplemented, "%s is not supported by this version of nomadlite", what)
}

// unsupportedPaths are those which answer 501, with what they are about. The methods are those of the public API, so
// that a wrong method answers 405 as everywhere.
var unsupportedPaths = []struct{ methods, path, what string }{
	{"GET PUT POST", "/v1/volumes", "a volume"},
	{"GET", "/v1/volumes/external", "a CSI volume"},
	{"GET PUT POST DELETE", "/v1/volumes/snapshot", "a CSI snapshot"},
	{"GET", "/v1/volumes/claims", "a host volume claim"},
	{"DELETE", "/v1/volumes/claim/{id}", "a host volume claim"},
	{"GET PUT DELETE", "/v1/volume/csi/{id}", "a CSI volume"},
	{"PUT", "/v1/volume/csi/{id}/create", "a CSI volume"},
	{"DELETE", "/v1/volume/csi/{id}/detach", "a CSI volume"},
	{"DELETE", "/v1/volume/csi/{id}/delete", "a CSI volume"},
	{"PUT POST", "/v1/volume/host/create", "a dynamic host volume"},
	{"PUT POST", "/v1/volume/host/register", "a dynamic host volume"},
	{"GET DELETE", "/v1/volume/host/{id}", "a dynamic host volume"},
	{"GET", "/v1/plugins", "a CSI plugin"},
	{"GET", "/v1/plugin/csi/{id}", "a CSI plugin"},
	{"GET", "/v1/client/identity", "a node identity"},
	{"PUT POST", "/v1/client/identity/renew", "a node identity"},
	{"PUT POST", "/v1/agent/join", "joining servers by gossip"},
	{"PUT POST", "/v1/agent/force-leave", "removing servers by gossip"},
	{"PUT POST", "/v1/agent/servers", "changing a client's servers"},
	{"GET", "/v1/agent/host", "host data for support"},
	{"PUT POST", "/v1/agent/reload", "a reload by the API"},
	{"GET", "/v1/agent/monitor", "a stream of the agent's log"},
	{"GET", "/v1/agent/monitor/export", "an export of the agent's log"},
	{"GET", "/v1/agent/pprof/{profile}", "a profile by the API"},
	{"GET", "/v1/agent/keyring/list", "the gossip keyring"},
	{"PUT POST", "/v1/agent/keyring/install", "the gossip keyring"},
	{"PUT POST", "/v1/agent/keyring/use", "the gossip keyring"},
	{"PUT POST", "/v1/agent/keyring/remove", "the gossip keyring"},
	{"DELETE", "/v1/operator/raft/peer", "removing a raft peer"},
	{"PUT POST", "/v1/operator/raft/transfer-leadership", "a transfer of leadership"},
	{"GET PUT", "/v1/operator/autopilot/configuration", "autopilot"},
	{"GET", "/v1/operator/autopilot/health", "autopilot"},
	{"GET", "/v1/operator/upgrade-check/vault-workload-identity", "an upgrade check for Vault"},
	{"GET", "/v1/event/stream", "the event stream"},
	{"GET", "/v1/vars", "a variable"},
	{"GET PUT POST DELETE", "/v1/var/{path...}", "a variable"},
}

// enterprisePaths are those of the public API's enterprise edition.
var enterprisePaths = []struct{ methods, path string }{
	{"PUT", "/v1/operator/license"},
	{"POST", "/v1/operator/utilization"},
	{"GET", "/v1/sentinel/policies"},
	{"GET PUT POST DELETE", "/v1/sentinel/policy/{name}"},
	{"GET", "/v1/quotas"},
	{"GET", "/v1/quota-usages"},
	{"PUT POST", "/v1/quota"},
	{"GET PUT POST DELETE", "/v1/quota/{name}"},
	{"GET", "/v1/quota/usage/{name}"},
	{"PUT POST", "/v1/recommendation"},
	{"GET DELETE", "/v1/recommendations"},
	{"PUT POST", "/v1/recommendations/apply"},
	{"GET", "/v1/recommendation/{id}"},
}

func unsupportedRoutes(b *Backend) []route.Route {
	var rows []route.Route
	add := func(methods, path string, servedBy route.ServedBy, handle route.Handler) {
		rows = append(rows, route.Route{
			Methods: strings.Fields(methods), Path: path, ServedBy: servedBy, Callers: route.Public, Handle: handle,
		})
	}
	for _, row := range unsupportedPaths {
		add(row.methods, row.path, route.Leader, b.handler(func(_ http.ResponseWriter, r *route.Request, q *query) error {
			if err := b.knownObjects(r, q); err != nil {
				return err
			}
			return unsupported(row.what)
		}))
	}
	for _, row := range enterprisePaths {
		add(row.methods, row.path, route.Any, func(http.ResponseWriter, *route.Request) error {
			return structs.Errorf(structs.CodeNotImplemented, "Nomad Enterprise only endpoint")
		})
	}
	return rows
}

// knownObjects answers 404 when the path, or the parameter of a raft peer, names what is not there: that is so
// whatever could be done with it.
func (b *Backend) knownObjects(r *route.Request, q *query) error {
	if id := r.Param("job_id"); id != "" && b.Store.Job(nil, q.namespace, id) == nil {
		return notFound("job")
	}
	if id := r.Param("deployment_id"); id != "" && b.Store.Deployment(nil, id) == nil {
		return notFound("deployment")
	}
	if r.URL.Path == "/v1/operator/raft/peer" {
		id := q.values.Get("id")
		if id != "" && !slices.ContainsFunc(b.raftServers(), func(s raftServer) bool { return s.ID == id }) {
			return structs.Errorf(structs.CodeNotFound, "id %q was not found in the Raft configuration", id)
		}
	}
	return nil
}
