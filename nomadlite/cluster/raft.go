package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// RaftConfig is what a Raft works with. Zero values mean the defaults.
type RaftConfig struct {
	Logger hclog.Logger
	Dir    string // empty: in memory
	ID     string
	Stream raft.StreamLayer
	FSM    raft.FSM
	// Multiplier scales raft's timeouts (raft_multiplier); default 1.
	Multiplier        int
	SnapshotThreshold uint64        // log entries; default 8192
	SnapshotInterval  time.Duration // default 2 min
	TrailingLogs      uint64        // default 10240
}

// Raft is the replicated log.
type Raft struct {
	cfg       RaftConfig
	raft      *raft.Raft
	transport *raft.NetworkTransport
	stores    []io.Closer // none in memory
	snaps     raft.SnapshotStore
	futures   *futures
	leading   verifier
	leaderCh  chan bool
	hasState  bool
	closeOnce sync.Once
	closeErr  error
}

// OpenRaft opens the log and starts raft. The state is not caught up yet when it returns. A log that is damaged beyond
// what a crash can do is an error.
func OpenRaft(cfg RaftConfig) (opened *Raft, err error) {
	defer func() {
		// The libraries below panic about logs and snapshots which do not fit together. What they hold open stays so:
		// the process ends by this error.
		if p := recover(); p != nil {
			opened, err = nil, fmt.Errorf("open raft log in %s: it is damaged, restore it from a copy: %v", cfg.Dir, p)
		}
	}()
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(cfg.ID)
	conf.Logger = cfg.Logger
	conf.BatchApplyCh = true
	conf.MaxAppendEntries = 256
	conf.ShutdownOnRemove = false
	if m := time.Duration(cfg.Multiplier); m > 1 {
		conf.HeartbeatTimeout *= m
		conf.ElectionTimeout *= m
		conf.LeaderLeaseTimeout *= m
	}
	if cfg.SnapshotThreshold > 0 {
		conf.SnapshotThreshold = cfg.SnapshotThreshold
	}
	if cfg.SnapshotInterval > 0 {
		conf.SnapshotInterval = cfg.SnapshotInterval
	}
	if cfg.TrailingLogs > 0 {
		conf.TrailingLogs = cfg.TrailingLogs
	}
	r := &Raft{cfg: cfg, leaderCh: make(chan bool, 16), futures: newFutures()}
	conf.NotifyCh = r.leaderCh
	r.leading.ask = func() error {
		return leaderError(r.futures.settle(context.Background(), r.raft.VerifyLeader())) // ends with raft at the latest
	}
	logs, stable, snaps, err := r.openStores(cfg)
	if err != nil {
		return nil, err
	}
	if r.hasState, err = raft.HasExistingState(logs, stable, snaps); err != nil {
		return nil, errors.Join(fmt.Errorf("read raft log: %w", err), r.closeStores())
	}
	r.snaps = snaps
	r.transport = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: own(cfg.Stream), MaxPool: 3, Timeout: 10 * time.Second, Logger: cfg.Logger.Named("transport")})
	if r.raft, err = raft.NewRaft(conf, cfg.FSM, logs, stable, snaps, r.transport); err != nil {
		return nil, errors.Join(fmt.Errorf("start raft: %w", err), r.transport.Close(), r.closeStores())
	}
	return r, nil
}

func (r *Raft) openStores(cfg RaftConfig) (raft.LogStore, raft.StableStore, raft.SnapshotStore, error) {
	if cfg.Dir == "" {
		store := raft.NewInmemStore()
		return store, store, raft.NewInmemSnapshotStore(), nil
	}
	dir := filepath.Join(cfg.Dir, "wal")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, nil, fmt.Errorf("open raft log: %w", err)
	}
	meta := &metadb.BoltMetaDB{} // the log does not close it
	w, err := wal.Open(dir, wal.WithLogger(cfg.Logger.Named("wal")), wal.WithMetaStore(meta))
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("open raft log: %w", err), meta.Close())
	}
	r.stores = []io.Closer{w, meta}
	cache, err := raft.NewLogCache(512, w)
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("open raft log: %w", err), r.closeStores())
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(cfg.Dir, 2, cfg.Logger.Named("snapshot"))
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("open raft snapshots: %w", err), r.closeStores())
	}
	return cache, w, snaps, nil
}

