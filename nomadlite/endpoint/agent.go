package endpoint

import (
	"net/http"
	"slices"
	"time"

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

// maxWorkers bounds what one request can start.
const maxWorkers = 1024

// workerInfo is one scheduling worker as the public interface shows it.
type workerInfo struct {
	ID             string    `json:"id"`
	Enabled        []string  `json:"enabled_schedulers"`
	Started        time.Time `json:"started"`
	Status         string    `json:"status"`
	WorkloadStatus string    `json:"workload_status"`
}

func (b *Backend) listWorkers(w http.ResponseWriter, _ *route.Request, q *query) error {
	out := struct {
		ServerID   string       `json:"server_id"`
		Schedulers []workerInfo `json:"schedulers"`
	}{b.serverID(), []workerInfo{}}
	if b.Workers != nil {
		for _, s := range b.Workers.Workers() {
			doing := "WaitingToDequeue"
			if s.Busy {
				doing = "Scheduling"
			}
			out.Schedulers = append(out.Schedulers, workerInfo{s.ID, s.Types, s.Started, "Started", doing})
		}
	}
	return answer(w, q, out)
}

// workerConfig is how many workers a server has, and for what.
type workerConfig struct {
	ServerID string   `json:"server_id"`
	Num      int      `json:"num_schedulers"`
	Enabled  []string `json:"enabled_schedulers"`
}

func (b *Backend) workerConfig() workerConfig {
	out := workerConfig{ServerID: b.serverID(), Enabled: []string{}}
	if b.Workers != nil {
		out.Enabled, out.Num = b.Workers.Setting()
	}
	return out
}

func (b *Backend) readWorkerConfig(w http.ResponseWriter, _ *route.Request, q *query) error {
	return answer(w, q, b.workerConfig())
}

// writeWorkerConfig changes the workers until the server ends.
func (b *Backend) writeWorkerConfig(w http.ResponseWriter, r *route.Request, q *query) error {
	var want workerConfig
	if err := decode(r, &want); err != nil {
		return err
	}
	if want.Num < 0 || !slices.Contains(want.Enabled, structs.JobTypeCore) {
		return structs.Errorf(structs.CodeInvalid, "Invalid request")
	}
	if want.Num > maxWorkers {
		return structs.Errorf(structs.CodeInvalid, "num_schedulers must not be greater than %d", maxWorkers)
	}
	for _, name := range want.Enabled {
		switch name {
		case structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch, structs.JobTypeCore:
		default:
			return structs.Errorf(structs.CodeInvalid, "unknown scheduler %q", name)
		}
	}
	if b.Workers == nil {
		return structs.Errorf(structs.CodeInvalid, "this server has no scheduling workers")
	}
	b.Workers.Set(want.Enabled, want.Num)
	return answer(w, q, b.workerConfig())
}

// serverID is the id under which the other servers know this one.
func (b *Backend) serverID() string {
	if self := b.Cluster.Self(); self != nil && self.Tags["id"] != "" {
		return self.Tags["id"]
	}
	return b.Name
}
