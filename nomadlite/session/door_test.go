package session

import (
	"context"
	"net"
	"testing"
	"time"
)

// from is a connection from another address.
type from struct {
	net.Conn
	addr   string
	closed bool
}

func (f *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.addr), Port: 1} }

func (f *from) Close() error {
	f.closed = true
	return nil
}

func TestDoor(t *testing.T) {
	d := newDoor(2)
	d.handshakes = 3
	enter := func(addr string) (*guest, *from, bool) {
		conn := &from{addr: addr}
		g, news := d.enter(conn)
		return g, conn, news
	}
	a1, first, _ := enter("10.0.0.1")
	a2, second, _ := enter("10.0.0.1")
	if g, _, news := enter("10.0.0.1"); g != nil || !news {
		t.Error("a third one of its host came in, or it is no news")
	}
	if g, _, news := enter("10.0.0.1"); g != nil || news {
		t.Error("a fourth one came in, or is news")
	}
	a2.greeted(false)
	if g, _, _ := enter("10.0.0.1"); g != nil {
		t.Error("one that was greeted is not counted")
	}
	for range 2 {
		if g, _, _ := enter("127.0.0.1"); g == nil {
			t.Error("this machine's own are counted")
		}
	}
	if first.closed {
		t.Error("closed though there was room")
	}
	if g, _, _ := enter("10.0.0.2"); g == nil || !first.closed || second.closed {
		t.Error("the oldest without a handshake did not have to go")
	}
	a1.leave()
	a1.leave() // once more does no harm
	if g, _, _ := enter("10.0.0.1"); g == nil {
		t.Error("the place of one that has left is not free")
	}
	a2.greeted(true) // a server
	if g, _, _ := enter("10.0.0.1"); g == nil {
		t.Error("a server's connection is counted")
	}
}

// listener gives its connections other addresses.
type listener struct {
	net.Listener
	addr string
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &elsewhere{Conn: conn, addr: l.addr}, nil
}

type elsewhere struct {
	net.Conn
	addr string
}

func (e *elsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(e.addr), Port: 1} }

// TestSilentConnectionsAreBounded: in number by host, and in time, so that a host which was full can come in again.
func TestSilentConnectionsAreBounded(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Listener: &listener{Listener: tcp, addr: "10.0.0.1"}, HandshakeTimeout: 300 * time.Millisecond, MaxConnsPerHost: 3})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Run(context.Background(), Handlers{}) }()
	defer func() {
		_ = p.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", tcp.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		return conn
	}
	began := time.Now()
	var silent []net.Conn
	for range 3 {
		silent = append(silent, dial())
	}
	refused := dial()
	defer refused.Close()
	if n, err := refused.Read(make([]byte, 1)); err == nil || n > 0 {
		t.Errorf("one too many was greeted: %v", err)
	}
	for _, conn := range silent {
		defer conn.Close()
		for b := make([]byte, 64); err == nil; _, err = conn.Read(b) { // it is told why before
		}
		err = nil
	}
	if took := time.Since(began); took < 250*time.Millisecond || took > 5*time.Second {
		t.Errorf("silent ones were closed after %s", took)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		if _, err = dialNode(t, &member{Port: p}, "n1", "secret", nil); err == nil {
			return
		}
		if time.Now().After(deadline) { // the server may see the ends a moment later than the other end
			t.Fatalf("no place is free again: %v", err)
		}
	}
}
