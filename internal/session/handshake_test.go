package session

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func TestServersProveTheirKey(t *testing.T) {
	for _, c := range []struct {
		name       string
		dial, acpt []byte
		ok         bool
	}{
		{"same", []byte("0123456789abcdef"), []byte("0123456789abcdef"), true},
		{"none", nil, nil, true},
		{"other", []byte("0123456789abcdef"), []byte("fedcba9876543210"), false},
		{"missing", nil, []byte("0123456789abcdef"), false},
	} {
		a, b := net.Pipe()
		got := make(chan Hello, 1)
		failed := make(chan error, 1)
		go func() {
			h, err := Greet(t.Context(), b, AcceptConfig{Server: "s2", Region: "global", Key: c.acpt})
			got <- h
			failed <- err
			if err != nil {
				_ = b.Close()
			}
		}()
		w, err := Prove(t.Context(), a, ByteServer, Hello{Server: "s1", Region: "global"}, c.dial)
		if err != nil {
			_ = a.Close()
		}
		hello, acceptErr := <-got, <-failed
		_, _ = a.Close(), b.Close()
		if (err == nil) != c.ok || (acceptErr == nil) != c.ok {
			t.Errorf("%s: dial %v, accept %v", c.name, err, acceptErr)
		}
		if !c.ok && structs.ErrorCode(err) != structs.CodePermission {
			t.Errorf("%s: code of %v", c.name, err)
		}
		if c.ok && (w.Server != "s2" || hello.Server != "s1" || hello.Protocol != ByteServer) {
			t.Errorf("%s: %+v %+v", c.name, w, hello)
		}
	}
}

func TestNodeIsAdmittedOrToldWhyNot(t *testing.T) {
	admit := func(h Hello) error {
		if h.SecretID != "secret" {
			return structs.Errorf(structs.CodePermission, "node secret does not match")
		}
		return nil
	}
	for secret, want := range map[string]string{"secret": "", "other": "node secret does not match", "": "must name itself"} {
		a, b := net.Pipe()
		failed := make(chan error, 1)
		go func() {
			_, err := Greet(t.Context(), b, AcceptConfig{Admit: admit})
			failed <- err
		}()
		_, err := Introduce(t.Context(), a, Hello{NodeID: "n1", SecretID: secret})
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", secret, err)
		}
		if e := <-failed; (e == nil) != (want == "") {
			t.Errorf("%q: accept %v", secret, e)
		}
		_, _ = a.Close(), b.Close()
	}
}

func TestGreetRefusesOtherProtocols(t *testing.T) {
	for first, want := range map[string]string{
		"\x16\x03\x01": "uses TLS", "GET / HTTP/1.1": "unknown protocol", "N\xff\xff\xff\xff": "handshake message of",
		"N\x00\x00\x00\x01\xff": "read handshake message",
	} {
		a, b := net.Pipe()
		go func() {
			_, _ = a.Write([]byte(first))
			_ = a.SetReadDeadline(time.Now().Add(time.Second))
			_, _ = a.Read(make([]byte, 100))
		}()
		_ = b.SetWriteDeadline(time.Now().Add(time.Second))
		_, err := Greet(t.Context(), b, AcceptConfig{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", first, err)
		}
		_, _ = a.Close(), b.Close()
	}
}

func TestHandshakeEndsWithItsContext(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := Greet(ctx, b, AcceptConfig{})
		failed <- err
	}()
	_, _ = a.Write([]byte("N"))
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestParseKey(t *testing.T) {
	for in, ok := range map[string]bool{"": true, "MDEyMzQ1Njc4OWFiY2RlZg==": true, "YQ==": false, "!": false} {
		if _, err := ParseKey(in); (err == nil) != ok {
			t.Errorf("%q: %v", in, err)
		}
	}
}
