package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a session's two ends over loopback TCP.
type pair struct {
	dialed, accepted *Session
	dialConn         net.Conn
}

func tcpPair(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

func newPair(t testing.TB, dialedServes, acceptedServes http.Handler) *pair {
	t.Helper()
	a, b := tcpPair(t)
	dialed, err := Dialed(a, Config{})
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := Accepted(b, Config{KeepAlive: -1})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Add(2)
	go func() { defer wg.Done(); _ = dialed.Serve(dialedServes) }()
	go func() { defer wg.Done(); _ = accepted.Serve(acceptedServes) }()
	t.Cleanup(func() {
		_ = dialed.Close()
		_ = accepted.Close()
		wg.Wait()
	})
	return &pair{dialed: dialed, accepted: accepted, dialConn: a}
}

func request(t testing.TB, method, path string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func roundTrip(t testing.TB, s *Session, req *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := s.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res, string(data)
}

func echoHandler(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Name", name)
		_, _ = io.Copy(w, r.Body)
	})
}

func TestRequestsInBothDirectionsAtOnce(t *testing.T) {
	p := newPair(t, echoHandler("dialed"), echoHandler("accepted"))
	var wg sync.WaitGroup
	for i := range 20 {
		for name, s := range map[string]*Session{"accepted": p.dialed, "dialed": p.accepted} {
			wg.Add(1)
			go func() {
				defer wg.Done()
				// Sizes around what is held, sent inline, and a stream's window.
				body := strings.Repeat("x", i*i*1500)
				res, got := roundTrip(t, s, request(t, "POST", "/", strings.NewReader(body)))
				if got != body || res.Header.Get("X-Name") != name {
					t.Errorf("size %d from %s: got %d bytes", len(body), res.Header.Get("X-Name"), len(got))
				}
			}()
		}
	}
	wg.Wait()
	waitIdle(t, p)
}

// waitIdle waits until no stream is open, which shows that none leaks.
func waitIdle(t testing.TB, p *pair) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for p.dialed.Requests() > 0 || p.accepted.Requests() > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("streams left: %d and %d", p.dialed.Requests(), p.accepted.Requests())
		}
		// A ping is answered after all frames sent before it.
		if _, err := p.dialed.Ping(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnswers(t *testing.T) {
	p := newPair(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/empty":
		case "/204":
			w.WriteHeader(204)
		case "/length":
			w.Header().Set("Content-Length", "5")
			_, _ = io.WriteString(w, "12345")
		case "/big":
			for range 100 {
				_, _ = io.WriteString(w, strings.Repeat("y", 1000))
			}
		case "/short":
			w.Header().Set("Content-Length", "5")
			_, _ = io.WriteString(w, "123")
		case "/abort":
			_, _ = io.WriteString(w, strings.Repeat("y", 10000))
			panic(http.ErrAbortHandler)
		case "/panic":
			panic("no")
		}
	}))
	for path, want := range map[string]int{"/empty": 0, "/204": 0, "/length": 5, "/big": 100000} {
		res, got := roundTrip(t, p.dialed, request(t, "GET", path, nil))
		if len(got) != want {
			t.Errorf("%s: %d bytes, want %d (status %d)", path, len(got), want, res.StatusCode)
		}
		res, got = roundTrip(t, p.dialed, request(t, "HEAD", path, nil))
		if got != "" || res.StatusCode >= 300 {
			t.Errorf("HEAD %s: %d %q", path, res.StatusCode, got)
		}
	}
	for _, path := range []string{"/short", "/abort", "/panic"} {
		res, err := p.dialed.RoundTrip(request(t, "GET", path, nil))
		if err == nil {
			_, err = io.ReadAll(res.Body)
			_ = res.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: the answer looks complete", path)
		}
	}
	waitIdle(t, p)
	if _, err := p.accepted.RoundTrip(request(t, "GET", "/", nil)); err != nil {
		t.Errorf("nil handler: %v", err)
	}
}

