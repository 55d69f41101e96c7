package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client/allocrunner"
	"github.com/nomadlite/nomadlite/client/artifact"
	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/lease"
	"github.com/nomadlite/nomadlite/client/servers"
	"github.com/nomadlite/nomadlite/client/service"
	"github.com/nomadlite/nomadlite/client/service/check"
	"github.com/nomadlite/nomadlite/client/state"
	"github.com/nomadlite/nomadlite/client/stats"
	"github.com/nomadlite/nomadlite/client/supervisor"
	"github.com/nomadlite/nomadlite/client/template"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/structs"
)

// leaveLimit bounds how long a dev agent waits for its tasks to end.
const leaveLimit = 10 * time.Second

// conn is what the loops need of the connection to the servers.
type conn interface {
	Register(ctx context.Context, node *structs.Node) (*structs.NodeHeartbeatResponse, error)
	Heartbeat(ctx context.Context, status string, fresh bool) (*structs.NodeHeartbeatResponse, error)
	Assignments(ctx context.Context, req structs.AssignmentsRequest) (*structs.AssignmentsResponse, error)
	UpdateAllocs(ctx context.Context, observations []*structs.AllocObservation) error
	UpdateServices(ctx context.Context, req structs.NodeServicesRequest) error
	departures
	Run(ctx context.Context) error
	Close() error
}

// departures are the words with which a node goes.
type departures interface {
	Depart(ctx context.Context, req structs.NodeLeaveRequest) error
	Away(ctx context.Context, d time.Duration) error
}

// Client is the node agent.
type Client struct {
	cfg   Config
	log   hclog.Logger
	clock boottime.Clock

	// Set by Start.
	nodeID, secret string
	db             *state.DB
	supervisor     *supervisor.Client
	drivers        *driver.Registry
	owns           bool // all that lies in alloc_dir is this node's
	environ        map[string]string
	conn           conn
	servers        *servers.Conn // conn, unless a test set another
	host           *stats.Host
	services       *service.Registry            // what this node offers
	checks         *check.Board                 // and whether it is well
	templates      *template.Config             // what template hooks share
	artifacts      *artifact.Config             // what artifact hooks share
	node           atomic.Pointer[structs.Node] // never changed in place
	nodeMu         sync.Mutex                   // held while node is replaced
	dynamicMeta    map[string]*string           // set while the node runs, by nodeMu; never changed in place

	running sync.WaitGroup // the runners
	life    context.Context
	end     context.CancelFunc // of life: the runners'

	leases *lease.Tracker

	mu      sync.Mutex
	held    map[string]*held
	specs   map[string]*spec
	dirty   map[string]struct{} // ids with something to report
	session uint64              // counts sessions with servers
	fresh   uint64              // the session in which everything was reported
	last    time.Time           // of the last confirmed heartbeat
	ttl     time.Duration
	// departing is set when the node goes for good: nothing begins here any more.
	departing bool

	registered *gate
	synced     *gate
	settled    *gate // what was restored is known to run, or to have ended
	warmed     *gate
	wakeDuty   chan struct{}
	wakeReport chan struct{}
	wakeGC     chan struct{}
	wakeLeases chan struct{}
	wakeRenew  chan struct{}
	reregister atomic.Bool

	settleLimit time.Duration // see the constant

	dutyEnds context.CancelFunc // of heartbeats; set by Run
	dutyDone chan struct{}      // closed when the last heartbeat was answered

	started sync.Once
	startup error
	stop    context.CancelFunc
	done    chan struct{}
	ran     atomic.Bool
}

// New makes a client that does nothing until Start.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure client: %w", err)
	}
	cfg = cfg.withDefaults()
	c := &Client{
		cfg: cfg, log: cfg.Logger, clock: boottime.System(),
		held: map[string]*held{}, specs: map[string]*spec{}, dirty: map[string]struct{}{},
		registered: newGate(), synced: newGate(), settled: newGate(), warmed: newGate(),
		wakeDuty: make(chan struct{}, 1), wakeReport: make(chan struct{}, 1), wakeGC: make(chan struct{}, 1),
		wakeLeases: make(chan struct{}, 1), wakeRenew: make(chan struct{}, 1),
		done: make(chan struct{}), settleLimit: settleLimit, dutyDone: make(chan struct{}),
	}
	c.life, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Start prepares everything that can fail for reasons of this machine or its configuration. It is called once, by Run
// if nobody did before.
func (c *Client) Start(ctx context.Context) error {
	c.started.Do(func() {
		if c.startup = c.prepare(ctx); c.startup != nil && c.db != nil {
			_ = c.db.Close()
		}
	})
	return c.startup
}

