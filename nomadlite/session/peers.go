package session

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	wire "github.com/nomadlite/nomadlite/internal/session"
)

// peers keeps one session to each server that was asked for, and opens it again when it has ended.
type peers struct {
	port     *Port
	mu       sync.Mutex
	sessions map[string]*peer
}

// peer is the session to one address: being opened, open, or failed.
type peer struct {
	opened  chan struct{} // closed when session or err is set
	session *wire.Session
	err     error
}

// get gives the session to addr, opening it when there is none. Callers that come together share one attempt.
func (p *peers) get(ctx context.Context, addr string) (*wire.Session, error) {
	for {
		p.mu.Lock()
		e := p.sessions[addr]
		if e == nil {
			if p.port.ctx.Err() != nil {
				p.mu.Unlock()
				return nil, fmt.Errorf("%w: port is closed", wire.ErrNotSent)
			}
			e = &peer{opened: make(chan struct{})}
			p.sessions[addr] = e
			p.port.owned.Add(1)
			go p.open(addr, e)
		}
		p.mu.Unlock()
		select {
		case <-e.opened:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", wire.ErrNotSent, context.Cause(ctx))
		}
		if e.err != nil {
			return nil, fmt.Errorf("%w: %w", wire.ErrNotSent, e.err)
		}
		select {
		case <-e.session.Done():
			p.forget(addr, e) // ended meanwhile: once more
		default:
			return e.session, nil
		}
	}
}

// open dials, then serves what the other server asks on the same session, to its end.
func (p *peers) open(addr string, e *peer) {
	defer p.port.owned.Done()
	conn, welcome, err := p.port.dial(p.port.ctx, addr, wire.ByteServer)
	if err == nil {
		e.session, err = wire.Dialed(conn, wire.Config{Logger: p.port.log, MaxRequests: 1 << 16})
	}
	if err != nil {
		e.err = err
		p.forget(addr, e)
		close(e.opened)
		return
	}
	stop := context.AfterFunc(p.port.ctx, func() { _ = e.session.Close() })
	defer stop()
	close(e.opened)
	select {
	case <-p.port.ready:
	case <-p.port.ctx.Done():
	}
	p.port.mu.Lock()
	handler := p.port.handlers.Server
	p.port.mu.Unlock()
	_ = e.session.Serve(handlerFor(handler, serverIdentity(welcome.Server, conn)))
	p.forget(addr, e)
}

func (p *peers) forget(addr string, e *peer) {
	p.mu.Lock()
	if p.sessions[addr] == e {
		delete(p.sessions, addr)
	}
	p.mu.Unlock()
}

func (p *peers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.sessions {
		select {
		case <-e.opened:
			if e.session != nil {
				_ = e.session.Close()
			}
		default: // its dial ends with the port's context
		}
	}
}

// Peer sends requests to the server at addr (host:port of its 4647) over the session to it. An error that is
// session.ErrNotSent means that the request may be sent elsewhere.
func (p *Port) Peer(addr string) http.RoundTripper { return peerTripper{p.peers, addr} }

type peerTripper struct {
	peers *peers
	addr  string
}

func (t peerTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	s, err := t.peers.get(req.Context(), t.addr)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	return s.RoundTrip(req)
}
