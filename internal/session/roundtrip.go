package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/hashicorp/yamux"
)

// inlineBody is the size in bytes up to which a request's body is written before the answer is awaited. It is far
// below a stream's window, so that this never waits for the other side.
const inlineBody = 32 << 10

// call is one request that this side sent.
type call struct {
	st   *yamux.Stream
	br   *bufio.Reader
	stop func() bool // ends the watch over the request's context
	body io.Closer   // of the request
	sent chan struct{}
	once sync.Once
}

// RoundTrip sends a request to the other side, as http.RoundTripper. Cancelling its context closes the stream, which
// cancels the handler there. An answer of 101 has an io.ReadWriteCloser as its body, for the raw bytes of both
// directions; CloseWrite on it ends one of them.
func (s *Session) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		closeBody(req)
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	st, err := s.mux.OpenStream()
	if err != nil {
		closeBody(req)
		return nil, fmt.Errorf("%w: open stream: %w", ErrNotSent, err)
	}
	c := &call{st: st, br: readers.Get().(*bufio.Reader), body: req.Body, sent: make(chan struct{})}
	c.br.Reset(st)
	c.stop = context.AfterFunc(ctx, c.abort)
	if req.Body == nil || req.Body == http.NoBody || (req.ContentLength > 0 && req.ContentLength <= inlineBody) {
		c.send(req)
	} else {
		go c.send(req)
	}
	res, err := c.read(req)
	if err != nil {
		c.finish(true)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if s.mux.IsClosed() || errors.Is(err, io.EOF) {
			err = fmt.Errorf("session ended: %w", err)
		}
		return nil, fmt.Errorf("read answer to %s %s: %w", req.Method, req.URL.Path, err)
	}
	return res, nil
}

// send writes the request. An error shows where the answer is read.
func (c *call) send(req *http.Request) {
	defer close(c.sent)
	out := *req
	if out.Host == "" && (out.URL == nil || out.URL.Host == "") {
		u := url.URL{}
		if req.URL != nil {
			u = *req.URL
		}
		out.URL, out.Host = &u, "session"
	}
	bw := writers.Get().(*bufio.Writer)
	bw.Reset(c.st)
	err := out.Write(bw)
	if err == nil {
		err = bw.Flush()
	}
	bw.Reset(nil)
	writers.Put(bw)
	if err != nil && !errors.Is(err, yamux.ErrStreamClosed) && !errors.Is(err, yamux.ErrTimeout) {
		// Without the whole request the other side would wait for ever.
		c.abort()
	}
}

func (c *call) read(req *http.Request) (*http.Response, error) {
	for {
		res, err := http.ReadResponse(c.br, req)
		if err != nil {
			return nil, err
		}
		switch {
		case res.StatusCode == http.StatusSwitchingProtocols:
			res.Body = &upgradedBody{rawConn: &rawConn{Stream: c.st, br: c.br}, call: c}
		case res.StatusCode < 200:
			continue
		case res.Body == http.NoBody || req.Method == http.MethodHead:
			c.finish(true)
			res.Body = http.NoBody
		default:
			res.Body = &answerBody{Reader: res.Body, call: c, ctx: req.Context()}
		}
		return res, nil
	}
}

// abort unblocks both directions; the other side sees the stream end.
func (c *call) abort() {
	_ = c.st.SetDeadline(past) // first, so that what the other side says to the end of the stream is not waited for
	_ = c.st.Close()
	if c.body != nil {
		_ = c.body.Close()
	}
}

// finish ends the exchange. reuse says that nobody reads the stream any more.
func (c *call) finish(reuse bool) {
	c.once.Do(func() {
		c.stop()
		_ = c.st.Close()
		_ = c.st.SetDeadline(past)
		select {
		case <-c.sent:
		default:
			if c.body != nil {
				_ = c.body.Close() // unblocks a writer that waits for more of it
			}
		}
		if reuse {
			c.br.Reset(nil)
			readers.Put(c.br)
		}
	})
}

// answerBody ends the exchange when it was read to its end, or closed.
type answerBody struct {
	io.Reader
	call *call
	ctx  context.Context
	mu   sync.Mutex // Close may come while another goroutine reads
	done bool
}

func (b *answerBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.Reader.Read(p)
	switch {
	case err == io.EOF:
		b.call.finish(true)
		b.Reader = eof{}
	case err != nil && b.ctx.Err() != nil:
		err = b.ctx.Err()
	}
	return n, err
}

func (b *answerBody) Close() error {
	// First unblock a reader, which holds the lock.
	_ = b.call.st.Close()
	_ = b.call.st.SetDeadline(past)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = true
	b.call.finish(true)
	return nil
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// upgradedBody is the body of a 101 answer.
type upgradedBody struct {
	*rawConn
	call *call
}

func (b *upgradedBody) Close() error {
	b.call.finish(false) // a reader may be under way; its buffer is left to the collector
	return nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