func (r *Raft) closeStores() error {
	var err error
	for _, c := range r.stores {
		err = errors.Join(err, c.Close())
	}
	return err
}

// HasState says whether this server was part of a cluster before this start.
func (r *Raft) HasState() bool { return r.hasState }

// Bootstrapped says whether this server belongs to a cluster.
func (r *Raft) Bootstrapped() bool { return len(r.servers()) > 0 }

// Bootstrap makes the servers the first voters of a new cluster. All of them may call it with the same servers. It
// does nothing when this server belongs to a cluster.
func (r *Raft) Bootstrap(servers []Peer) error {
	var conf raft.Configuration
	for _, s := range servers {
		conf.Servers = append(conf.Servers, raft.Server{ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.Addr)})
	}
	err := r.raft.BootstrapCluster(conf).Error()
	if err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
		return fmt.Errorf("bootstrap cluster: %w", err)
	}
	return nil
}

// ElectSelf makes this server the leader at once when it is the only voter: there is nobody to wait for.
func (r *Raft) ElectSelf() error {
	servers := r.servers()
	if len(servers) != 1 || servers[0].ID != raft.ServerID(r.cfg.ID) || r.raft.State() == raft.Leader {
		return nil
	}
	id, addr := raft.ServerID(r.cfg.ID), r.transport.LocalAddr()
	var resp raft.TimeoutNowResponse
	err := r.transport.TimeoutNow(id, addr, &raft.TimeoutNowRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(addr)}}, &resp)
	if err != nil {
		return fmt.Errorf("elect this server: %w", err)
	}
	return nil
}

// LeaderCh tells each change of this server's leadership. It has one reader.
func (r *Raft) LeaderCh() <-chan bool { return r.leaderCh }

// Propose puts a command into the log at once, in the order of the calls. wait gives its outcome once this server's
// state holds it: what the command answered, or its own error.
func (r *Raft) Propose(kind fsm.Kind, req any) (wait func(ctx context.Context) (any, uint64, error)) {
	data, err := fsm.Encode(kind, req)
	if err != nil {
		return func(context.Context) (any, uint64, error) { return nil, 0, fmt.Errorf("encode command: %w", err) }
	}
	future := r.raft.Apply(data, 0)
	return func(ctx context.Context) (any, uint64, error) {
		if err := r.futures.settle(ctx, future); err != nil {
			return nil, 0, leaderError(err)
		}
		if err, ok := future.Response().(error); ok {
			return nil, future.Index(), err
		}
		return future.Response(), future.Index(), nil
	}
}

// Apply is Propose and its wait.
func (r *Raft) Apply(ctx context.Context, kind fsm.Kind, req any) (any, uint64, error) {
	return r.Propose(kind, req)(ctx)
}

// Barrier waits until this server's state holds everything that was committed before.
func (r *Raft) Barrier(ctx context.Context) error {
	return leaderError(r.futures.settle(ctx, r.raft.Barrier(0)))
}

// VerifyLeader makes sure that this server still leads: a majority says so after the call. Callers at one time are
// answered together.
func (r *Raft) VerifyLeader(ctx context.Context) error { return r.leading.verify(ctx) }

// leaderError gives raft's errors about leadership the code which callers know.
func leaderError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader):
		return structs.ErrNoLeader
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrRaftShutdown),
		errors.Is(err, raft.ErrAbortedByRestore), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return &structs.CodedError{Code: structs.CodeNoLeader, Err: structs.ErrNoLeader,
			Text: "No cluster leader: leadership was lost while the request was under way, its outcome is not known"}
	}
	return err
}

