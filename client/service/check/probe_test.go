package check

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func ask(t *testing.T, address string, c structs.ServiceCheck) Outcome {
	t.Helper()
	return Probes{}.Probe(within(t, 5*time.Second), "a1", &Spec{Check: c, Address: address})
}

func host(s *httptest.Server) string { return s.Listener.Addr().String() }

// refused is an address where nobody listens.
func refused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return l.Addr().String()
}

func TestTCP(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if got := ask(t, host(s), structs.ServiceCheck{Type: "tcp"}); got != (Outcome{Output: "nomad: tcp ok"}) {
		t.Errorf("%+v", got)
	}
	if got := ask(t, refused(t), structs.ServiceCheck{Type: "tcp"}); got.Verdict != Failed || !strings.Contains(got.Output, "refused") {
		t.Errorf("%+v", got)
	}
}

func TestHTTP(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != "POST" || r.Host != "example.com" || r.Header.Get("X-Key") != "k" || string(body) != "hello" || r.URL.Query().Get("full") != "1" {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, r.Method, r.Host, r.Header, string(body), r.URL)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "no database \xff")
	})
	mux.HandleFunc("/huge", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		for range 1000 {
			fmt.Fprint(w, strings.Repeat("x", 1<<12))
		}
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.Handle("/moved", http.RedirectHandler("/fine", http.StatusFound))
	mux.HandleFunc("/fine", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	s := httptest.NewServer(mux)
	defer s.Close()
	for _, c := range []struct {
		check   structs.ServiceCheck
		verdict Verdict
		code    int
		output  string
	}{
		{structs.ServiceCheck{Path: "/ok?full=1", Method: "post", Body: "hello",
			Header: map[string][]string{"Host": {"example.com"}, "x-key": {"k"}}}, Passed, 204, "nomad: http ok"},
		{structs.ServiceCheck{Path: "fine"}, Passed, 200, "nomad: http ok"},
		{structs.ServiceCheck{Path: "/bad"}, Failed, 503, "no database ?"},
		{structs.ServiceCheck{Path: "/none"}, Failed, 404, "404 page not found"},
		{structs.ServiceCheck{Path: "/huge"}, Failed, 500, "xxx"},
		{structs.ServiceCheck{Path: "/endless"}, Passed, 200, "nomad: http ok"},
		{structs.ServiceCheck{Path: "/moved"}, Passed, 200, "nomad: http ok"},
		{structs.ServiceCheck{Path: "/loop"}, Failed, 0, "stopped after 5 redirects"},
		{structs.ServiceCheck{Path: "/fine", Protocol: "https"}, Failed, 0, "HTTP response to HTTPS client"},
	} {
		c.check.Type = "http"
		got := ask(t, host(s), c.check)
		if got.Verdict != c.verdict || got.Code != c.code || !strings.Contains(got.Output, c.output) || len(got.Output) > maxOutput {
			t.Errorf("%s: %d, code %d, %q", c.check.Path, got.Verdict, got.Code, clip(got.Output))
		}
	}
	if got := ask(t, refused(t), structs.ServiceCheck{Type: "http", Path: "/"}); got.Verdict != Failed || !strings.Contains(got.Output, "refused") {
		t.Errorf("%+v", got)
	}
}

func TestHTTPS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	for _, c := range []struct {
		check   structs.ServiceCheck
		verdict Verdict
		output  string
	}{
		{structs.ServiceCheck{}, Failed, "certificate"},
		{structs.ServiceCheck{TLSSkipVerify: true}, Passed, "nomad: http ok"},
		{structs.ServiceCheck{TLSServerName: "example.com"}, Failed, "certificate"},
	} {
		c.check.Type, c.check.Protocol, c.check.Path = "http", "https", "/"
		if got := ask(t, host(s), c.check); got.Verdict != c.verdict || !strings.Contains(got.Output, c.output) {
			t.Errorf("%+v: %+v", c.check, got)
		}
	}
}

// health speaks the server's side of the protocol.
func health(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	service := ""
	if len(body) > 7 {
		service = string(body[7:])
	}
	w.Header().Set("Content-Type", "application/grpc")
	if r.URL.Path != grpcPath || r.Header.Get("Te") != "trailers" || len(body) < 5 || int(binary.BigEndian.Uint32(body[1:])) != len(body)-5 {
		w.Header().Set("Grpc-Status", "3")
		w.Header().Set("Grpc-Message", "not%20understood")
		return
	}
	status := byte(1)
	switch service {
	case "":
	case "down":
		status = 2
	case "cut":
		_, _ = w.Write([]byte{0, 0, 0, 0, 9, 8})
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		return
	default:
		w.Header().Set("Grpc-Status", "5")
		return
	}
	// A field that this client does not know comes first.
	_, _ = w.Write([]byte{0, 0, 0, 0, 6, 0x12, 2, 'h', 'i', 8, status})
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
}