func (c *Client) prepare(ctx context.Context) error {
	var err error
	if c.nodeID, c.secret, err = identity(c.cfg.StateDir); err != nil {
		return err
	}
	if err := os.MkdirAll(c.cfg.AllocDir, 0o711); err != nil {
		return fmt.Errorf("make alloc_dir: %w", err)
	}
	c.owns = c.own()
	c.db, err = state.Open(filepath.Join(c.cfg.StateDir, "state.db"), state.Options{NoSync: c.cfg.DevMode, Logger: c.log})
	if err != nil {
		return err
	}
	c.environ = c.hostEnv()
	c.supervisor = supervisor.NewClient(supervisor.Config{
		Dir: filepath.Join(c.cfg.StateDir, "supervisor"), Command: c.cfg.SupervisorCommand, NoCgroups: c.cfg.NoCgroups, Logger: c.log,
	})
	if c.drivers == nil {
		if c.drivers, err = c.registry(); err != nil {
			return err
		}
	}
	node, err := c.describe(ctx)
	if err != nil {
		return err
	}
	if err := c.restoreMetadata(node); err != nil {
		return err
	}
	c.node.Store(node)
	c.host = stats.NewHost(c.cfg.AllocDir, float64(node.NodeResources.Cpu.CpuShares))
	if c.conn == nil {
		c.servers = servers.New(c.serversConfig())
		c.conn = c.servers
	}
	c.services, c.checks = c.newServices(), c.newChecks()
	c.templates, c.artifacts = c.newTemplates(), c.newArtifacts()
	if err := c.restoreLeases(); err != nil {
		return err
	}
	if err := c.restore(); err != nil {
		return err
	}
	if err := c.restoreServices(); err != nil {
		return err
	}
	return c.restoreChecks()
}

func (c *Client) serversConfig() servers.Config {
	cfg := servers.Config{
		Logger: c.log, Region: c.cfg.Region, NodeID: c.nodeID, SecretID: c.secret, Agent: uuid.New(), Servers: c.cfg.Servers,
		Handler: c.serve(), OnConnected: func(context.Context, string) { c.connected() },
	}
	if c.cfg.DevMode { // the server is in this very process and about to listen
		cfg.MinBackoff, cfg.MaxBackoff = 5*time.Millisecond, time.Second
	}
	return cfg
}

// serve builds the mux of what servers ask of this node.
func (c *Client) serve() func(route.Identity) http.Handler {
	mux, err := route.NewServerSession(route.Config{Routes: c.Routes(Locate{}), Logger: c.log})
	if err != nil {
		panic(err) // the table is constant, and a test builds it
	}
	return mux.For
}

// Run blocks until ctx is done or the client is closed. Then tasks go on, except in dev mode.
func (c *Client) Run(ctx context.Context) error {
	if c.ran.Swap(true) {
		return errors.New("run client: it runs already")
	}
	defer close(c.done)
	ctx, c.stop = context.WithCancel(ctx)
	defer c.stop()
	stopped := context.AfterFunc(c.life, c.stop)
	defer stopped()
	if err := c.Start(ctx); err != nil {
		return err
	}
	over, _ := c.leases.Expired()
	c.fence(over) // before anything of it is started anew
	c.reclaim(ctx)
	restored := c.runners()
	c.startRunners()

	beats, endBeats := context.WithCancel(ctx)
	defer endBeats()
	c.mu.Lock()
	c.dutyEnds = endBeats
	c.mu.Unlock()
	var loops sync.WaitGroup
	for _, loop := range []func(context.Context){c.connect, c.follow, c.report, c.collect, c.probe, c.warm, c.release, c.offer, c.checks.Run,
		c.keepLeases, c.renewLeases, c.supervisor.KeepLeases} {
		loops.Go(func() { loop(ctx) })
	}
	loops.Go(func() { c.settle(ctx, restored) })
	loops.Go(func() {
		defer close(c.dutyDone)
		c.duty(beats)
	})
	<-ctx.Done()
	if c.cfg.DevMode {
		c.leave()
	}
	c.end()
	c.running.Wait()
	loops.Wait()
	c.dismiss()
	return errors.Join(c.conn.Close(), c.closeDrivers(), c.supervisor.Close(), c.db.Close())
}

// Close ends Run and waits for it.
func (c *Client) Close() error {
	c.end()
	if c.ran.Load() {
		<-c.done
		return nil
	}
	c.started.Do(func() { c.startup = errors.New("client is closed") })
	if c.startup == nil {
		return errors.Join(c.conn.Close(), c.closeDrivers(), c.supervisor.Close(), c.db.Close())
	}
	return nil
}

func (c *Client) connect(ctx context.Context) {
	if err := c.conn.Run(ctx); err != nil && ctx.Err() == nil {
		c.log.Error("connection to the servers ended", "error", err)
	}
}

