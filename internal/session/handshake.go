package session

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/structs"
)

// The first byte of a connection to port 4647 says what it carries.
const (
	ByteRaft   byte = 'R' // raft's stream layer
	ByteNode   byte = 'N' // a node's session, version 1
	ByteServer byte = 'S' // a server's session, version 1
	ByteTLS    byte = 0x16
)

// Version is the handshake's version.
const Version = 1

const (
	handshakeTimeout = 10 * time.Second
	maxHello         = 64 << 10
	nonceSize        = 32
)

// Hello introduces who dials.
type Hello struct {
	Protocol byte   `cbor:"-"` // the connection's first byte
	Version  int    `cbor:"version"`
	Region   string `cbor:"region,omitempty"`
	NodeID   string `cbor:"node_id,omitempty"`
	SecretID string `cbor:"secret_id,omitempty"`
	Server   string `cbor:"server,omitempty"` // raft id of a dialling server
	Nonce    []byte `cbor:"nonce,omitempty"`
}

// Welcome introduces who was dialled, or refuses.
type Welcome struct {
	Version int          `cbor:"version"`
	Region  string       `cbor:"region,omitempty"`
	Server  string       `cbor:"server,omitempty"`
	Nonce   []byte       `cbor:"nonce,omitempty"`
	Proof   []byte       `cbor:"proof,omitempty"`
	Code    structs.Code `cbor:"code,omitempty"`
	Error   string       `cbor:"error,omitempty"`
}

// proof is the dialling server's half of the mutual challenge.
type proof struct {
	Proof []byte `cbor:"proof"`
}

// AcceptConfig is what the dialled side checks.
type AcceptConfig struct {
	Server string // raft id of this server
	Region string
	Key    []byte // cluster key; empty is a key that everybody has
	// Admit looks at a node's hello (id, secret, region) and refuses with a coded error. Servers are admitted by the
	// cluster key alone.
	Admit func(Hello) error
}

// ParseKey reads a cluster key as it is configured (`encrypt`): base64 of 16, 24 or 32 bytes, or empty.
func ParseKey(s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("read encrypt key: %w", err)
	}
	switch len(key) {
	case 16, 24, 32:
		return key, nil
	}
	return nil, fmt.Errorf("read encrypt key: it has %d bytes, must have 16, 24 or 32", len(key))
}

// Introduce opens a node's conversation on conn. On error conn is still the caller's to close.
func Introduce(ctx context.Context, conn net.Conn, hello Hello) (Welcome, error) {
	hello.Protocol, hello.Version = ByteNode, Version
	var welcome Welcome
	err := bounded(ctx, conn, func() error {
		if err := send(conn, []byte{ByteNode}, hello); err != nil {
			return fmt.Errorf("introduce node: %w", err)
		}
		if err := receive(conn, &welcome); err != nil {
			return fmt.Errorf("introduce node: %w", err)
		}
		return welcome.refusal()
	})
	return welcome, err
}

// Prove opens a server's conversation (ByteServer or ByteRaft) on conn: both sides prove that they have the cluster
// key without showing it. On error conn is still the caller's to close.
func Prove(ctx context.Context, conn net.Conn, protocol byte, hello Hello, key []byte) (Welcome, error) {
	hello.Protocol, hello.Version, hello.Nonce = protocol, Version, newNonce()
	var welcome Welcome
	err := bounded(ctx, conn, func() error {
		if err := send(conn, []byte{protocol}, hello); err != nil {
			return fmt.Errorf("prove server: %w", err)
		}
		if err := receive(conn, &welcome); err != nil {
			return fmt.Errorf("prove server: %w", err)
		}
		if err := welcome.refusal(); err != nil {
			return err
		}
		if len(welcome.Nonce) != nonceSize || !hmac.Equal(welcome.Proof, prove(key, "accept", hello, welcome)) {
			return structs.Errorf(structs.CodePermission, "server at %s has another cluster key", conn.RemoteAddr())
		}
		if err := send(conn, nil, proof{Proof: prove(key, "dial", hello, welcome)}); err != nil {
			return fmt.Errorf("prove server: %w", err)
		}
		var last Welcome
		if err := receive(conn, &last); err != nil {
			return fmt.Errorf("prove server: %w", err)
		}
		return last.refusal()
	})
	return welcome, err
}

