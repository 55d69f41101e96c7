package api

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// agent answers every request with handle and remembers the last one.
func agent(t *testing.T, handle http.HandlerFunc) (*Client, *http.Request) {
	t.Helper()
	last := new(http.Request)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*last = *r
		handle(w, r)
	}))
	t.Cleanup(ts.Close)
	return newClient(t, Config{Address: ts.URL}), last
}

func newClient(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestQueryOptionsBecomeParameters(t *testing.T) {
	c, last := agent(t, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("X-Nomad-Index", "7")
		h.Set("X-Nomad-KnownLeader", "true")
		h.Set("X-Nomad-LastContact", "12")
		h.Set("X-Nomad-NextToken", "next")
		_, _ = io.WriteString(w, `[{"ID":"web"}]`)
	})
	c.cfg.Region, c.cfg.Namespace, c.cfg.Token = "north", "team", "secret"
	jobs, meta, err := c.Jobs().List(t.Context(), &QueryOptions{
		Namespace: "*", AllowStale: true, WaitIndex: 3, WaitTime: time.Second, Prefix: "w", Filter: `ID == "web"`,
		PerPage: 5, NextToken: "x", Reverse: true, Params: map[string]string{"meta": "true"},
	})
	if err != nil || len(jobs) != 1 || jobs[0].ID != "web" {
		t.Fatalf("listed %v, %v", jobs, err)
	}
	if meta.LastIndex != 7 || !meta.KnownLeader || meta.LastContact != 12*time.Millisecond || meta.NextToken != "next" {
		t.Errorf("meta is %+v", meta)
	}
	want := "filter=ID+%3D%3D+%22web%22&index=3&meta=true&namespace=%2A&next_token=x&per_page=5&prefix=w&region=north&reverse=true&stale=true&wait=1s"
	if got := last.URL.Query().Encode(); got != want {
		t.Errorf("parameters are\n%s, want\n%s", got, want)
	}
	if last.Header.Get("X-Nomad-Token") != "secret" {
		t.Error("no token")
	}
}

func TestJobIDsAreEscaped(t *testing.T) {
	c, last := agent(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	if _, _, err := c.Jobs().Summary(t.Context(), "team/web job", nil); err != nil {
		t.Fatal(err)
	}
	if last.RequestURI != "/v1/job/team%2Fweb%20job/summary" {
		t.Errorf("asked for %s", last.RequestURI)
	}
}

func TestStopOptions(t *testing.T) {
	c, last := agent(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Nomad-Index", "9")
		_, _ = io.WriteString(w, `{"EvalID":"e"}`)
	})
	out, meta, err := c.Jobs().Deregister(t.Context(), "web", &DeregisterOptions{
		Purge: true, NoShutdownDelay: true, EvalPriority: 90, KillTimeout: structs.Ptr(2 * time.Second),
	}, &WriteOptions{Namespace: "team"})
	if err != nil || out.EvalID != "e" || meta.LastIndex != 9 || last.Method != "DELETE" {
		t.Fatalf("answered %+v, %+v, %v", out, meta, err)
	}
	if got := last.URL.RawQuery; got != "eval_priority=90&kill_timeout=2s&namespace=team&no_shutdown_delay=true&purge=true" {
		t.Errorf("parameters are %s", got)
	}
	if err := c.Allocations().Restart(t.Context(), "a", RestartOptions{Task: "t", NoShutdownDelay: true}, nil); err != nil {
		t.Fatal(err)
	}
	if last.URL.RequestURI() != "/v1/client/allocation/a/restart?no_shutdown_delay=true" {
		t.Errorf("asked for %s", last.URL)
	}
}

func TestErrorsCarryStatusAndText(t *testing.T) {
	c, _ := agent(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "job not found", http.StatusNotFound) })
	_, _, err := c.Jobs().Info(t.Context(), "web", nil)
	var answer *Error
	if !errors.As(err, &answer) || answer.StatusCode != 404 || answer.Text != "job not found" || !IsNotFound(err) ||
		Text(err) != "job not found" || err.Error() != "unexpected response code: 404 (job not found)" {
		t.Errorf("error is %v", err)
	}
	if IsNotFound(io.EOF) || StatusCode(nil) != 0 || Text(io.EOF) != "EOF" {
		t.Error("other errors are taken for answers")
	}
	down := newClient(t, Config{Address: "http://127.0.0.1:1"})
	if _, err := down.Status().Leader(t.Context()); err == nil || StatusCode(err) != 0 || !strings.Contains(err.Error(), "call agent") {
		t.Errorf("no agent: %v", err)
	}
}

