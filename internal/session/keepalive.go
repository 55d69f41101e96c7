package session

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// keepAlive finds a session whose other side is gone. A timer looks whether it was heard: only one that is quiet costs
// anything more. A nil one does nothing.
type keepAlive struct {
	s     *Session
	every time.Duration

	mu    sync.Mutex
	timer *time.Timer // nil once stopped
	dead  error       // why it ended the session
}

func newKeepAlive(s *Session, every time.Duration) *keepAlive {
	k := &keepAlive{s: s, every: every}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = time.AfterFunc(every, k.look)
	return k
}

// look is the timer's.
func (k *keepAlive) look() {
	quiet := k.s.conn.quiet()
	if quiet >= k.every {
		_, err := k.s.mux.Ping()
		if errors.Is(err, yamux.ErrSessionShutdown) {
			return
		}
		if err != nil {
			k.mu.Lock()
			k.dead = fmt.Errorf("nothing was heard for %s: %w", k.s.conn.quiet().Round(time.Millisecond), yamux.ErrKeepAliveTimeout)
			k.mu.Unlock()
			_ = k.s.Close() // its connection is dead
			return
		}
		quiet = 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil && !k.s.mux.IsClosed() {
		k.timer.Reset(k.every - quiet)
	}
}

// stop ends the pings; the error says that one found the other side gone.
func (k *keepAlive) stop() error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
	return k.dead
}