// warm starts the supervisor, so that the first task does not wait for it. Once begun it is brought to its end, so
// that no half-started process is left when the agent ends at once.
func (c *Client) warm(ctx context.Context) {
	defer c.warmed.open()
	if !c.driverEnabled("raw_exec") {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	if err := c.supervisor.Ensure(ctx); err != nil {
		c.log.Warn("supervisor does not start", "error", err)
	}
}

// release lets restored allocations start tasks after a while even when no server can be reached: their restart
// policies hold through a partition too.
func (c *Client) release(ctx context.Context) {
	if c.synced.isOpen() || !pause(ctx, 10*time.Second, c.synced.ch) {
		return
	}
	c.synced.open()
}

// settleLimit bounds how long a node is not given new work because a driver cannot tell what became of a task.
const settleLimit = 10 * time.Second

// settle waits until it is known what became of all that was restored. Only what is reported after that makes the node's
// word fresh: what an earlier agent wrote down may be over.
func (c *Client) settle(ctx context.Context, restored []*allocrunner.Runner) {
	within, cancel := context.WithTimeout(ctx, c.settleLimit)
	defer cancel()
	for _, r := range restored {
		select {
		case <-r.Settled():
			continue
		case <-r.Over():
			continue
		case <-within.Done():
		}
		if ctx.Err() != nil {
			return
		}
		c.log.Warn("it is not known in time what became of an earlier agent's tasks, going on with what it wrote down",
			"alloc", r.ID(), "after", c.settleLimit)
		break
	}
	c.mu.Lock()
	c.settled.open()
	for id := range c.held {
		c.dirty[id] = struct{}{}
	}
	c.mu.Unlock()
	nudge(c.wakeReport)
}

// leave ends all allocations at once; a dev agent's data is thrown away with it.
func (c *Client) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	for _, h := range c.runners() {
		h.Leave()
	}
	for _, h := range c.runners() {
		select {
		case <-h.Over():
			if err := h.Destroy(ctx); err != nil {
				c.log.Warn("allocation is not cleaned up", "alloc", h.ID(), "error", err)
			}
		case <-ctx.Done():
			c.log.Error("allocation did not end in time", "alloc", h.ID())
		}
	}
	if !c.driverEnabled("raw_exec") {
		return
	}
	select {
	case <-c.warmed.ch:
	case <-ctx.Done():
	}
	if err := c.supervisor.Shutdown(ctx); err != nil {
		c.log.Warn("supervisor does not end", "error", err)
	}
}

// dismiss lets a supervisor without tasks end at once; one with tasks stays.
func (c *Client) dismiss() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := c.supervisor.Shutdown(ctx); err != nil {
		c.log.Debug("supervisor stays", "reason", err)
	}
}

// NodeID is the node's id; Start sets it.
func (c *Client) NodeID() string { return c.nodeID }

// Node is what the node says about itself; it must not be changed.
func (c *Client) Node() *structs.Node { return c.node.Load() }

// Servers is the connection over which the agent's HTTP port forwards what the node does not answer.
func (c *Client) Servers() *servers.Conn { return c.servers }

// Stats are the client's block of agent/self.
func (c *Client) Stats() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := "[]"
	if c.servers != nil {
		known = fmt.Sprint(c.servers.Servers())
	}
	since := time.Duration(0)
	if !c.last.IsZero() {
		since = time.Since(c.last)
	}
	return map[string]string{
		"node_id":         c.nodeID,
		"known_servers":   known,
		"num_allocations": fmt.Sprint(len(c.held)),
		"last_heartbeat":  since.String(),
		"heartbeat_ttl":   c.ttl.String(),
	}
}

// Healthy says whether the node is in touch with its servers, and if not why.
func (c *Client) Healthy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.registered.isOpen():
		return errors.New("node is not registered yet")
	case time.Since(c.last) > max(c.ttl, time.Second):
		return fmt.Errorf("no heartbeat was confirmed for %s", time.Since(c.last).Round(time.Millisecond))
	}
	return nil
}

// jitter gives d to 1.5 d.
func jitter(d time.Duration) time.Duration { return d + time.Duration(rand.Int64N(int64(d)/2+1)) }

// pause waits for d or wake; false when ctx is done.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
		return false
	}
	return true
}

func nudge(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// gate opens once.
type gate struct {
	once sync.Once
	ch   chan struct{}
}

func newGate() *gate { return &gate{ch: make(chan struct{})} }

func (g *gate) open() { g.once.Do(func() { close(g.ch) }) }

func (g *gate) isOpen() bool {
	select {
	case <-g.ch:
		return true
	default:
		return false
	}
}