// Greet answers the conversation that begins on conn. A connection that it refuses was told why; it is still the
// caller's to close.
func Greet(ctx context.Context, conn net.Conn, cfg AcceptConfig) (Hello, error) {
	var hello Hello
	err := bounded(ctx, conn, func() error {
		var first [1]byte
		if _, err := io.ReadFull(conn, first[:]); err != nil {
			return fmt.Errorf("read protocol: %w", err)
		}
		switch first[0] {
		case ByteNode, ByteServer, ByteRaft:
		case ByteTLS:
			return structs.Errorf(structs.CodeInvalid, "connection uses TLS, which is not configured on this port")
		default:
			return structs.Errorf(structs.CodeInvalid, "unknown protocol byte 0x%02x", first[0])
		}
		if err := receive(conn, &hello); err != nil {
			return fmt.Errorf("read hello: %w", err)
		}
		hello.Protocol = first[0]
		welcome := Welcome{Version: Version, Region: cfg.Region, Server: cfg.Server}
		err := greet(conn, hello, &welcome, cfg)
		if err != nil {
			_ = send(conn, nil, Welcome{Version: Version, Code: structs.ErrorCode(err), Error: err.Error()})
		}
		return err
	})
	return hello, err
}

func greet(conn net.Conn, hello Hello, welcome *Welcome, cfg AcceptConfig) error {
	if hello.Version < 1 {
		return structs.Errorf(structs.CodeInvalid, "handshake version %d is not known", hello.Version)
	}
	if cfg.Region != "" && hello.Region != "" && hello.Region != cfg.Region {
		return structs.Errorf(structs.CodeInvalid, "this server belongs to region %q, not %q", cfg.Region, hello.Region)
	}
	if hello.Protocol == ByteNode {
		if hello.NodeID == "" || hello.SecretID == "" {
			return structs.Errorf(structs.CodeInvalid, "a node must name itself and its secret")
		}
		if cfg.Admit != nil {
			if err := cfg.Admit(hello); err != nil {
				return err
			}
		}
		return send(conn, nil, welcome)
	}
	if len(hello.Nonce) != nonceSize {
		return structs.Errorf(structs.CodeInvalid, "nonce must have %d bytes", nonceSize)
	}
	welcome.Nonce = newNonce()
	welcome.Proof = prove(cfg.Key, "accept", hello, *welcome)
	if err := send(conn, nil, welcome); err != nil {
		return err
	}
	var p proof
	if err := receive(conn, &p); err != nil {
		return fmt.Errorf("read proof: %w", err)
	}
	if !hmac.Equal(p.Proof, prove(cfg.Key, "dial", hello, *welcome)) {
		return structs.Errorf(structs.CodePermission, "server %q has another cluster key", hello.Server)
	}
	return send(conn, nil, Welcome{Version: Version})
}

// refusal is what the dialled side said instead of a welcome.
func (w Welcome) refusal() error {
	if w.Error == "" {
		return nil
	}
	return &structs.CodedError{Code: w.Code, Text: w.Error}
}

// prove binds the key to everything both sides said, and to the side which says it.
func prove(key []byte, side string, hello Hello, welcome Welcome) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range [][]byte{
		[]byte("nomadlite session v1"), []byte(side), {hello.Protocol},
		[]byte(hello.Region), []byte(hello.Server), hello.Nonce,
		[]byte(welcome.Region), []byte(welcome.Server), welcome.Nonce,
	} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(part)))
		mac.Write(n[:])
		mac.Write(part)
	}
	return mac.Sum(nil)
}

func newNonce() []byte {
	b := make([]byte, nonceSize)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return b
}

// bounded runs a handshake under ctx and the handshake's own deadline.
func bounded(ctx context.Context, conn net.Conn, f func() error) error {
	deadline := time.Now().Add(handshakeTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("set handshake deadline: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	err := f()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if e := conn.SetDeadline(time.Time{}); err == nil && e != nil {
		err = fmt.Errorf("clear handshake deadline: %w", e)
	}
	return err
}

// send writes prefix and a length-prefixed value in one write.
func send(conn net.Conn, prefix []byte, v any) error {
	data, err := codec.Marshal(v)
	if err != nil {
		return err
	}
	buf := append([]byte(nil), prefix...)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(data)))
	_, err = conn.Write(append(buf, data...))
	return err
}

// receive reads one length-prefixed value and not a byte more.
func receive(conn net.Conn, v any) error {
	var n [4]byte
	if _, err := io.ReadFull(conn, n[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(n[:])
	if size > maxHello {
		return structs.Errorf(structs.CodeInvalid, "handshake message of %d bytes", size)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(conn, data); err != nil {
		return err
	}
	if err := codec.Unmarshal(data, v); err != nil {
		return structs.Errorf(structs.CodeInvalid, "read handshake message: %w", err)
	}
	return nil
}
