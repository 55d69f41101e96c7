package session

import (
	"net/http"
	"sync"
	"time"
)

// finishTimeout bounds the time which the other side may take to read a parked request's answer.
const finishTimeout = 30 * time.Second

// Parked is a request whose handler has returned and whose answer comes later, from any goroutine. Exactly one of
// Finish and Drop has an effect, and only the first time.
type Parked struct {
	w       *response
	mu      sync.Mutex
	ended   bool
	onClose func()
}

// Park takes the request of w away from its handler, which must then return without touching w again. It gives false
// when w does not belong to a session (wrappers are looked through), when its answer has begun, or when the session
// has ended: then the handler answers itself. onClose, which may be nil, is called once if the session ends first; it
// must not block.
func Park(w http.ResponseWriter, onClose func()) (*Parked, bool) {
	res := parkable(w)
	if res == nil || res.taken() || res.status != 0 {
		return nil, false
	}
	res.x.detach()
	if res.x.body != nil {
		res.x.body.shut() // what a handler has not read before it parks is lost
	}
	p := &Parked{w: res, onClose: onClose}
	s := res.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, false
	}
	s.parked[p] = struct{}{}
	res.parked = true
	res.x.br.Reset(nil)
	readers.Put(res.x.br)
	res.x.br = nil
	res.x.st.Shrink()
	return p, true
}

// parkable looks through wrappers for the session's own writer.
func parkable(w http.ResponseWriter) *response {
	for {
		if res, ok := w.(*response); ok {
			return res
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		w = u.Unwrap()
	}
}

// Header is what Finish will send; it may be changed until then.
func (p *Parked) Header() http.Header { return p.w.header }

// Finish answers the request. It may block until the other side has taken the answer, at most 30 s.
func (p *Parked) Finish(status int, body []byte) error {
	if !p.end() {
		return http.ErrHandlerTimeout
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.w
	_ = w.x.st.SetWriteDeadline(time.Now().Add(finishTimeout))
	w.status = status // w.parked stays: the serving goroutine may only now look at it
	w.held = body
	if w.head || !w.bodyAllowed() {
		w.held = nil
	}
	w.length = -1
	w.header.Del("Content-Length")
	err := w.finish()
	p.closeStream()
	return err
}

// Drop gives the request up: the other side sees its stream end. It is safe to call after Finish.
func (p *Parked) Drop() {
	if !p.end() {
		return
	}
	p.closeStream()
	if p.onClose != nil && sessionEnded(p.w.s) {
		p.onClose()
	}
}

func sessionEnded(s *Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// end claims the one ending.
func (p *Parked) end() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	p.ended = true
	s := p.w.s
	s.mu.Lock()
	delete(s.parked, p)
	s.mu.Unlock()
	return true
}

func (p *Parked) closeStream() {
	_ = p.w.x.st.Close()
	_ = p.w.x.st.SetDeadline(past)
}
