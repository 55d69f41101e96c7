package session

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/internal/route"
	wire "github.com/nomadlite/nomadlite/internal/session"
	"github.com/nomadlite/nomadlite/structs"
)

// Config is what a Port works with.
type Config struct {
	Logger   hclog.Logger
	Listener net.Listener // of port 4647; the Port owns it
	// Advertise is the host:port under which others reach this port; empty: the listener's address.
	Advertise string
	ServerID  string // raft id
	Region    string
	Key       []byte // the cluster's key, see session.ParseKey; empty lets every server in
	// TLS wraps every connection, accepted and dialled, when it is set. Nil refuses TLS clearly.
	TLS *tls.Config
	// NodeSecret gives the secret of a node that this server knows.
	NodeSecret func(nodeID string) (secret string, known bool)
	// DialTimeout bounds a connection to another server, handshake included; 0 is 5 s.
	DialTimeout time.Duration
	// HandshakeTimeout is within what an accepted connection has to show who it is; 0 is 5 s, and more than 10 s counts as
	// that.
	HandshakeTimeout time.Duration
	// MaxConnsPerHost bounds the connections of one address that have not proven to be a server's; 0 is no bound.
	MaxConnsPerHost int
}

// Handlers answer what arrives on sessions; each is asked once a session, with who is at the other end.
type Handlers struct {
	Node   func(route.Identity) http.Handler
	Server func(route.Identity) http.Handler
}

// Port is a server's end of port 4647.
type Port struct {
	cfg   Config
	log   hclog.Logger
	raft  *raftLayer
	nodes *Nodes
	peers *peers
	door  *door

	ctx    context.Context
	cancel context.CancelFunc
	ready  chan struct{} // closed by Run, when handlers is set
	once   sync.Once
	owned  sync.WaitGroup // connections and sessions

	mu       sync.Mutex
	handlers Handlers
	conns    map[net.Conn]struct{} // accepted, not yet raft's
	closed   bool
}