func TestGRPC(t *testing.T) {
	plain := httptest.NewUnstartedServer(http.HandlerFunc(health))
	plain.Config.Protocols = new(http.Protocols)
	plain.Config.Protocols.SetUnencryptedHTTP2(true)
	plain.Start()
	defer plain.Close()
	secret := httptest.NewUnstartedServer(http.HandlerFunc(health))
	secret.EnableHTTP2 = true
	secret.Config.ErrorLog = log.New(io.Discard, "", 0)
	secret.StartTLS()
	defer secret.Close()
	old := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer old.Close()
	for _, c := range []struct {
		name    string
		server  *httptest.Server
		check   structs.ServiceCheck
		verdict Verdict
		output  string
	}{
		{"the server", plain, structs.ServiceCheck{}, Passed, "nomad: grpc ok"},
		{"a service that is down", plain, structs.ServiceCheck{GRPCService: "down"}, Failed, "nomad: grpc NOT_SERVING"},
		{"an unknown service", plain, structs.ServiceCheck{GRPCService: "other"}, Failed, "no such service"},
		{"a damaged answer", plain, structs.ServiceCheck{GRPCService: "cut"}, Failed, "damaged"},
		{"with TLS", secret, structs.ServiceCheck{GRPCUseTLS: true, TLSSkipVerify: true}, Passed, "nomad: grpc ok"},
		{"with TLS that is not trusted", secret, structs.ServiceCheck{GRPCUseTLS: true}, Failed, "certificate"},
		{"with TLS to a server without", plain, structs.ServiceCheck{GRPCUseTLS: true}, Failed, "nomad: "},
		{"a server of HTTP/1", old, structs.ServiceCheck{}, Failed, "nomad: "},
	} {
		c.check.Type = "grpc"
		if got := ask(t, host(c.server), c.check); got.Verdict != c.verdict || !strings.Contains(got.Output, c.output) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func FuzzGRPCAnswer(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 2, 8, 1})
	f.Add([]byte{0, 0, 0, 0, 6, 0x12, 2, 'h', 'i', 8, 2})
	f.Add([]byte{0, 0, 0, 0, 12, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0})
	f.Fuzz(func(_ *testing.T, body []byte) { _, _ = grpcAnswer(body) })
}

// commands are beside no task but answer as one would.
type commands struct {
	code   int
	output string
	err    error
	hangs  bool
	ran    string
}

func (c *commands) Exec(ctx context.Context, allocID, task string, command []string) (int, string, error) {
	c.ran = fmt.Sprint(allocID, task, command)
	if c.hangs {
		<-ctx.Done()
		return 0, c.output, ctx.Err()
	}
	return c.code, c.output, c.err
}

func TestScript(t *testing.T) {
	for _, c := range []struct {
		answer commands
		want   Outcome
	}{
		{commands{output: "fine"}, Outcome{Output: "fine"}},
		{commands{code: 1, output: "slow"}, Outcome{Verdict: Warned, Output: "slow"}},
		{commands{code: 2, output: "dead"}, Outcome{Verdict: Failed, Output: "exit code 2: dead"}},
		{commands{err: errors.New("no such command")}, Outcome{Verdict: Failed, Output: "nomad: no such command"}},
		{commands{err: fmt.Errorf("exec: %w", ErrGone)}, Outcome{Void: true}},
		{commands{hangs: true, output: "still"}, Outcome{Verdict: Failed, Output: "nomad: the command did not end within 10ms: still"}},
	} {
		s := &Spec{On: "web", Check: structs.ServiceCheck{Type: "script", Command: "/bin/ask", Args: []string{"-v"}, Timeout: 10 * time.Millisecond}}
		got := Probes{Tasks: &c.answer}.Probe(within(t, 10*time.Millisecond), "a1", s)
		if got != c.want || c.answer.ran != "a1web[/bin/ask -v]" {
			t.Errorf("%+v of %s, want %+v", got, c.answer.ran, c.want)
		}
	}
}

func BenchmarkHTTP(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	spec := &Spec{Address: host(s), Check: structs.ServiceCheck{Type: "http", Path: "/"}}
	for b.Loop() {
		if got := (Probes{}).Probe(b.Context(), "a1", spec); got.Verdict != Passed {
			b.Fatal(got)
		}
	}
}