// IsLeader says whether this server leads, as far as it knows.
func (r *Raft) IsLeader() bool { return r.raft.State() == raft.Leader }

// LastContact is the time since this server heard from the leader, 0 on the leader.
func (r *Raft) LastContact() time.Duration {
	if r.IsLeader() {
		return 0
	}
	last := r.raft.LastContact()
	if last.IsZero() {
		return time.Hour // never
	}
	return time.Since(last)
}

// LeaderAddr is the leader's host:port of 4647, empty when there is none.
func (r *Raft) LeaderAddr() string {
	addr, _ := r.raft.LeaderWithID()
	return string(addr)
}

// LeaderID is the leader's raft id, empty when there is none.
func (r *Raft) LeaderID() string {
	_, id := r.raft.LeaderWithID()
	return string(id)
}

// Peer is one voter.
type Peer struct{ ID, Addr string }

// Voters are the members of the raft configuration.
func (r *Raft) Voters() []Peer {
	var out []Peer
	for _, s := range r.servers() {
		out = append(out, Peer{ID: string(s.ID), Addr: string(s.Address)})
	}
	return out
}

// Peers are host:port of all raft peers, sorted.
func (r *Raft) Peers() []string {
	var out []string
	for _, s := range r.servers() {
		out = append(out, string(s.Address))
	}
	slices.Sort(out)
	return out
}

func (r *Raft) servers() []raft.Server {
	future := r.raft.GetConfiguration()
	if future.Error() != nil {
		return nil
	}
	return future.Configuration().Servers
}

// AddVoter makes a server a voter, or tells raft its new address.
func (r *Raft) AddVoter(ctx context.Context, p Peer) error {
	return leaderError(r.futures.settle(ctx, r.raft.AddVoter(raft.ServerID(p.ID), raft.ServerAddress(p.Addr), 0, 10*time.Second)))
}

// RemoveServer takes a server out of the configuration.
func (r *Raft) RemoveServer(ctx context.Context, id string) error {
	return leaderError(r.futures.settle(ctx, r.raft.RemoveServer(raft.ServerID(id), 0, 10*time.Second)))
}

// TransferLeadership makes another voter the leader, one whose log is up to date. It returns when this server leads no
// more.
func (r *Raft) TransferLeadership(ctx context.Context) error {
	return leaderError(r.futures.settle(ctx, r.raft.LeadershipTransfer()))
}

// AppliedIndex is the newest entry which this server's state holds.
func (r *Raft) AppliedIndex() uint64 { return r.raft.AppliedIndex() }

// LastIndex is the newest entry in this server's log.
func (r *Raft) LastIndex() uint64 { return r.raft.LastIndex() }

// CommitIndex is the newest entry which this server knows to be committed.
func (r *Raft) CommitIndex() uint64 { return r.raft.CommitIndex() }

// Stats are raft's own figures.
func (r *Raft) Stats() map[string]string { return r.raft.Stats() }

// Observe sends raft's observations of a changed leader to ch until stop is called.
func (r *Raft) Observe(ch chan raft.Observation) (stop func()) {
	o := raft.NewObserver(ch, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.LeaderObservation, raft.RaftState, raft.PeerObservation:
			return true
		}
		return false
	})
	r.raft.RegisterObserver(o)
	return func() { r.raft.DeregisterObserver(o) }
}

// Snapshot takes a snapshot now.
func (r *Raft) Snapshot() error {
	if err := r.raft.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return fmt.Errorf("take raft snapshot: %w", err)
	}
	return nil
}

// Close stops raft and closes its stores.
func (r *Raft) Close() error {
	r.closeOnce.Do(func() {
		r.futures.drain()
		err := r.raft.Shutdown().Error()
		close(r.futures.closed)
		err = errors.Join(err, r.transport.Close())
		r.transport.CloseStreams()
		r.closeErr = errors.Join(err, r.closeStores())
	})
	return r.closeErr
}