func TestStreamingBothWays(t *testing.T) {
	p := newPair(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, 100)
		for {
			n, err := r.Body.Read(buf)
			if n > 0 {
				_, _ = fmt.Fprintf(w, "got %s", buf[:n])
				w.(http.Flusher).Flush()
			}
			if err != nil {
				return
			}
		}
	}))
	pr, pw := io.Pipe()
	type answer struct {
		res *http.Response
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		res, err := p.dialed.RoundTrip(request(t, "POST", "/", pr))
		answered <- answer{res, err}
	}()
	var res *http.Response
	buf := make([]byte, 100)
	for i := range 3 {
		_, _ = fmt.Fprintf(pw, "m%d", i)
		if res == nil {
			a := <-answered
			if a.err != nil {
				t.Fatal(a.err)
			}
			res = a.res
		}
		n, err := res.Body.Read(buf)
		if err != nil || string(buf[:n]) != fmt.Sprintf("got m%d", i) {
			t.Fatalf("got %q, %v", buf[:n], err)
		}
	}
	_ = pw.Close()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) != 0 {
		t.Fatalf("got %q, %v", rest, err)
	}
	waitIdle(t, p)
}

func TestCancelReachesTheHandler(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	p := newPair(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/streaming" {
			w.(http.Flusher).Flush()
		}
		close(began)
		<-r.Context().Done()
		ended <- r.Context().Err()
	}))
	for _, path := range []string{"/", "/streaming"} {
		for _, body := range []string{"", "hello"} {
			began = make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			req, _ := http.NewRequestWithContext(ctx, "POST", path, strings.NewReader(body))
			failed := make(chan error, 1)
			go func() {
				res, err := p.dialed.RoundTrip(req)
				if err == nil {
					_, err = io.ReadAll(res.Body)
					_ = res.Body.Close()
				}
				failed <- err
			}()
			<-began
			cancel()
			if err := <-failed; err == nil {
				t.Error("cancelled request succeeded")
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("handler's context: %v", err)
			}
		}
	}
	waitIdle(t, p)
}

func TestClosingTheAnswerStopsItsWriter(t *testing.T) {
	stopped := make(chan error, 1)
	p := newPair(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done := r.Context().Done()
		for {
			if _, err := w.Write(make([]byte, 10000)); err != nil {
				stopped <- err
				<-done
				return
			}
		}
	}))
	res, err := p.dialed.RoundTrip(request(t, "GET", "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadFull(res.Body, make([]byte, 1000))
	_ = res.Body.Close()
	<-stopped
}

func TestUpgrade(t *testing.T) {
	p := newPair(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_ = rw.Flush()
		data, _ := io.ReadAll(rw) // until the other side has no more
		_, _ = fmt.Fprintf(conn, "got %s", data)
	}))
	req := request(t, "GET", "/", nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "x")
	res, err := p.dialed.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 101 || res.Header.Get("Upgrade") != "x" {
		t.Fatalf("got %d %v", res.StatusCode, res.Header)
	}
	raw := res.Body.(interface {
		io.ReadWriteCloser
		CloseWrite() error
	})
	_, _ = io.WriteString(raw, "one ")
	_, _ = io.WriteString(raw, "two")
	_ = raw.CloseWrite()
	data, err := io.ReadAll(raw)
	if err != nil || string(data) != "got one two" {
		t.Fatalf("got %q, %v", data, err)
	}
	_ = raw.Close()
	waitIdle(t, p)
}

func TestParkedRequestIsAnsweredLater(t *testing.T) {
	parked := make(chan *Parked, 1)
	p := newPair(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		pk, ok := Park(wrapped{w}, nil)
		if !ok {
			t.Error("not parked")
		}
		parked <- pk
	}))
	for range 50 {
		go func() {
			pk := <-parked
			pk.Header().Set("X-Later", "1")
			if err := pk.Finish(200, []byte("later")); err != nil {
				t.Error(err)
			}
			pk.Drop()
			if pk.Finish(200, nil) == nil {
				t.Error("answered twice")
			}
		}()
		res, got := roundTrip(t, p.dialed, request(t, "POST", "/", strings.NewReader("q")))
		if got != "later" || res.Header.Get("X-Later") != "1" || res.ContentLength != 5 {
			t.Fatalf("got %q %v", got, res.Header)
		}
	}
	big := bytes.Repeat([]byte("z"), 1<<20)
	go func() { _ = (<-parked).Finish(200, big) }()
	if _, got := roundTrip(t, p.dialed, request(t, "POST", "/", nil)); len(got) != len(big) {
		t.Fatalf("got %d bytes", len(got))
	}
	go func() { (<-parked).Drop() }()
	if _, err := p.dialed.RoundTrip(request(t, "POST", "/", nil)); err == nil {
		t.Fatal("a dropped request was answered")
	}
	waitIdle(t, p)
}

