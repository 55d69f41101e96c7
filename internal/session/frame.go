package session

import (
	"encoding/binary"
	"net"
	"sync"
)

// yamux writes the header and the body of a frame separately. frameConn joins them into one write, which halves the
// system calls and packets of small requests. Only yamux's sender writes, one frame at a time.
type frameConn struct {
	net.Conn
	header  [frameHeader]byte
	holding bool
}

// The parts of yamux's frame header that matter here: byte 1 is the type, 0 data; the last four are the length.
const (
	frameHeader = 12
	frameJoin   = 16 << 10 // bodies up to this size are copied behind their header
)

var frameBuffers = sync.Pool{New: func() any { return new([frameHeader + frameJoin]byte) }}

func (c *frameConn) Write(p []byte) (int, error) {
	if !c.holding {
		if len(p) == frameHeader && p[1] == 0 && binary.BigEndian.Uint32(p[8:]) > 0 {
			copy(c.header[:], p)
			c.holding = true
			return len(p), nil
		}
		return c.Conn.Write(p)
	}
	c.holding = false
	if len(p) > frameJoin {
		if _, err := c.Conn.Write(c.header[:]); err != nil {
			return 0, err
		}
		return c.Conn.Write(p)
	}
	buf := frameBuffers.Get().(*[frameHeader + frameJoin]byte)
	defer frameBuffers.Put(buf)
	n := copy(buf[:], c.header[:])
	n += copy(buf[n:], p)
	n, err := c.Conn.Write(buf[:n])
	return max(0, n-frameHeader), err
}
