package session

import (
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// yamux writes the header and the body of a frame separately, and says by a frame of its own that a stream is opened or
// accepted. frameConn joins such parts with what follows them into one write, which halves the system calls and packets of
// small requests. Only yamux's sender writes, one frame at a time. It also notes when the other side was heard last.
//
// What opens a stream is followed by a request at once. What accepts one may stay here for as long as the request waits for
// its answer: the other side needs it only to bound how many streams it opens, and the next frame of any stream takes it along.
type frameConn struct {
	net.Conn
	heard  atomic.Int64 // when bytes came last: nanoseconds since the session began
	began  time.Time
	held   [2 * frameHeader]byte
	holds  int  // bytes
	joined bool // the last of them are the header of a body that follows
}

// The parts of yamux's frame header that matter here: byte 1 is the type, then two bytes of flags; the last four are the
// length.
const (
	frameHeader = 12
	frameJoin   = 16 << 10 // bodies up to this size are copied behind what is held

	typeData   = 0
	typeWindow = 1
	flagOpen   = 1
	flagAccept = 2
)

var frameBuffers = sync.Pool{New: func() any { return new([2*frameHeader + frameJoin]byte) }}

func (c *frameConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(int64(time.Since(c.began)))
	}
	return n, err
}

// quiet is how long nothing has come.
func (c *frameConn) quiet() time.Duration { return time.Since(c.began) - time.Duration(c.heard.Load()) }

func (c *frameConn) Write(p []byte) (int, error) {
	if !c.joined && len(p) == frameHeader {
		flags, length := binary.BigEndian.Uint16(p[2:]), binary.BigEndian.Uint32(p[8:])
		c.joined = p[1] == typeData && length > 0
		if c.joined || c.holds == 0 && p[1] == typeWindow && (flags == flagOpen || flags == flagAccept) {
			c.holds += copy(c.held[c.holds:], p)
			return len(p), nil
		}
	}
	first := c.held[:c.holds]
	c.joined, c.holds = false, 0
	switch {
	case len(first) == 0:
		return c.Conn.Write(p)
	case len(p) > frameJoin:
		if _, err := c.Conn.Write(first); err != nil {
			return 0, err
		}
		return c.Conn.Write(p)
	}
	buf := frameBuffers.Get().(*[2*frameHeader + frameJoin]byte)
	defer frameBuffers.Put(buf)
	n := copy(buf[:], first)
	n += copy(buf[n:], p)
	n, err := c.Conn.Write(buf[:n])
	return max(0, n-len(first)), err
}
