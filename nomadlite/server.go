package nomadlite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/internal/route"
	wire "github.com/nomadlite/nomadlite/internal/session"
	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/broker"
	"github.com/nomadlite/nomadlite/nomadlite/cluster"
	"github.com/nomadlite/nomadlite/nomadlite/endpoint"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/gc"
	"github.com/nomadlite/nomadlite/nomadlite/heartbeat"
	"github.com/nomadlite/nomadlite/nomadlite/keyring"
	"github.com/nomadlite/nomadlite/nomadlite/plan"
	"github.com/nomadlite/nomadlite/nomadlite/session"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/nomadlite/worker"
	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/structs"
)

// Server is one server of a cluster.
type Server struct {
	cfg     Config
	log     hclog.Logger
	started time.Time

	listener    net.Listener
	lead        *leadership
	store       *state.Store
	fsm         *fsm.FSM
	evals       *broker.Broker
	plans       *plan.Queue
	workers     *worker.Switch
	pool        *worker.Pool
	beats       *heartbeat.Duty
	keys        *keyring.Keyring
	garbage     *gc.Collector
	assignments *session.Assignments
	backend     *endpoint.Backend
	routes      []route.Route
	port        *session.Port // once Run has opened the data directory
	forwarder   *forwarder
	members     members

	ready   chan struct{}          // closed when caught up
	running chan struct{}          // closed when Run has ended
	reigned atomic.Pointer[string] // epoch of the state from which the leader's duties began
	once    sync.Once
	mu      sync.Mutex
	stop    context.CancelFunc // of Run, nil before
	closed  bool
}

// New makes a server. It checks the configuration (all faults at once) and listens, unless it was given a listener.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("configure server: %w", err)
	}
	s := &Server{cfg: cfg, log: cfg.Logger.Named("server"), started: time.Now(), listener: cfg.Listener,
		ready: make(chan struct{}), running: make(chan struct{}), lead: newLeadership()}
	if s.listener == nil {
		if s.listener, err = net.Listen("tcp", cfg.RPCAddr); err != nil {
			return nil, fmt.Errorf("listen for servers and nodes: %w", err)
		}
	}
	s.store = state.New(state.Config{Logger: cfg.Logger})
	s.fsm = fsm.New(s.store, cfg.Logger)
	s.build()
	return s, nil
}

// build makes the rooms, which do nothing yet.
func (s *Server) build() {
	cfg := s.cfg
	s.evals = broker.New(broker.Config{NackTimeout: cfg.EvalNackTimeout, DeliveryLimit: cfg.EvalDeliveryLimit},
		cfg.Logger.Named("broker"), uuid.New)
	s.plans = plan.NewQueue()
	local := &worker.Local{Evals: s.evals, Plans: s.plans, Raft: s.lead, Store: s.store}
	s.forwarder = &forwarder{}
	s.workers = &worker.Switch{Leadership: s.lead, Local: local, Remote: &worker.Remote{Do: s.forwarder.Do}}
	s.pool = worker.New(worker.Config{Logger: cfg.Logger.Named("worker"), Store: s.store, Broker: s.workers,
		Leader: s.workers, Factory: scheduler.New, Types: cfg.EnabledSchedulers, Count: *cfg.NumSchedulers, NewID: uuid.New})
	s.beats = heartbeat.New(heartbeat.Config{Logger: cfg.Logger.Named("heartbeat"), Store: s.store, Raft: s.lead,
		MinTTL: cfg.MinHeartbeatTTL, MaxPerSecond: cfg.MaxHeartbeatsPerSecond, Grace: cfg.HeartbeatGrace,
		FailoverTTL: cfg.FailoverHeartbeatTTL, NewID: uuid.New})
	limits := gc.DefaultThresholds()
	for _, f := range []struct {
		to   *time.Duration
		from time.Duration
	}{
		{&limits.Eval, cfg.EvalGCThreshold}, {&limits.BatchEval, cfg.BatchEvalGCThreshold},
		{&limits.Job, cfg.JobGCThreshold}, {&limits.Node, cfg.NodeGCThreshold},
		{&limits.Deployment, cfg.DeploymentGCThreshold},
	} {
		if f.from > 0 {
			*f.to = f.from
		}
	}
	s.garbage = gc.New(gc.Config{Logger: cfg.Logger.Named("gc"), Raft: s.lead, Thresholds: limits,
		Interval: cfg.JobGCInterval, Snapshot: func() gc.State { return s.store.Snapshot() }})
	s.keys = keyring.New(keyring.Config{Logger: cfg.Logger.Named("keyring"), Store: s.store, Raft: s.lead,
		Dir: s.keyDir(), NewID: uuid.New, Fetch: s.fetchKeyFile})
	s.assignments = session.NewAssignments(s.store, s.lead.VerifyLeader, cfg.Logger)
	s.members.self = &structs.AgentMember{Name: cfg.Name + "." + cfg.Region, Status: cluster.StatusAlive}
	s.backend = &endpoint.Backend{
		Logger: cfg.Logger.Named("http"), Region: cfg.Region, Datacenter: cfg.Datacenter, Name: cfg.Name,
		Store: s.store, Raft: s.lead, Cluster: s, Heartbeats: s.beats, Keyring: s.keys, Broker: s.evals, Snapshots: s,
		Servers: s.members.Addrs, Workers: s.pool, Applied: s.fsm.Applied,
		Limits: endpoint.Limits{JobMaxPriority: cfg.JobMaxPriority, JobMaxCount: cfg.JobMaxCount,
			JobTrackedVersion: cfg.JobTrackedVersions, JobMaxSourceSize: int(cfg.JobMaxSourceSize), Search: cfg.Search},
	}
	s.routes = endpoint.Routes(s.backend)
}

