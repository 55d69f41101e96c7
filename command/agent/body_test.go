package agent

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// bodyServer is a server with bounds whose handler reads the body, tells how that went, and stays on /hold until held is
// closed. send opens a connection and writes the head of a request with a body of 100 bytes, and what of it is given.
func bodyServer(t *testing.T, pause, limit time.Duration) (got chan error, held chan struct{}, send func(path, body string) net.Conn) {
	t.Helper()
	got, held = make(chan error, 1), make(chan struct{})
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
	t.Cleanup(srv.Close)
	return got, held, func(path, body string) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n%s", path, body); err != nil {
			t.Fatal(err)
		}
		return conn
	}
}

// The bound which a test is not about is far away, or a machine that is slow would meet it first.
const never = time.Hour

func TestABodyThatStopsIsGivenUpAfterThePause(t *testing.T) {
	const pause = 200 * time.Millisecond
	got, _, send := bodyServer(t, pause, never)
	began := time.Now()
	send("/", "x")
	if err := <-got; err == nil || time.Since(began) < pause {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

func TestABodyThatDripsIsGivenUpAtTheLimit(t *testing.T) {
	const limit = 300 * time.Millisecond
	got, _, send := bodyServer(t, never, limit)
	began := time.Now()
	conn := send("/", "")
	drip := time.NewTicker(limit / 10)
	defer drip.Stop()
	for {
		select {
		case <-drip.C:
			_, _ = conn.Write([]byte("x"))
		case err := <-got:
			if err == nil || time.Since(began) < limit {
				t.Errorf("%v after %s", err, time.Since(began))
			}
			return
		}
	}
}

func TestAHandlerWhoseBodyCameHasAllTheTimeItWants(t *testing.T) {
	const pause = 200 * time.Millisecond
	got, held, send := bodyServer(t, pause, pause)
	send("/hold", strings.Repeat("x", 100))
	select {
	case err := <-got:
		t.Errorf("it was ended: %v", err)
	case <-time.After(2 * pause):
	}
	close(held)
	if err := <-got; err != nil {
		t.Error(err)
	}
}
