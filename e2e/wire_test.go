package e2e

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// wire is a TCP proxy that can hold what it carries, in both directions, and deliver it later.
type wire struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	conns []net.Conn
	only  []byte        // hold concerns connections whose first words have this in them
	held  chan struct{} // closed while nothing is held
}

// link is one connection through a wire.
type link struct{ hello []byte } // the first words of who opened it; under the wire's lock

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, to: to, held: make(chan struct{})}
	close(w.held)
	var work sync.WaitGroup
	work.Go(func() { w.accept(&work) })
	t.Cleanup(func() {
		w.release()
		_ = l.Close()
		w.mu.Lock()
		for _, c := range w.conns {
			_ = c.Close()
		}
		w.mu.Unlock()
		work.Wait()
	})
	return w
}

func (w *wire) addr() string { return w.listener.Addr().String() }

func (w *wire) accept(work *sync.WaitGroup) {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, near, far)
		w.mu.Unlock()
		l := &link{}
		work.Go(func() { w.carry(near, far, l, true) })
		work.Go(func() { w.carry(far, near, l, false) }) // the other side speaks first
	}
}

// carry copies until one side ends; both end then.
func (w *wire) carry(from, to net.Conn, l *link, first bool) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			w.mu.Lock()
			if first {
				l.hello, first = bytes.Clone(buf[:n]), false
			}
			held, concerned := w.held, bytes.Contains(l.hello, w.only)
			w.mu.Unlock()
			if concerned {
				<-held
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// of names the only node, by its id, whose connections hold concerns.
func (w *wire) of(nodeID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.only = []byte(nodeID)
}

// hold keeps back all that comes from now on.
func (w *wire) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = make(chan struct{})
}

// release delivers what was held.
func (w *wire) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.held:
	default:
		close(w.held)
	}
}