// HTTPRoutes are the rows which this server answers on the public port.
func (s *Server) HTTPRoutes() []route.Route { return s.routes }

// Forwarder takes requests of the public port to the leader and to nodes.
func (s *Server) Forwarder() route.Forwarder { return s.forwarder }

// Backend is what the handlers work with.
func (s *Server) Backend() *endpoint.Backend { return s.backend }

// Store is this server's state.
func (s *Server) Store() *state.Store { return s.store }

// Addr is the host:port under which others reach this server's port 4647.
func (s *Server) Addr() string { return Advertised(s.cfg.RPCAdvertise, s.listener.Addr().String()) }

// Leader is the leader's host:port of 4647, empty when there is none.
func (s *Server) Leader() string { return s.lead.LeaderAddr() }

// IsLeader says whether this server leads and its duties have begun.
func (s *Server) IsLeader() bool { return s.lead.IsLeader() }

// Ready is closed once a leader is known and this server's state has caught up with it.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Run opens the data directory, serves, and blocks until ctx ends or Close; then it gives nil. It fails with one
// line when the data directory cannot be used.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.closed || s.stop != nil {
		s.mu.Unlock()
		return errors.New("run server: it was closed, or runs already")
	}
	s.stop = cancel
	s.mu.Unlock()
	defer close(s.running)
	err := s.run(ctx)
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// Close ends Run and waits for it. It may be called again.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	stop := s.stop
	s.mu.Unlock()
	if stop != nil {
		stop()
		<-s.running
	}
	err := s.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *Server) keyDir() string {
	if s.cfg.DataDir == "" {
		return ""
	}
	return cluster.KeyringDir(s.cfg.DataDir)
}

func (s *Server) run(ctx context.Context) error {
	id, raftDir := uuid.New(), ""
	if s.cfg.DataDir != "" {
		dir, err := cluster.OpenDataDir(s.cfg.DataDir)
		if err != nil {
			return errors.Join(err, s.listener.Close())
		}
		id, raftDir = dir.ID, dir.Raft
	}
	if err := s.keys.Open(); err != nil {
		return errors.Join(err, s.listener.Close())
	}
	defer s.keys.Close()
	key, err := wire.ParseKey(s.cfg.EncryptKey)
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	s.port, err = session.New(session.Config{Logger: s.cfg.Logger, Listener: s.listener, Advertise: s.Addr(), ServerID: id,
		Region: s.cfg.Region, Key: key, NodeSecret: s.nodeSecret,
		HandshakeTimeout: s.cfg.RPCHandshakeTimeout, MaxConnsPerHost: s.cfg.RPCMaxConnsPerClient})
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	s.forwarder.set(session.NewForwarder(s.port, s.lead))
	log, err := cluster.OpenRaft(cluster.RaftConfig{Logger: s.cfg.Logger.Named("raft"), Dir: raftDir, ID: id,
		Stream: s.port.StreamLayer(), FSM: s.fsm, Multiplier: s.cfg.RaftMultiplier,
		SnapshotThreshold: s.cfg.RaftSnapshotThreshold, SnapshotInterval: s.cfg.RaftSnapshotInterval,
		TrailingLogs: s.cfg.RaftTrailingLogs})
	if err != nil {
		return errors.Join(err, s.port.Close())
	}
	s.lead.open(log)
	membership := cluster.NewMembership(cluster.MembershipConfig{Logger: s.cfg.Logger.Named("cluster"),
		Self: cluster.Member{ID: id, Name: s.cfg.Name, Addr: s.port.Addr(), HTTPAddr: s.cfg.HTTPAdvertise,
			Region: s.cfg.Region, Datacenter: s.cfg.Datacenter, Expect: s.cfg.BootstrapExpect},
		Join: s.cfg.Join, RetryInterval: s.cfg.RetryInterval, RetryMax: s.cfg.RetryMax, Probe: s.cfg.ProbeInterval,
		Caller: s.port, Raft: log})
	s.members.set(membership)
	return s.serve(ctx, log, membership)
}

