package session

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadlite/nomadlite/internal/route"
	wire "github.com/nomadlite/nomadlite/internal/session"
)

// selfSigned is a configuration with which servers of one region trust each other.
func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server.global.nomad"},
		DNSNames: []string{"server.global.nomad"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, ServerName: "server.global.nomad"}
}

func TestTLSWrapsEverything(t *testing.T) {
	cfg := selfSigned(t)
	open := func(c *tls.Config) *Port {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(Config{Listener: ln, ServerID: ln.Addr().String(), Key: testKey, TLS: c})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		hello := func(id route.Identity) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello "+id.Server) })
		}
		go func() { defer close(done); _ = p.Run(ctx, Handlers{Server: hello, Node: hello}) }()
		t.Cleanup(func() { cancel(); <-done })
		return p
	}
	a, b, plain := open(cfg), open(cfg), open(nil)
	get := func(from, to *Port) (string, error) {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
		res, err := from.Peer(to.Addr()).RoundTrip(req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		return string(data), err
	}
	if got, err := get(a, b); err != nil || got != "hello "+a.Addr() {
		t.Fatalf("got %q, %v", got, err)
	}
	for _, pair := range [][2]*Port{{plain, a}, {a, plain}, {b, plain}} {
		if got, err := get(pair[0], pair[1]); err == nil {
			t.Errorf("a server with TLS and one without got together: %q", got)
		}
	}
	// A node with a certificate, and one without.
	for _, c := range []*tls.Config{cfg, {RootCAs: cfg.RootCAs, ServerName: cfg.ServerName}} {
		conn, err := net.Dial("tcp", a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_, err = wire.Introduce(t.Context(), tls.Client(conn, c), wire.Hello{NodeID: "n", SecretID: "s"})
		if (err == nil) != (len(c.Certificates) > 0) {
			t.Errorf("node with %d certificates: %v", len(c.Certificates), err)
		}
		_ = conn.Close()
	}
	// The streams of raft too.
	accepted := make(chan string, 1)
	go func() {
		conn, err := b.StreamLayer().Accept()
		if err != nil {
			accepted <- err.Error()
			return
		}
		data, _ := io.ReadAll(io.LimitReader(conn, 3))
		_ = conn.Close()
		accepted <- string(data)
	}()
	conn, err := a.StreamLayer().Dial(raft.ServerAddress(b.Addr()), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write([]byte("log"))
	if got := <-accepted; got != "log" {
		t.Errorf("got %q", got)
	}
	_ = conn.Close()
}
