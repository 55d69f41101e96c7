package agent

import (
	"strconv"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite"
	"github.com/nomadlite/nomadlite/nomadlite/endpoint"
	"github.com/nomadlite/nomadlite/structs"
)

// server reads the server block.
func (r *resolver) server(s *Settings) *nomadlite.Config {
	in := r.c.Server
	if in == nil {
		in = &ServerConfig{}
	}
	var address, told *string
	var port *int
	if r.c.Addresses != nil {
		address = r.c.Addresses.RPC
	}
	if r.c.Ports != nil {
		port = r.c.Ports.RPC
	}
	if r.c.Advertise != nil {
		told = r.c.Advertise.RPC
	}
	listen := r.listen(address, port, 4647)
	out := &nomadlite.Config{
		Name: r.name(), Region: r.region(), Datacenter: r.datacenter(), DataDir: s.DataDir, DevMode: r.dev,
		RPCAddr: listen, RPCAdvertise: nomadlite.Advertised(structs.Val(told), listen), HTTPAdvertise: s.HTTPAdvertise,
		BootstrapExpect: structs.Val(in.BootstrapExpect), EncryptKey: structs.Val(in.Encrypt),
		NumSchedulers: in.NumSchedulers, EnabledSchedulers: in.EnabledSchedulers,
		MinHeartbeatTTL:        r.duration("server.min_heartbeat_ttl", in.MinHeartbeatTTL),
		MaxHeartbeatsPerSecond: structs.Val(in.MaxHeartbeatsPerSecond),
		HeartbeatGrace:         r.duration("server.heartbeat_grace", in.HeartbeatGrace),
		FailoverHeartbeatTTL:   r.duration("server.failover_heartbeat_ttl", in.FailoverHeartbeatTTL),
		JobGCInterval:          r.duration("server.job_gc_interval", in.JobGCInterval),
		JobGCThreshold:         r.duration("server.job_gc_threshold", in.JobGCThreshold),
		EvalGCThreshold:        r.duration("server.eval_gc_threshold", in.EvalGCThreshold),
		BatchEvalGCThreshold:   r.duration("server.batch_eval_gc_threshold", in.BatchEvalGCThreshold),
		NodeGCThreshold:        r.duration("server.node_gc_threshold", in.NodeGCThreshold),
		DeploymentGCThreshold:  r.duration("server.deployment_gc_threshold", in.DeploymentGCThreshold),
		RaftMultiplier:         structs.Val(in.RaftMultiplier),
		RaftSnapshotThreshold:  uint64(max(structs.Val(in.RaftSnapshotThreshold), 0)),
		RaftSnapshotInterval:   r.duration("server.raft_snapshot_interval", in.RaftSnapshotInterval),
		RaftTrailingLogs:       uint64(max(structs.Val(in.RaftTrailingLogs), 0)),
		PlanApplyPipeline:      structs.Val(in.PlanApplyPipeline),
		JobDefaultPriority:     structs.Val(in.JobDefaultPriority), JobMaxPriority: structs.Val(in.JobMaxPriority),
		JobMaxSourceSize: r.size("server.job_max_source_size", in.JobMaxSourceSize), JobMaxCount: structs.Val(in.JobMaxCount),
		JobTrackedVersions: structs.Val(in.JobTrackedVersions), Search: r.search(in.Search),
		DefaultSchedulerConfig: r.schedulerConfig(in.DefaultSchedulerConfig),
	}
	if in.RaftProtocol != nil && *in.RaftProtocol != 3 && *in.RaftProtocol != 0 {
		r.faults.Addf("server.raft_protocol: only version 3 is supported, not %d", *in.RaftProtocol)
	}
	r.limits(out)
	r.join(in, out)
	return out
}

// limits reads the bounds of port 4647. Only "0" takes the bound of connections away; a handshake always has one.
func (r *resolver) limits(out *nomadlite.Config) {
	out.RPCMaxConnsPerClient = 100
	in := r.c.Limits
	if in == nil {
		return
	}
	out.RPCHandshakeTimeout = r.duration("limits.rpc_handshake_timeout", in.RPCHandshakeTimeout)
	if in.RPCHandshakeTimeout != nil && out.RPCHandshakeTimeout == 0 {
		out.RPCHandshakeTimeout = time.Hour // the protocol's own bound is shorter
	}
	if n := in.RPCMaxConnsPerClient; n != nil {
		if *n < 0 {
			r.faults.Addf("limits.rpc_max_conns_per_client: %d is below 0", *n)
		}
		out.RPCMaxConnsPerClient = *n
	}
}

