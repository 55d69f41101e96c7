package endpoint

import (
	"net"
	"net/http"
	"strconv"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func operatorRoutes(b *Backend) []route.Route {
	return []route.Route{
		read("/v1/operator/raft/configuration", b.handler(b.readRaftConfiguration)),
		read("/v1/operator/scheduler/configuration", b.handler(b.readSchedulerConfiguration)),
		write("/v1/operator/scheduler/configuration", b.handler(b.writeSchedulerConfiguration)),
		local("/v1/operator/license", func(w http.ResponseWriter, _ *route.Request) error {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}),
	}
}

// raftServer is one peer as the public API shows it.
type raftServer struct {
	ID           string
	Node         string
	Address      string
	Leader       bool
	Voter        bool
	RaftProtocol string
}

func (b *Backend) readRaftConfiguration(w http.ResponseWriter, _ *route.Request, q *query) error {
	return answer(w, q, struct {
		Servers []raftServer
		Index   uint64
	}{b.raftServers(), b.Store.Index()})
}

// raftServers are raft's peers with what membership knows of them.
func (b *Backend) raftServers() []raftServer {
	members := map[string]*structs.AgentMember{}
	for _, member := range b.Cluster.Members() {
		port := member.Tags["port"]
		if port == "" {
			port = strconv.Itoa(int(member.Port))
		}
		members[net.JoinHostPort(member.Addr, port)] = member
		if addr := member.Tags["rpc_addr"]; addr != "" {
			members[net.JoinHostPort(addr, port)] = member
		}
	}
	leader := b.Raft.LeaderAddr()
	servers := []raftServer{}
	for _, addr := range b.Raft.Peers() {
		server := raftServer{ID: addr, Node: "(unknown)", Address: addr, Leader: addr == leader, Voter: true, RaftProtocol: "3"}
		if member := members[addr]; member != nil {
			server.Node = member.Name
			if id := member.Tags["id"]; id != "" {
				server.ID = id
			}
		}
		servers = append(servers, server)
	}
	return servers
}

func (b *Backend) readSchedulerConfiguration(w http.ResponseWriter, r *route.Request, q *query) error {
	var cfg *structs.SchedulerConfiguration
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		cfg = snap.SchedulerConfig(ws)
		return cfg.ModifyIndex
	})
	if err != nil {
		return err
	}
	return answer(w, q, struct {
		structs.SchedulerConfigurationResponse
		Index       uint64
		KnownLeader bool
		LastContact int64
		NextToken   string
	}{
		SchedulerConfigurationResponse: structs.SchedulerConfigurationResponse{SchedulerConfig: cfg},
		Index:                          cfg.ModifyIndex,
		KnownLeader:                    b.Raft.LeaderAddr() != "",
		LastContact:                    b.Raft.LastContact().Milliseconds(),
	})
}

func (b *Backend) writeSchedulerConfiguration(w http.ResponseWriter, r *route.Request, q *query) error {
	var cfg structs.SchedulerConfiguration
	if err := decode(r, &cfg); err != nil {
		return err
	}
	if cfg.SchedulerAlgorithm == "" {
		cfg.SchedulerAlgorithm = "binpack"
	}
	if err := checkAlgorithm(cfg.SchedulerAlgorithm); err != nil {
		return err
	}
	cmd := &fsm.SchedulerConfig{Config: &cfg, CAS: q.values.Has("cas")}
	if cmd.CAS {
		var err error
		if cfg.ModifyIndex, err = q.unsigned("cas"); err != nil {
			return err
		}
	}
	resp, index, err := b.apply(r.Context(), fsm.KindSchedulerConfig, cmd)
	if err != nil {
		return err
	}
	result, ok := resp.(fsm.SchedulerConfigResult)
	return answerWrite(w, q, index, struct {
		structs.SchedulerSetConfigurationResponse
		Index uint64
	}{structs.SchedulerSetConfigurationResponse{Updated: result.Updated || !ok}, index})
}

func checkAlgorithm(name string) error {
	if name != "binpack" && name != "spread" {
		return structs.Errorf(structs.CodeInvalid, "invalid scheduler algorithm %q: expected \"binpack\" or \"spread\"",
			name)
	}
	return nil
}
