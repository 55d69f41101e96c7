package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/internal/session"
)

// Config is what a Conn works with.
type Config struct {
	Logger   hclog.Logger
	Region   string
	NodeID   string
	SecretID string
	Agent    string // this process, see structs.NodeHeartbeatRequest
	// Servers are host:port of servers' 4647, as configured. More are learnt from their answers.
	Servers []string
	// TLS wraps the connection when it is set.
	TLS *tls.Config
	// Handler answers what servers ask of the node; nil answers 404. route.NewServerSession(...).For is one.
	Handler func(route.Identity) http.Handler
	// OnConnected is called on each new session, from Run's goroutine; its context ends with the session. It must not
	// block: what it starts asks over the Conn.
	OnConnected func(ctx context.Context, server string)
	// OnDisconnected is called when a session has ended.
	OnDisconnected func(server string, err error)
	// DialTimeout bounds a connection, handshake included; 0 is 5 s.
	DialTimeout time.Duration
	// MinBackoff and MaxBackoff bound the wait between rounds over all servers; 0 is 250 ms and 15 s.
	MinBackoff, MaxBackoff time.Duration
	// Dial opens a connection; nil is TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// Conn is the node's connection.
type Conn struct {
	cfg Config
	log hclog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // the list of servers changed
	runs   sync.WaitGroup

	mu      sync.Mutex
	learnt  []string
	session *session.Session // nil: none
	server  string
	changed chan struct{} // closed when session changes
	closed  bool
}

// ErrClosed is given by every call after Close.
var ErrClosed = errors.New("connection to the servers is closed")

// New makes a connection that does nothing until Run.
func New(cfg Config) *Conn {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	orDefault := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	orDefault(&cfg.DialTimeout, 5*time.Second)
	orDefault(&cfg.MinBackoff, 250*time.Millisecond)
	orDefault(&cfg.MaxBackoff, 15*time.Second)
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", addr)
		}
	}
	c := &Conn{cfg: cfg, log: cfg.Logger.Named("servers"), wake: make(chan struct{}, 1), changed: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Run keeps a session open until ctx ends or Close.
func (c *Conn) Run(ctx context.Context) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	c.runs.Add(1)
	c.mu.Unlock()
	defer c.runs.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()

	backoff := c.cfg.MinBackoff
	last := ""
	for ctx.Err() == nil {
		connected := false
		for _, addr := range c.order(last) {
			last = addr
			began := time.Now()
			err := c.hold(ctx, addr)
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, errNotConnected) {
				c.log.Warn("could not connect to a server", "server", addr, "error", err)
				continue
			}
			connected = true
			if time.Since(began) > c.cfg.MaxBackoff {
				backoff = c.cfg.MinBackoff
			}
			break
		}
		if len(c.Servers()) == 0 {
			c.log.Warn("no servers are known")
		}
		// A session that ended is opened again at once, but not in a tight loop: a server that shuts down or sends
		// nodes away must not be run over.
		wait := time.Duration(float64(backoff) * (0.5 + rand.Float64()/2))
		if connected {
			wait /= 10
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-c.wake:
		case <-ctx.Done():
		}
		t.Stop()
		backoff = min(backoff*2, c.cfg.MaxBackoff)
	}
	return nil
}

// Close ends the session and Run, and waits for it.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.runs.Wait()
	return nil
}

var errNotConnected = errors.New("not connected")

// hold opens a session to one server and serves it to its end. An error that is errNotConnected says that there was
// none.
func (c *Conn) hold(ctx context.Context, addr string) error {
	conn, err := c.dial(ctx, addr)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotConnected, err)
	}
	s, err := session.Dialed(conn, session.Config{Logger: c.log})
	if err != nil {
		return fmt.Errorf("%w: %w", errNotConnected, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	c.set(s, addr)
	c.log.Info("connected to a server", "server", addr)
	if c.cfg.OnConnected != nil {
		sctx, cancel := context.WithCancel(ctx)
		defer cancel()
		c.cfg.OnConnected(sctx, addr)
	}
	var handler http.Handler
	if c.cfg.Handler != nil {
		handler = c.cfg.Handler(route.Identity{Kind: route.ServerSession, Server: addr, Addr: addr})
	}
	err = s.Serve(handler)
	c.set(nil, "")
	if ctx.Err() == nil {
		c.log.Info("disconnected from a server", "server", addr, "error", err)
	}
	if c.cfg.OnDisconnected != nil {
		c.cfg.OnDisconnected(addr, err)
	}
	return err
}

func (c *Conn) dial(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()
	conn, err := c.cfg.Dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("dial server: %w", err)
	}
	if c.cfg.TLS != nil {
		conn = tls.Client(conn, c.cfg.TLS)
	}
	_, err = session.Introduce(ctx, conn, session.Hello{
		Region: c.cfg.Region, NodeID: c.cfg.NodeID, SecretID: c.cfg.SecretID,
	})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// order is the servers to try: shuffled, the one that was tried last at the end.
func (c *Conn) order(last string) []string {
	list := c.Servers()
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	if i := slices.Index(list, last); i >= 0 {
		list = append(slices.Delete(list, i, i+1), last)
	}
	return list
}

func (c *Conn) set(s *session.Session, addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.server = s, addr
	close(c.changed)
	c.changed = make(chan struct{})
}

// Servers are the servers that are known: those learnt last, then the configured ones.
func (c *Conn) Servers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for _, addr := range append(slices.Clone(c.learnt), c.cfg.Servers...) {
		if addr != "" && !slices.Contains(list, addr) {
			list = append(list, addr)
		}
	}
	return list
}

// SetServers replaces the learnt servers. The session stays as it is.
func (c *Conn) SetServers(addrs []string) {
	c.mu.Lock()
	same := slices.Equal(c.learnt, addrs)
	c.learnt = slices.Clone(addrs)
	c.mu.Unlock()
	if !same {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// Server is the address of the server to which the session is, empty when there is none.
func (c *Conn) Server() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server
}

// Leave ends the present session, so that Run opens one to another server.
func (c *Conn) Leave() {
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s != nil {
		_ = s.Close()
	}
}

// wait gives the session, waiting for one as long as ctx lets it.
func (c *Conn) wait(ctx context.Context) (*session.Session, error) {
	for {
		c.mu.Lock()
		s, changed := c.session, c.changed
		c.mu.Unlock()
		if s != nil {
			select {
			case <-s.Done(): // Run has yet to notice
			default:
				return s, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a server: %w", context.Cause(ctx))
		case <-c.ctx.Done():
			return nil, ErrClosed
		}
	}
}
