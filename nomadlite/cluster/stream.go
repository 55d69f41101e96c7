package cluster

import (
	"io"
	"net"
	"sync"

	"github.com/hashicorp/raft"
)

// ownedStream is a stream layer that closes the connections which it accepted when it is closed: raft's transport
// leaves them to the other side.
type ownedStream struct {
	raft.StreamLayer
	mu     sync.Mutex
	conns  map[*ownedConn]struct{}
	closed bool
}

type ownedConn struct {
	net.Conn
	layer *ownedStream
}

func own(layer raft.StreamLayer) *ownedStream {
	return &ownedStream{StreamLayer: layer, conns: map[*ownedConn]struct{}{}}
}

// Accept waits for the next connection.
func (s *ownedStream) Accept() (net.Conn, error) {
	conn, err := s.StreamLayer.Accept()
	if err != nil {
		return nil, err
	}
	c := &ownedConn{Conn: conn, layer: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	s.conns[c] = struct{}{}
	return c, nil
}

// Close ends Accept and all connections that it gave.
func (s *ownedStream) Close() error {
	s.mu.Lock()
	s.closed = true
	conns := s.conns
	s.conns = map[*ownedConn]struct{}{}
	s.mu.Unlock()
	for c := range conns {
		_ = c.Conn.Close()
	}
	return s.StreamLayer.Close()
}

// Read gives io.EOF once the layer is closed: an end that this server made is no fault.
func (c *ownedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.layer.mu.Lock()
		defer c.layer.mu.Unlock()
		if c.layer.closed {
			return n, io.EOF
		}
	}
	return n, err
}

// Close forgets the connection.
func (c *ownedConn) Close() error {
	c.layer.mu.Lock()
	delete(c.layer.conns, c)
	c.layer.mu.Unlock()
	return c.Conn.Close()
}
