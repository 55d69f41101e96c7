package session

import (
	"bufio"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// past is a deadline that unblocks whoever waits.
var past = time.Unix(1, 0)

var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4096) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 8192) }}
)

// rawConn is a stream after an upgrade: plain bytes in both directions. It reads what its buffer holds first.
type rawConn struct {
	*yamux.Stream
	br *bufio.Reader
}

var _ net.Conn = (*rawConn)(nil)

func (c *rawConn) Read(p []byte) (int, error) { return c.br.Read(p) }

// CloseWrite ends this side's bytes; the other side's may still be read.
func (c *rawConn) CloseWrite() error { return c.Stream.Close() }

// Close ends both directions and unblocks readers.
func (c *rawConn) Close() error {
	err := c.Stream.Close()
	_ = c.SetDeadline(past)
	return err
}