type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestParkedRequestEndsWithItsSession(t *testing.T) {
	closed := make(chan struct{})
	parked := make(chan *Parked, 1)
	p := newPair(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pk, _ := Park(w, func() { close(closed) })
		parked <- pk
	}))
	failed := make(chan error, 1)
	go func() {
		_, err := p.dialed.RoundTrip(request(t, "GET", "/", nil))
		failed <- err
	}()
	pk := <-parked
	_ = p.dialConn.Close()
	<-closed
	if err := <-failed; err == nil || errors.Is(err, ErrNotSent) {
		t.Fatalf("got %v", err)
	}
	if pk.Finish(200, nil) == nil {
		t.Fatal("answered after the session's end")
	}
}

func TestCutConnectionFailsBothSides(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	p := newPair(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(ended)
	}))
	failed := make(chan error, 1)
	go func() {
		_, err := p.dialed.RoundTrip(request(t, "PUT", "/", strings.NewReader("x")))
		failed <- err
	}()
	<-began
	_ = p.dialConn.Close()
	<-ended
	if err := <-failed; err == nil || errors.Is(err, ErrNotSent) {
		t.Fatalf("a request in flight: %v", err)
	}
	<-p.dialed.Done()
	<-p.accepted.Done()
	if _, err := p.dialed.RoundTrip(request(t, "PUT", "/", nil)); !errors.Is(err, ErrNotSent) {
		t.Fatalf("a request after the end: %v", err)
	}
}

// silentConn swallows what is written once it is told to, as a network that lost its other end does.
type silentConn struct {
	net.Conn
	silent chan struct{}
}

func (c *silentConn) Write(p []byte) (int, error) {
	select {
	case <-c.silent:
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

func TestHalfOpenConnectionIsFound(t *testing.T) {
	a, b := tcpPair(t)
	sc := &silentConn{Conn: a, silent: make(chan struct{})}
	s, err := Dialed(sc, Config{KeepAlive: 20 * time.Millisecond, WriteTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Accepted(b, Config{KeepAlive: -1})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Add(2)
	go func() { defer wg.Done(); _ = s.Serve(nil) }()
	go func() { defer wg.Done(); _ = other.Serve(echoHandler("")) }()
	roundTrip(t, s, request(t, "GET", "/", nil))
	close(sc.silent)
	if _, err := s.RoundTrip(request(t, "GET", "/", nil)); err == nil {
		t.Error("answered over a dead connection")
	}
	<-s.Done()
	wg.Wait()
}

func TestTooManyRequestsAreRefused(t *testing.T) {
	a, b := tcpPair(t)
	s, _ := Dialed(a, Config{})
	other, _ := Accepted(b, Config{MaxRequests: 1})
	block, began := make(chan struct{}), make(chan struct{}, 1)
	var wg sync.WaitGroup
	wg.Add(2)
	go func() { defer wg.Done(); _ = s.Serve(nil) }()
	go func() {
		defer wg.Done()
		_ = other.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { began <- struct{}{}; <-block }))
	}()
	first := make(chan int, 1)
	go func() {
		res, err := s.RoundTrip(request(t, "GET", "/", nil))
		if err != nil {
			t.Error(err)
		}
		first <- res.StatusCode
	}()
	<-began
	if res, _ := roundTrip(t, s, request(t, "GET", "/", nil)); res.StatusCode != 429 {
		t.Errorf("got %d", res.StatusCode)
	}
	close(block)
	if got := <-first; got != 200 {
		t.Errorf("got %d", got)
	}
	_ = s.Close()
	wg.Wait()
}
