package endpoint

import (
	"net/http"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

func agentRoutes(b *Backend) []route.Route {
	return []route.Route{
		local("/v1/agent/members", b.handler(b.listMembers)),
		local("/v1/agent/servers", b.handler(b.listServers)),
		local("/v1/agent/schedulers", b.handler(b.listWorkers)),
		local("/v1/agent/schedulers/config", b.handler(b.readWorkerConfig)),
	}
}

func (b *Backend) listMembers(w http.ResponseWriter, _ *route.Request, q *query) error {
	return answer(w, q, structs.ServerMembers{
		ServerName:   b.Name,
		ServerRegion: b.Region,
		ServerDC:     b.Datacenter,
		Members:      b.Cluster.Members(),
	})
}

func (b *Backend) listServers(w http.ResponseWriter, _ *route.Request, q *query) error {
	servers := []string{}
	if b.Servers != nil {
		servers = append(servers, b.Servers()...)
	}
	return answer(w, q, servers)
}

func (b *Backend) listWorkers(w http.ResponseWriter, _ *route.Request, q *query) error {
	return answer(w, q, struct {
		ServerID   string       `json:"server_id"`
		Schedulers []WorkerInfo `json:"schedulers"`
	}{b.serverID(), b.workers()})
}

func (b *Backend) readWorkerConfig(w http.ResponseWriter, _ *route.Request, q *query) error {
	workers := b.workers()
	enabled := []string{}
	if len(workers) > 0 {
		enabled = workers[0].EnabledSchedulers
	}
	return answer(w, q, struct {
		ServerID string   `json:"server_id"`
		Num      int      `json:"num_schedulers"`
		Enabled  []string `json:"enabled_schedulers"`
	}{b.serverID(), len(workers), enabled})
}

func (b *Backend) workers() []WorkerInfo {
	if b.Workers == nil {
		return []WorkerInfo{}
	}
	return b.Workers()
}

// serverID is the id under which the other servers know this one.
func (b *Backend) serverID() string {
	if self := b.Cluster.Self(); self != nil && self.Tags["id"] != "" {
		return self.Tags["id"]
	}
	return b.Name
}
