package session

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	wire "github.com/nomadlite/nomadlite/internal/session"
)

// raftLayer is raft's streams on the shared port. raft owns the connections which it gets.
type raftLayer struct {
	port     *Port
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

var _ raft.StreamLayer = (*raftLayer)(nil)

// StreamLayer is what raft's network transport uses.
func (p *Port) StreamLayer() raft.StreamLayer { return p.raft }

// Accept waits for the next connection that a server opened for raft.
func (l *raftLayer) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// offer hands a connection to raft.
func (l *raftLayer) offer(conn net.Conn) {
	select {
	case l.accepted <- conn:
	case <-l.closed:
		_ = conn.Close()
	}
}

// Close ends Accept; the port stays.
func (l *raftLayer) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is the address under which others reach this server.
func (l *raftLayer) Addr() net.Addr { return advertised(l.port.cfg.Advertise) }

// Dial opens a connection for raft.
func (l *raftLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx := l.port.ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	conn, _, err := l.port.dial(ctx, string(address), wire.ByteRaft)
	return conn, err
}

// advertised is a host:port as a net.Addr. It may be a name.
type advertised string

func (a advertised) Network() string { return "tcp" }
func (a advertised) String() string  { return string(a) }
