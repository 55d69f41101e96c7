package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/structs"
)

// Config says how many nodes there are and what they do.
type Config struct {
	Logger hclog.Logger
	Nodes  int
	// Servers are host:port of servers' 4647.
	Servers []string
	Region  string // empty: global
	// Datacenters are given to the nodes in turn; empty: dc1.
	Datacenters []string
	NodePool    string
	// Delay is the time from an assignment until its allocation runs.
	Delay time.Duration
	// RunFor is how long allocations of batch jobs run; 0: until they are stopped.
	RunFor time.Duration
	// Seed makes nodes that are the same in every process; empty: new nodes.
	Seed string
}

// dialLimit is how many connections are opened at once.
const dialLimit = 128

// Sim is a fleet of simulated nodes.
type Sim struct {
	cfg     Config
	nodes   []*node
	tally   tally
	dialing chan struct{}

	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
	began  time.Time
}

// New makes the nodes; they do nothing until Run.
func New(cfg Config) (*Sim, error) {
	if cfg.Nodes <= 0 {
		return nil, errors.New("number of nodes must be above 0")
	}
	if len(cfg.Servers) == 0 {
		return nil, errors.New("no server is given")
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.Region == "" {
		cfg.Region = structs.DefaultRegion
	}
	if len(cfg.Datacenters) == 0 {
		cfg.Datacenters = []string{structs.DefaultDatacenter}
	}
	s := &Sim{cfg: cfg, dialing: make(chan struct{}, dialLimit)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.tally.nodes = cfg.Nodes
	for i := range cfg.Nodes {
		s.nodes = append(s.nodes, newNode(s, i))
	}
	return s, nil
}

// Run lets the nodes live until ctx ends or Close. It may be called once.
func (s *Sim) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.closed || !s.began.IsZero() {
		s.mu.Unlock()
		return errors.New("simulation was run before")
	}
	s.began = time.Now()
	s.tally.began = s.began
	s.runs.Add(1)
	s.mu.Unlock()
	defer s.runs.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	var nodes sync.WaitGroup
	for _, n := range s.nodes {
		nodes.Go(func() { n.run(ctx) })
	}
	nodes.Wait()
	return nil
}

// Close ends Run and waits for it.
func (s *Sim) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.runs.Wait()
	return nil
}

// Stats gives the figures of this moment.
func (s *Sim) Stats() Stats {
	stats, _ := s.tally.look()
	return stats
}

// Await waits until the figures satisfy done; it gives the last ones seen.
func (s *Sim) Await(ctx context.Context, done func(Stats) bool) (Stats, error) {
	return s.tally.await(ctx, done)
}
