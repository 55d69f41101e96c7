package session

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// headerTimeout bounds the time in which a sender must have sent a request's header.
const headerTimeout = 30 * time.Second

// exchange is one request being served. It is the request's context: the stream's end cancels it. Watching for that
// end needs a goroutine, so it begins only when somebody asks for Done, and when the request's body has been read.
type exchange struct {
	context.Context
	cancel context.CancelFunc
	st     *yamux.Stream
	br     *bufio.Reader
	body   *body // nil: the request has none

	mu       sync.Mutex
	bodyRead bool
	wanted   bool
	detached bool          // nobody may begin to watch
	watched  chan struct{} // closed when the watcher has gone; nil: there was none
}

// Done begins to watch the stream.
func (x *exchange) Done() <-chan struct{} {
	x.mu.Lock()
	x.wanted = true
	x.watch()
	x.mu.Unlock()
	return x.Context.Done()
}

// bodyEOF says that what comes next on the stream can only be its end, or an upgrade's bytes.
func (x *exchange) bodyEOF() {
	x.mu.Lock()
	x.bodyRead = true
	x.watch()
	x.mu.Unlock()
}

func (x *exchange) watch() {
	if !x.wanted || !x.bodyRead || x.detached || x.watched != nil {
		return
	}
	gone := make(chan struct{})
	x.watched = gone
	go func() {
		defer close(gone)
		if _, err := x.br.Peek(1); err == nil || errors.Is(err, yamux.ErrTimeout) {
			return // an upgrade's bytes, or detach
		}
		x.cancel()
		// Nobody reads the answer any more: writers must not wait for the stream's window.
		_ = x.st.SetWriteDeadline(past)
	}()
}

// detach stops watching and waits for the watcher, after which the caller alone reads the stream.
func (x *exchange) detach() {
	x.mu.Lock()
	x.detached = true
	gone := x.watched
	x.mu.Unlock()
	if gone != nil {
		_ = x.st.SetReadDeadline(past)
		<-gone
		_ = x.st.SetReadDeadline(time.Time{})
	}
}

// body is a request's body as handlers see it: its end begins the watch, and closing it does not wait for the rest.
// A handler that forwards may leave a reader behind; shut waits for that one.
type body struct {
	x      *exchange
	closed atomic.Bool
	mu     sync.Mutex // held while reading
	from   io.Reader
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.from.Read(p)
	if err == io.EOF {
		b.x.bodyEOF()
	}
	return n, err
}

func (b *body) Close() error {
	b.closed.Store(true)
	return nil
}

// shut makes sure that nobody reads the stream any more, whose read deadline has passed.
func (b *body) shut() {
	b.closed.Store(true)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.from = nil
}

// serveStream reads one request, runs its handler and completes the answer.
func (s *Session) serveStream(st *yamux.Stream, h http.Handler) {
	defer s.serving.Done()
	n := s.active.Add(1)
	defer s.active.Add(-1)

	x := &exchange{st: st, br: readers.Get().(*bufio.Reader)}
	x.br.Reset(st)
	_ = st.SetReadDeadline(time.Now().Add(headerTimeout))
	req, err := http.ReadRequest(x.br)
	_ = st.SetReadDeadline(time.Time{})
	if err != nil {
		if !errors.Is(err, io.EOF) {
			s.log.Debug("could not read a request", "remote", s.RemoteAddr(), "error", err)
		}
		s.closeStream(x)
		return
	}
	x.Context, x.cancel = context.WithCancel(s.base)
	defer x.cancel()
	if req.Body == nil || req.Body == http.NoBody {
		req.Body = http.NoBody
		x.bodyEOF()
	} else {
		x.body = &body{from: req.Body, x: x}
		req.Body = x.body
	}
	req.RemoteAddr = s.conn.RemoteAddr().String()
	req = req.WithContext(x)

	w := newResponse(s, x, req)
	if n > s.maxReqs {
		http.Error(w, "too many requests on this session", http.StatusTooManyRequests)
	} else if !s.runHandler(w, req, h) {
		w.fail()
	}
	if w.taken() {
		return
	}
	if x.Err() != nil {
		w.fail() // the sender has gone: what the handler made of that is no answer
	}
	if err := w.finish(); err != nil && s.base.Err() == nil {
		s.log.Debug("could not complete an answer", "path", req.URL.Path, "error", err)
	}
	s.closeStream(x)
}

// runHandler gives false when the handler panicked: the answer must then not look complete.
func (s *Session) runHandler(w *response, req *http.Request, h http.Handler) (ok bool) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, is := p.(error); !is || !errors.Is(err, http.ErrAbortHandler) {
			s.log.Error("panic in handler", "path", req.URL.Path, "panic", p, "stack", string(debug.Stack()))
		}
		ok = false
	}()
	h.ServeHTTP(w, req)
	return true
}

func (s *Session) closeStream(x *exchange) {
	x.detach()
	_ = x.st.Close()
	_ = x.st.SetDeadline(past)
	if x.body != nil {
		x.body.shut()
	}
	x.br.Reset(nil)
	readers.Put(x.br)
	x.br = nil
}
