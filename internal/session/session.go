package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/yamux"
)

// Config tunes a session. The zero value is good.
type Config struct {
	Logger hclog.Logger
	// KeepAlive is how long nothing may come from the other side before it is sent a ping; one that is unanswered for
	// WriteTimeout ends the session. 0 is 15 s, negative sends none.
	KeepAlive time.Duration
	// WriteTimeout ends the session when the connection takes no bytes for so long. 0 is 10 s.
	WriteTimeout time.Duration
	// MaxRequests bounds the requests being served at once; more are answered 429. 0 is 1024.
	MaxRequests int
}

// Session is one connection over which both sides send and serve requests.
type Session struct {
	mux     *yamux.Session
	conn    *frameConn
	log     hclog.Logger
	maxReqs int64
	alive   *keepAlive // nil: no pings

	base   context.Context // of every request being served
	cancel context.CancelFunc

	active  atomic.Int64
	serving sync.WaitGroup
	serve   atomic.Bool

	mu     sync.Mutex
	parked map[*Parked]struct{}
	ended  bool // no request may be parked any more
}

// ErrNotSent is in the error of a request of which no byte was sent: it may be sent elsewhere.
var ErrNotSent = errors.New("request was not sent")

// Dialed makes the session of the side that opened conn, after the handshake. The session owns conn.
func Dialed(conn net.Conn, cfg Config) (*Session, error) { return newSession(conn, cfg, yamux.Client) }

// Accepted makes the session of the side that accepted conn, after the handshake. The session owns conn.
func Accepted(conn net.Conn, cfg Config) (*Session, error) {
	return newSession(conn, cfg, yamux.Server)
}

type yamuxSide func(conn io.ReadWriteCloser, cfg *yamux.Config) (*yamux.Session, error)

func newSession(conn net.Conn, cfg Config, side yamuxSide) (*Session, error) {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.KeepAlive == 0 {
		cfg.KeepAlive = 15 * time.Second
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = 10 * time.Second
	}
	if cfg.MaxRequests == 0 {
		cfg.MaxRequests = 1024
	}
	mc := yamux.DefaultConfig()
	mc.LogOutput = nil
	mc.Logger = muxLogger{cfg.Logger}
	mc.AcceptBacklog = 128
	mc.EnableKeepAlive = false // it would ping those too that are heard anyway, and keep a goroutine for each session
	mc.ConnectionWriteTimeout = cfg.WriteTimeout
	mc.StreamCloseTimeout = time.Minute
	mc.StreamOpenTimeout = 0 // would cost a goroutine a request; pings find a dead peer
	frames := &frameConn{Conn: conn, began: time.Now()}
	mux, err := side(frames, mc)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("open session: %w", err)
	}
	s := &Session{mux: mux, conn: frames, log: cfg.Logger, maxReqs: int64(cfg.MaxRequests),
		parked: map[*Parked]struct{}{}}
	s.base, s.cancel = context.WithCancel(context.Background())
	if cfg.KeepAlive > 0 {
		s.alive = newKeepAlive(s, cfg.KeepAlive)
	}
	return s, nil
}

// Serve answers the other side's requests until the session ends, then cancels and awaits the handlers that still
// run. The owner of a session calls it exactly once; a nil handler answers 404.
func (s *Session) Serve(h http.Handler) error {
	if !s.serve.CompareAndSwap(false, true) {
		return errors.New("session is served already")
	}
	if h == nil {
		h = http.NotFoundHandler()
	}
	var err error
	for {
		var st *yamux.Stream
		if st, err = s.mux.AcceptStream(); err != nil {
			if !s.mux.IsClosed() && !errors.Is(err, yamux.ErrSessionShutdown) {
				continue // that stream could not be acknowledged; the session lives
			}
			break
		}
		s.serving.Add(1)
		go s.serveStream(st, h)
	}
	_ = s.mux.Close()
	s.cancel()
	s.dropParked()
	s.serving.Wait()
	if dead := s.alive.stop(); dead != nil {
		return dead
	}
	if errors.Is(err, yamux.ErrSessionShutdown) {
		return nil
	}
	return err
}

// Close ends the session: requests in flight fail, the contexts of those being served are cancelled. It does not wait
// for handlers (one of them may be the caller); Serve does.
func (s *Session) Close() error {
	err := s.mux.Close()
	s.cancel()
	_ = s.alive.stop()
	return err
}

// Done is closed when the session has ended, whoever ended it.
func (s *Session) Done() <-chan struct{} { return s.mux.CloseChan() }

// Ping measures the time to the other side and back.
func (s *Session) Ping() (time.Duration, error) { return s.mux.Ping() }

// RemoteAddr is the other end of the connection.
func (s *Session) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }

// Requests is the number of streams open in either direction.
func (s *Session) Requests() int { return s.mux.NumStreams() }

func (s *Session) dropParked() {
	s.mu.Lock()
	s.ended = true
	all := make([]*Parked, 0, len(s.parked))
	for p := range s.parked {
		all = append(all, p)
	}
	s.mu.Unlock()
	for _, p := range all {
		p.Drop()
	}
}

// muxLogger takes what yamux tells: news of streams that the other side gave up, and reasons of a session's end
// which its owner reports anyway.
type muxLogger struct{ log hclog.Logger }

func (l muxLogger) Print(v ...any)   { l.log.Trace(strings.TrimSpace(fmt.Sprint(v...))) }
func (l muxLogger) Println(v ...any) { l.log.Trace(strings.TrimSpace(fmt.Sprintln(v...))) }
func (l muxLogger) Printf(format string, v ...any) {
	if l.log.IsTrace() {
		l.log.Trace(strings.TrimSpace(fmt.Sprintf(format, v...)))
	}
}