// New makes a port. It accepts nothing until Run, but its StreamLayer and its dialled sessions work at once.
func New(cfg Config) (*Port, error) {
	if cfg.Listener == nil {
		return nil, errors.New("make port: no listener")
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.Advertise == "" {
		cfg.Advertise = cfg.Listener.Addr().String()
	}
	if cfg.DialTimeout == 0 {
		cfg.DialTimeout = 5 * time.Second
	}
	if cfg.HandshakeTimeout == 0 {
		cfg.HandshakeTimeout = 5 * time.Second
	}
	if cfg.NodeSecret == nil {
		cfg.NodeSecret = func(string) (string, bool) { return "", false }
	}
	p := &Port{cfg: cfg, log: cfg.Logger.Named("session"), ready: make(chan struct{}), conns: map[net.Conn]struct{}{},
		door: newDoor(cfg.MaxConnsPerHost)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.raft = &raftLayer{port: p, accepted: make(chan net.Conn), closed: make(chan struct{})}
	p.nodes = &Nodes{port: p, sessions: map[string][]*nodeSession{}, holders: map[string]string{}}
	p.peers = &peers{port: p, sessions: map[string]*peer{}}
	return p, nil
}

// Addr is the host:port under which others reach this port.
func (p *Port) Addr() string { return p.cfg.Advertise }

// Nodes is the registry of nodes.
func (p *Port) Nodes() *Nodes { return p.nodes }

// Run accepts connections until ctx ends or Close. It returns when all sessions have ended.
func (p *Port) Run(ctx context.Context, h Handlers) error {
	if len(p.cfg.Key) == 0 {
		p.log.Warn("no cluster key is configured: every server that reaches this port may join in")
	}
	p.mu.Lock()
	p.handlers = h
	p.mu.Unlock()
	close(p.ready)
	stop := context.AfterFunc(ctx, p.shut)
	defer stop()
	var failed error
	for {
		conn, err := p.cfg.Listener.Accept()
		if err != nil {
			if p.ctx.Err() == nil && !errors.Is(err, net.ErrClosed) && isTemporary(err) {
				p.log.Warn("could not accept a connection", "error", err)
				if !sleep(p.ctx, 50*time.Millisecond) { // out of descriptors: others must close first
					break
				}
				continue
			}
			if p.ctx.Err() == nil {
				failed = fmt.Errorf("accept on %s: %w", p.cfg.Listener.Addr(), err)
			}
			break
		}
		guest, news := p.door.enter(conn)
		if guest == nil && news {
			p.log.Warn("refused a connection: its host has too many (limits.rpc_max_conns_per_client)",
				"remote", conn.RemoteAddr(), "limit", p.cfg.MaxConnsPerHost)
		}
		if guest == nil {
			_ = conn.Close()
			continue
		}
		if !p.own(conn) {
			guest.leave()
			_ = conn.Close()
			continue
		}
		go func() {
			defer p.owned.Done()
			defer guest.leave()
			p.accept(conn, guest)
		}()
	}
	p.shut()
	p.owned.Wait()
	return failed
}

// Close ends all sessions and waits for them.
func (p *Port) Close() error {
	p.shut()
	p.owned.Wait()
	return nil
}

func (p *Port) shut() {
	p.once.Do(func() {
		p.mu.Lock()
		p.closed = true
		conns := p.conns
		p.conns = map[net.Conn]struct{}{}
		p.mu.Unlock()
		p.cancel()
		_ = p.cfg.Listener.Close()
		_ = p.raft.Close()
		for conn := range conns {
			_ = conn.Close()
		}
		p.peers.close()
	})
}

// own counts a connection among those that Close ends and awaits.
func (p *Port) own(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns[conn] = struct{}{}
	p.owned.Add(1)
	return true
}

func (p *Port) disown(conn net.Conn) {
	p.mu.Lock()
	delete(p.conns, conn)
	p.mu.Unlock()
}

// accept greets one connection and serves it to its end.
func (p *Port) accept(raw net.Conn, guest *guest) {
	defer p.disown(raw)
	tune(raw)
	conn, err := p.secure(raw)
	if err != nil {
		_ = raw.Close()
		p.log.Warn("refused a connection", "remote", raw.RemoteAddr(), "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.cfg.HandshakeTimeout)
	hello, err := wire.Greet(ctx, conn, wire.AcceptConfig{
		Server: p.cfg.ServerID, Region: p.cfg.Region, Key: p.cfg.Key, Admit: p.admit,
	})
	cancel()
	if err != nil {
		_ = conn.Close()
		if p.ctx.Err() == nil {
			p.log.Warn("refused a connection", "remote", raw.RemoteAddr(), "error", err)
		}
		return
	}
	guest.greeted(len(p.cfg.Key) > 0 && hello.Protocol != wire.ByteNode)
	switch hello.Protocol {
	case wire.ByteRaft:
		p.disown(raw) // raft closes it
		p.raft.offer(conn)
	case wire.ByteNode:
		p.serveNode(conn, hello)
	case wire.ByteServer:
		p.serveServer(conn, hello)
	}
}

// secure looks at the first byte when TLS is configured: then nothing else is taken.
func (p *Port) secure(raw net.Conn) (net.Conn, error) {
	if p.cfg.TLS == nil {
		return raw, nil
	}
	_ = raw.SetReadDeadline(time.Now().Add(p.cfg.HandshakeTimeout))
	pc := &peekedConn{Conn: raw, br: bufio.NewReaderSize(raw, 16)}
	first, err := pc.br.Peek(1)
	if err != nil {
		return nil, fmt.Errorf("read first byte: %w", err)
	}
	if first[0] != wire.ByteTLS {
		return nil, structs.Errorf(structs.CodeInvalid, "connection does not use TLS, which is configured on this port")
	}
	return tls.Server(pc, p.cfg.TLS), nil
}

// peekedConn is a connection of which some bytes were looked at.
type peekedConn struct {
	net.Conn
	br *bufio.Reader
}

func (c *peekedConn) Read(b []byte) (int, error) { return c.br.Read(b) }

// admit refuses a node with a secret that is not the known one. An unknown node may introduce itself; nothing is sent
// to it before it registered.
func (p *Port) admit(h wire.Hello) error {
	if secret, known := p.cfg.NodeSecret(h.NodeID); known && !sameSecret(secret, h.SecretID) {
		return structs.Errorf(structs.CodePermission, "node secret ID does not match")
	}
	return nil
}

func (p *Port) serveNode(conn net.Conn, hello wire.Hello) {
	select {
	case <-p.ready:
	case <-p.ctx.Done():
		_ = conn.Close()
		return
	}
	// The node pings; a node that hangs is found by its heartbeats, a dead host by TCP.
	s, err := wire.Accepted(conn, wire.Config{Logger: p.log, KeepAlive: -1})
	if err != nil {
		p.log.Warn("could not open a node's session", "node_id", hello.NodeID, "error", err)
		return
	}
	entry := &nodeSession{Session: s, nodeID: hello.NodeID, secret: hello.SecretID}
	p.nodes.add(entry)
	if err := p.admit(hello); err != nil {
		_ = s.Close() // the node registered, with another secret, since the handshake
	}
	p.log.Debug("node connected", "node_id", hello.NodeID, "remote", conn.RemoteAddr())
	id := route.Identity{Kind: route.NodeSession, NodeID: hello.NodeID, Addr: conn.RemoteAddr().String()}
	_ = s.Serve(handlerFor(p.handlers.Node, id))
	p.nodes.remove(entry)
	p.log.Debug("node disconnected", "node_id", hello.NodeID, "remote", conn.RemoteAddr())
}

func (p *Port) serveServer(conn net.Conn, hello wire.Hello) {
	select {
	case <-p.ready:
	case <-p.ctx.Done():
		_ = conn.Close()
		return
	}
	s, err := wire.Accepted(conn, wire.Config{Logger: p.log, MaxRequests: 1 << 16})
	if err != nil {
		p.log.Warn("could not open a server's session", "server", hello.Server, "error", err)
		return
	}
	_ = s.Serve(handlerFor(p.handlers.Server, serverIdentity(hello.Server, conn)))
}

func serverIdentity(id string, conn net.Conn) route.Identity {
	return route.Identity{Kind: route.ServerSession, Server: id, Addr: conn.RemoteAddr().String()}
}

func handlerFor(f func(route.Identity) http.Handler, id route.Identity) http.Handler {
	if f == nil {
		return nil
	}
	return f(id)
}

// dial connects to another server and proves the key.
func (p *Port) dial(ctx context.Context, addr string, protocol byte) (net.Conn, wire.Welcome, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.DialTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, wire.Welcome{}, fmt.Errorf("dial server: %w", err)
	}
	tune(conn)
	if p.cfg.TLS != nil {
		conn = tls.Client(conn, p.cfg.TLS)
	}
	welcome, err := wire.Prove(ctx, conn, protocol, wire.Hello{Server: p.cfg.ServerID, Region: p.cfg.Region}, p.cfg.Key)
	if err != nil {
		_ = conn.Close()
		return nil, welcome, fmt.Errorf("dial server %s: %w", addr, err)
	}
	return conn, welcome, nil
}

// tune lets the kernel find a peer whose host is gone.
func tune(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second,
			Count: 3})
		giveUp(tcp)
	}
}

func isTemporary(err error) bool {
	var ne interface{ Temporary() bool }
	return errors.As(err, &ne) && ne.Temporary()
}

// sleep waits for d, or says false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
