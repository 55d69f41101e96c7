package nomadlite

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/cluster"
	"github.com/nomadlite/nomadlite/nomadlite/endpoint"
	"github.com/nomadlite/nomadlite/structs"
)

var _ endpoint.Cluster = (*Server)(nil)

// members is the membership, which exists once Run has opened the data directory.
type members struct {
	inner atomic.Pointer[cluster.Membership]
	self  *structs.AgentMember // until then
}

func (m *members) set(inner *cluster.Membership) { m.inner.Store(inner) }

// Addrs are host:port of 4647 of all servers that are alive.
func (m *members) Addrs() []string {
	if inner := m.inner.Load(); inner != nil {
		return inner.Addrs()
	}
	return nil
}

// Members are all known servers, this one included.
func (s *Server) Members() []*structs.AgentMember {
	if inner := s.members.inner.Load(); inner != nil {
		return inner.Members()
	}
	return []*structs.AgentMember{s.members.self}
}

// Self is this server as members are shown.
func (s *Server) Self() *structs.AgentMember {
	if inner := s.members.inner.Load(); inner != nil {
		return inner.Self()
	}
	return s.members.self
}

// Stats are the blocks of agent/self.
func (s *Server) Stats() map[string]map[string]string {
	out := map[string]map[string]string{
		"nomad": {
			"server": "true", "leader": strconv.FormatBool(s.lead.IsLeader()), "leader_addr": s.lead.LeaderAddr(),
			"bootstrap": strconv.FormatBool(s.cfg.BootstrapExpect == 1), "known_regions": "1",
		},
		"nomadlite": {"version": structs.Version, "uptime": time.Since(s.started).Round(time.Second).String()},
		"runtime": {
			"arch": runtime.GOARCH, "version": runtime.Version(), "kernel.name": runtime.GOOS,
			"max_procs": strconv.Itoa(runtime.GOMAXPROCS(0)), "goroutines": strconv.Itoa(runtime.NumGoroutine()),
			"cpu_count": strconv.Itoa(runtime.NumCPU()),
		},
		"broker": {},
	}
	refused := s.store.Stats()
	out["state"] = map[string]string{
		"refused_observations": strconv.FormatUint(refused.RefusedObservations, 10),
		"unknown_observations": strconv.FormatUint(refused.UnknownObservations, 10),
	}
	if log := s.lead.log(); log != nil {
		out["raft"] = maps.Clone(log.Stats())
	}
	for name, value := range s.evals.Stats() {
		out["broker"][name] = fmt.Sprint(value)
	}
	return out
}

// ForceGC collects garbage at once, thresholds ignored. Only the leader can.
func (s *Server) ForceGC(ctx context.Context) error { return s.garbage.Force(ctx) }

// Health says whether this server serves: it has caught up and knows a leader. reason is for people.
func (s *Server) Health() (ok bool, reason string) {
	select {
	case <-s.ready:
	default:
		return false, "state is not caught up yet"
	}
	if !s.lead.IsLeader() && s.lead.LeaderAddr() == "" {
		return false, structs.ErrNoLeader.Text
	}
	return true, "ok"
}