func (s *Server) nodeSecret(nodeID string) (string, bool) {
	node := s.store.Node(nil, nodeID)
	if node == nil {
		return "", false
	}
	return node.SecretID, true
}

// serve runs everything that lives as long as the server, and ends it in order: first the leader's work and the workers,
// then raft, last the port.
func (s *Server) serve(ctx context.Context, log *cluster.Raft, membership *cluster.Membership) error {
	nodes := session.NewNodeProtocol(session.NodeConfig{Logger: s.cfg.Logger, Store: s.store, Raft: s.lead,
		Heartbeats: s.beats, Assignments: s.assignments, Servers: s.members.Addrs, Forwarder: s.forwarder})
	handlers, err := s.handlers(nodes, membership)
	if err != nil {
		return errors.Join(err, s.port.Close(), log.Close())
	}
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var duties, transport sync.WaitGroup
	run := func(wg *sync.WaitGroup, what string, f func(ctx context.Context) error) {
		wg.Go(func() {
			if err := f(work); err != nil && work.Err() == nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	background := context.WithoutCancel(ctx) // the port outlives the work that uses it
	transport.Go(func() {
		if err := s.port.Run(background, handlers); err != nil {
			cancel(fmt.Errorf("serve port: %w", err))
		}
	})
	if !log.HasState() && s.cfg.BootstrapExpect == 1 && len(s.cfg.Join) == 0 {
		// Nobody to agree with: begin at once.
		if err := log.Bootstrap([]cluster.Peer{{ID: membership.ID(), Addr: s.port.Addr()}}); err != nil {
			cancel(err)
		}
		s.keys.Prepare()
	}
	run(&duties, "follow leadership", func(ctx context.Context) error { s.lead.observe(ctx, log); return nil })
	run(&duties, "lead", func(ctx context.Context) error { return s.followLeadership(ctx, log, membership) })
	if err := log.ElectSelf(); err != nil {
		s.log.Warn("this server waits for an ordinary election", "error", err)
	}
	run(&duties, "keep membership", membership.Run)
	run(&duties, "serve assignments", s.assignments.Run)
	run(&duties, "keep keys", s.keys.Run)
	run(&duties, "catch up", s.catchUp)
	run(&duties, "schedule", s.pool.Run)
	select {
	case <-work.Done():
	case <-s.fsm.Failed():
		cancel(s.fsm.Err())
	}
	duties.Wait()
	err = log.Close()
	err = errors.Join(err, s.port.Close())
	transport.Wait()
	if cause := context.Cause(work); cause != nil && !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return errors.Join(err, nodes.Close())
}

// handlers builds the muxes of both kinds of sessions from the one table.
func (s *Server) handlers(nodes *session.NodeProtocol, membership *cluster.Membership) (session.Handlers, error) {
	rows := append([]route.Route{}, s.routes...)
	rows = append(rows, nodes.Routes()...)
	rows = append(rows, s.port.Nodes().Routes()...)
	rows = append(rows, membership.Routes()...)
	rows = append(rows, worker.Routes(s.workers.Local)...)
	rows = append(rows, s.internalRoutes()...)
	cfg := route.Config{Routes: rows, Forwarder: s.forwarder, Logger: s.cfg.Logger.Named("session")}
	node, err := route.NewNodeSession(cfg)
	if err != nil {
		return session.Handlers{}, fmt.Errorf("build routes: %w", err)
	}
	server, err := route.NewServerSession(cfg)
	if err != nil {
		return session.Handlers{}, fmt.Errorf("build routes: %w", err)
	}
	return session.Handlers{
		Node:   func(id route.Identity) http.Handler { return node.For(id) },
		Server: func(id route.Identity) http.Handler { return server.For(id) },
	}, nil
}
