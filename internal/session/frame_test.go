package session

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// recorder is a connection that keeps each write.
type recorder struct {
	net.Conn
	writes [][]byte
}

func (r *recorder) Write(p []byte) (int, error) {
	r.writes = append(r.writes, bytes.Clone(p))
	return len(p), nil
}

func frame(kind byte, flags uint16, length uint32) []byte {
	h := make([]byte, frameHeader)
	h[1] = kind
	binary.BigEndian.PutUint16(h[2:], flags)
	binary.BigEndian.PutUint32(h[8:], length)
	return h
}

func TestFramesAreJoined(t *testing.T) {
	const fin = 4
	body, large := []byte("twelve bytes"), make([]byte, frameJoin+1)
	for _, c := range []struct {
		name   string
		frames [][]byte
		want   []int // sizes of the writes
	}{
		{"a body with its header", [][]byte{frame(typeData, 0, 12), body}, []int{24}},
		{"what opens a stream with the request", [][]byte{frame(typeWindow, flagOpen, 0), frame(typeData, 0, 12), body}, []int{36}},
		{"what accepts a stream with the answer", [][]byte{frame(typeWindow, flagAccept, 0), frame(typeData, 0, 12), body}, []int{36}},
		{"what accepts a stream with any other frame", [][]byte{frame(typeWindow, flagAccept, 0), frame(typeWindow, fin, 0)}, []int{24}},
		{"no more than one is held", [][]byte{frame(typeWindow, flagAccept, 0), frame(typeWindow, flagAccept, 0)}, []int{24}},
		{"an end goes out at once", [][]byte{frame(typeWindow, flagAccept|fin, 0)}, []int{12}},
		{"a large body is not copied", [][]byte{frame(typeWindow, flagOpen, 0), frame(typeData, 0, frameJoin+1), large}, []int{24, len(large)}},
	} {
		r := &recorder{}
		conn := &frameConn{Conn: r}
		var sent []byte
		for _, f := range c.frames {
			if n, err := conn.Write(f); n != len(f) || err != nil {
				t.Errorf("%s: %d of %d bytes, %v", c.name, n, len(f), err)
			}
			sent = append(sent, f...)
		}
		var sizes []int
		for _, w := range r.writes {
			sizes = append(sizes, len(w))
		}
		if got := bytes.Join(r.writes, nil); !bytes.Equal(got, sent) || len(sizes) != len(c.want) {
			t.Errorf("%s: writes of %v bytes, want %v", c.name, sizes, c.want)
		}
	}
}

// counting is a connection that counts what it sends.
type counting struct {
	net.Conn
	writes atomic.Int64
}

func (c *counting) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// Requests in the other direction show that it lives: only when they cease is it asked.
func TestWhoIsHeardIsSentNoPings(t *testing.T) {
	const every = 200 * time.Millisecond
	a, b := tcpPair(t)
	count := &counting{Conn: a}
	s, err := Dialed(count, Config{KeepAlive: every})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Accepted(b, Config{KeepAlive: -1})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 2)
	go func() { served <- s.Serve(nil) }()
	go func() { served <- other.Serve(nil) }()
	tick := time.NewTicker(every / 8)
	defer tick.Stop()
	for range 24 { // three times as long as it may be quiet
		<-tick.C
		if _, err := other.Ping(); err != nil {
			t.Fatal(err)
		}
	}
	answers := count.writes.Load()
	if answers > 24 {
		t.Errorf("%d frames were sent, of which 24 are answers", answers)
	}
	for count.writes.Load() == answers {
		<-tick.C
	}
	_, _ = s.Close(), other.Close()
	<-served
	<-served
}
