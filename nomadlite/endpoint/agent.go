package endpoint

import (
	"net/http"
	"slices"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

func agentRoutes(b *Backend) []route.Route {
	return []route.Route{
		local("/v1/agent/members", b.handler(b.listMembers)),
		local("/v1/agent/servers", b.handler(b.listServers)),
		local("/v1/agent/schedulers", b.handler(b.listWorkers)),
		local("/v1/agent/schedulers/config", b.handler(b.readWorkerConfig)),
		{
			Methods: []string{http.MethodPut, http.MethodPost}, Path: "/v1/agent/schedulers/config", ServedBy: route.Any,
			Callers: route.Public, Handle: b.handler(b.writeWorkerConfig),
		},
	}
}

func (b *Backend) listMembers(w http.ResponseWriter, _ *route.Request, q *query) error {
	name := b.Name
	if self := b.Cluster.Self(); self != nil {
		name = self.Name
	}
	return answer(w, q, structs.ServerMembers{
		ServerName:   name,
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

// workerConfig is how many workers a server has, and for what.
type workerConfig struct {
	ServerID string   `json:"server_id"`
	Num      int      `json:"num_schedulers"`
	Enabled  []string `json:"enabled_schedulers"`
}

func (b *Backend) workerConfig() workerConfig {
	workers := b.workers()
	out := workerConfig{ServerID: b.serverID(), Num: len(workers), Enabled: []string{}}
	if len(workers) > 0 {
		out.Enabled = workers[0].EnabledSchedulers
	}
	return out
}

func (b *Backend) readWorkerConfig(w http.ResponseWriter, _ *route.Request, q *query) error {
	return answer(w, q, b.workerConfig())
}

// writeWorkerConfig accepts what is so already. The number of workers does not change while a server runs.
func (b *Backend) writeWorkerConfig(w http.ResponseWriter, r *route.Request, q *query) error {
	var want workerConfig
	if err := decode(r, &want); err != nil {
		return err
	}
	if want.Num < 0 || !slices.Contains(want.Enabled, structs.JobTypeCore) {
		return structs.Errorf(structs.CodeInvalid, "Invalid request")
	}
	now := b.workerConfig()
	slices.Sort(want.Enabled)
	if want.Num != now.Num || !slices.Equal(want.Enabled, slices.Sorted(slices.Values(now.Enabled))) {
		return unsupported("changing the scheduling workers of a running server")
	}
	return answer(w, q, now)
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