func TestContextEndsACall(t *testing.T) {
	begun := make(chan struct{})
	c, _ := agent(t, func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := c.Status().Leader(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

func TestFramesGiveTheirBytes(t *testing.T) {
	c, last := agent(t, func(w http.ResponseWriter, _ *http.Request) {
		out := json.NewEncoder(w)
		for _, frame := range []structs.StreamFrame{{Data: []byte("one\n"), File: "t.stdout.0"}, {}, {FileEvent: "file truncated"}, {Data: []byte("two\n")}} {
			_ = out.Encode(frame)
		}
	})
	frames, err := c.AllocFS().Logs(t.Context(), "a", LogOptions{Task: "t", Follow: true, Offset: 5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer frames.Close()
	text, err := io.ReadAll(frames)
	if err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("read %q, %v", text, err)
	}
	if got := last.URL.RequestURI(); got != "/v1/client/fs/logs/a?follow=true&offset=5&origin=start&task=t&type=stdout" {
		t.Errorf("asked for %s", got)
	}
	body, err := c.AllocFS().ReadAt(t.Context(), "a", "alloc/x y", 2, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	body.Close()
	if got := last.URL.RequestURI(); got != "/v1/client/fs/readat/a?limit=3&offset=2&path=alloc%2Fx+y" {
		t.Errorf("asked for %s", got)
	}
}

func TestCompressedAnswers(t *testing.T) {
	c, last := agent(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		gz := gzip.NewWriter(w)
		_, _ = io.WriteString(gz, `"leader:1"`)
		_ = gz.Close()
	})
	leader, err := c.Status().Leader(t.Context())
	if err != nil || leader != "leader:1" || last.Header.Get("Accept-Encoding") != "gzip" {
		t.Errorf("leader is %q, %v", leader, err)
	}
}

func TestUnhealthyIsAnAnswer(t *testing.T) {
	c, _ := agent(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"server":{"ok":false,"message":"No cluster leader"}}`)
	})
	health, err := c.Agent().Health(t.Context())
	if err != nil || health.Server.OK || health.Server.Message != "No cluster leader" {
		t.Errorf("health is %+v, %v", health, err)
	}
}

func TestUnixAddress(t *testing.T) {
	dir, err := os.MkdirTemp("", "api") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `["p"]`) }))
	_ = ts.Listener.Close()
	ts.Listener = listener
	ts.Start()
	t.Cleanup(ts.Close)
	peers, err := newClient(t, Config{Address: "unix://" + path}).Status().Peers(t.Context())
	if err != nil || len(peers) != 1 {
		t.Errorf("peers are %v, %v", peers, err)
	}
}

func TestTLS(t *testing.T) {
	ts := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `"l"`) }))
	t.Cleanup(ts.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ts.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tls TLSConfig
		ok  bool
	}{
		{TLSConfig{}, false},
		{TLSConfig{CACert: ca}, true},
		{TLSConfig{CAPath: dir}, true},
		{TLSConfig{CACert: ca, ServerName: "example.com"}, true},
		{TLSConfig{CACert: ca, ServerName: "elsewhere.test"}, false},
		{TLSConfig{Insecure: true}, true},
	} {
		_, err := newClient(t, Config{Address: ts.URL, TLS: c.tls}).Status().Leader(t.Context())
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.tls, err)
		}
	}
	for _, cfg := range []TLSConfig{{CACert: filepath.Join(dir, "none")}, {CAPath: filepath.Join(dir, "none")}, {ClientCert: ca}, {ClientCert: ca, ClientKey: ca}} {
		if _, err := NewClient(Config{TLS: cfg}); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

func TestAddresses(t *testing.T) {
	for address, ok := range map[string]bool{
		"": true, "http://127.0.0.1:4646": true, "https://x": true, "unix:///run/a.sock": true,
		"127.0.0.1:4646": false, "ftp://x": false, "unix://": false, "http://": false, "http://a b": false,
	} {
		if _, err := NewClient(Config{Address: address}); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
	// An agent behind a path of a proxy.
	c, last := agent(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `"l"`) })
	below := newClient(t, Config{Address: c.Address() + "/nomad/", HTTPAuth: "user:pass", Headers: http.Header{"X-A": {"b"}}})
	if _, err := below.Status().Leader(t.Context()); err != nil {
		t.Fatal(err)
	}
	if user, password, _ := last.BasicAuth(); last.URL.Path != "/nomad/v1/status/leader" || user != "user" || password != "pass" || last.Header.Get("X-A") != "b" {
		t.Errorf("asked for %s as %s", last.URL, user)
	}
}

func TestConfigFromEnv(t *testing.T) {
	env := map[string]string{
		"NOMAD_ADDR": "https://x:1", "NOMAD_REGION": "r", "NOMAD_NAMESPACE": "n", "NOMAD_TOKEN": "t", "NOMAD_CACERT": "ca",
		"NOMAD_CAPATH": "dir", "NOMAD_CLIENT_CERT": "c", "NOMAD_CLIENT_KEY": "k", "NOMAD_TLS_SERVER_NAME": "s",
		"NOMAD_SKIP_VERIFY": "true", "NOMAD_HTTP_AUTH": "u:p",
	}
	got := ConfigFromEnv(func(name string) string { return env[name] })
	if got.Address != "https://x:1" || got.Region != "r" || got.Namespace != "n" || got.Token != "t" || got.HTTPAuth != "u:p" ||
		got.TLS != (TLSConfig{CACert: "ca", CAPath: "dir", ClientCert: "c", ClientKey: "k", ServerName: "s", Insecure: true}) {
		t.Errorf("configuration is %+v", got)
	}
}
