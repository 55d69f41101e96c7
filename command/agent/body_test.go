package agent

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestSlowBodiesAreBounded: one that stops in the middle is given up after the pause, one that drips after the limit; one
// that came leaves a handler all the time it wants.
func TestSlowBodiesAreBounded(t *testing.T) {
	const pause, limit = 200 * time.Millisecond, 600 * time.Millisecond
	got := make(chan error, 1)
	held := make(chan struct{})
	srv := httptest.NewServer(boundBodies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		if r.URL.Path == "/hold" {
			select {
			case <-r.Context().Done():
				err = r.Context().Err()
			case <-held:
			}
		}
		got <- err
	}), pause, limit))
	defer srv.Close()
	dial := func(path string) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	began := time.Now()
	dial("/")
	if err := <-got; err == nil || time.Since(began) < pause {
		t.Errorf("a body that stops: %v after %s", err, time.Since(began))
	}
	began = time.Now()
	conn := dial("/")
	drip := time.NewTicker(pause / 4)
	defer drip.Stop()
	for ended := false; !ended; {
		select {
		case <-drip.C:
			_, _ = conn.Write([]byte("x"))
		case err := <-got:
			if ended = true; err == nil || time.Since(began) < limit {
				t.Errorf("a body that drips: %v after %s", err, time.Since(began))
			}
		}
	}
	if _, err := dial("/hold").Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-got:
		t.Errorf("a handler whose body came was ended: %v", err)
	case <-time.After(2 * pause):
	}
	close(held)
	if err := <-got; err != nil {
		t.Errorf("a handler whose body came: %v", err)
	}
}