// search reads the bounds of fuzzy searches.
func (r *resolver) search(in *ServerSearchConfig) endpoint.SearchLimits {
	if in == nil {
		return endpoint.SearchLimits{}
	}
	for _, f := range []struct {
		name  string
		value *int
	}{{"limit_query", in.LimitQuery}, {"limit_results", in.LimitResults}, {"min_term_length", in.MinTermLength}} {
		if f.value != nil && *f.value < 0 {
			r.faults.Addf("server.search.%s must not be negative", f.name)
		}
	}
	return endpoint.SearchLimits{
		Disabled: in.FuzzyEnabled != nil && !*in.FuzzyEnabled, Objects: structs.Val(in.LimitQuery),
		Results: structs.Val(in.LimitResults), MinTerm: structs.Val(in.MinTermLength),
	}
}

// join gathers the addresses of other servers from the old keys and the server_join block.
func (r *resolver) join(in *ServerConfig, out *nomadlite.Config) {
	out.Join = append(append([]string{}, in.StartJoin...), in.RetryJoin...)
	out.RetryMax = structs.Val(in.RetryMax)
	out.RetryInterval = r.duration("server.retry_interval", in.RetryInterval)
	if j := in.ServerJoin; j != nil {
		out.Join = append(append(out.Join, j.StartJoin...), j.RetryJoin...)
		if j.RetryMax != nil {
			out.RetryMax = *j.RetryMax
		}
		if j.RetryInterval != nil {
			out.RetryInterval = r.duration("server.server_join.retry_interval", j.RetryInterval)
		}
	}
}

func (r *resolver) schedulerConfig(in *ServerDefaultSchedulerConfigConfig) *structs.SchedulerConfiguration {
	if in == nil {
		return nil
	}
	out := &structs.SchedulerConfiguration{SchedulerAlgorithm: orDefault(in.SchedulerAlgorithm, "binpack"),
		MemoryOversubscriptionEnabled: structs.Val(in.MemoryOversubscriptionEnabled),
		RejectJobRegistration:         structs.Val(in.RejectJobRegistration), PauseEvalBroker: structs.Val(in.PauseEvalBroker),
		PreemptionConfig: structs.PreemptionConfig{SystemSchedulerEnabled: true}}
	if p := in.PreemptionConfig; p != nil {
		if p.SystemSchedulerEnabled != nil {
			out.PreemptionConfig.SystemSchedulerEnabled = *p.SystemSchedulerEnabled
		}
		out.PreemptionConfig.SysBatchSchedulerEnabled = structs.Val(p.SysbatchSchedulerEnabled)
		out.PreemptionConfig.BatchSchedulerEnabled = structs.Val(p.BatchSchedulerEnabled)
		out.PreemptionConfig.ServiceSchedulerEnabled = structs.Val(p.ServiceSchedulerEnabled)
	}
	switch out.SchedulerAlgorithm {
	case "binpack", "spread":
	default:
		r.faults.Addf("server.default_scheduler_config.scheduler_algorithm: %q is neither binpack nor spread", out.SchedulerAlgorithm)
	}
	return out
}

// size reads a number of bytes with an optional unit (K, M or G, of 1000; Ki, Mi, Gi of 1024; a trailing B is ignored).
func (r *resolver) size(key string, s *string) int64 {
	if s == nil || *s == "" {
		return 0
	}
	text := strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(*s)), "B")
	factor := int64(1)
	for _, u := range []struct {
		suffix string
		factor int64
	}{{"KI", 1 << 10}, {"MI", 1 << 20}, {"GI", 1 << 30}, {"K", 1000}, {"M", 1000 * 1000}, {"G", 1000 * 1000 * 1000}} {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		r.faults.Addf("%s: %q is no size such as 500K, 1M or 2G", key, *s)
		return 0
	}
	return n * factor
}
