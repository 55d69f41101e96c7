package keyring

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, log *clustertest.Log, dir string, fetch func(ctx context.Context) ([]byte, error)) *Keyring {
	t.Helper()
	k := New(Config{Logger: hclog.NewNullLogger(), Store: log.Store, Raft: log, Dir: dir, NewID: uuid.New, Fetch: fetch})
	if err := k.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// verify checks a token with nothing but the published key set.
func verify(t *testing.T, k *Keyring, token, kid string) {
	t.Helper()
	raw, err := k.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Keys []jwk }
	if err := json.Unmarshal(raw, &set); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	for _, key := range set.Keys {
		if key.KeyID != kid {
			continue
		}
		n, _ := base64.RawURLEncoding.DecodeString(key.N)
		e, _ := base64.RawURLEncoding.DecodeString(key.E)
		signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
		digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		public := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
		if err := rsa.VerifyPKCS1v15(public, crypto.SHA256, digest[:], signature); err != nil {
			t.Errorf("signature: %v", err)
		}
		return
	}
	t.Errorf("key %s is not published", kid)
}

func TestSignAndPublish(t *testing.T) {
	log, dir, ctx := clustertest.New(), filepath.Join(t.TempDir(), "keyring"), t.Context()
	k := open(t, log, dir, nil)
	if raw, err := k.JWKS(); err != nil || string(raw) != `{"keys":[]}` {
		t.Errorf("without a key: %s, %v", raw, err)
	}
	if _, _, err := k.SignClaims(1); err == nil {
		t.Error("signs without a key")
	}
	if err := k.Lead(ctx); err != nil {
		t.Fatal(err)
	}
	if err := k.Lead(ctx); err != nil || len(k.cfg.Store.RootKeys(nil)) != 1 {
		t.Errorf("a second leader makes another key: %v, %d keys", err, len(k.cfg.Store.RootKeys(nil)))
	}
	token, kid, err := k.SignClaims(map[string]string{"sub": "alloc"})
	if err != nil {
		t.Fatal(err)
	}
	verify(t, k, token, kid)

	info, err := os.Stat(filepath.Join(dir, fileName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v %v", info, err)
	}
	// Nothing that raft holds opens without the key file.
	row := log.Store.RootKey(nil, kid)
	if bytes.Contains(row.WrappedKey, k.signers[kid].D.Bytes()) {
		t.Error("the private key is in raft in plain text")
	}
	if _, err := newKEK("other").open(kid, row.WrappedKey, row.Nonce); err == nil {
		t.Error("another key file opens the key")
	}
	// After a restart the same key signs.
	again := open(t, log, dir, nil)
	if t2, k2, err := again.SignClaims(map[string]string{"sub": "alloc"}); err != nil || t2 != token || k2 != kid {
		t.Errorf("after a restart: %s, %v", k2, err)
	}
	// A rotated key signs, the old one still verifies, and only the inactive one can go.
	if _, err := again.Rotate(ctx, false); err != nil {
		t.Fatal(err)
	}
	newer, kid2, err := again.SignClaims(map[string]string{"sub": "alloc"})
	if err != nil || kid2 == kid {
		t.Fatalf("after rotation: %s, %v", kid2, err)
	}
	verify(t, again, newer, kid2)
	verify(t, again, token, kid)
	if err := again.Remove(ctx, kid2); err == nil {
		t.Error("the active key was removed")
	}
	if err := again.Remove(ctx, kid); err != nil || len(again.cfg.Store.RootKeys(nil)) != 1 {
		t.Errorf("remove: %v", err)
	}
}

func TestJoiningServerFetchesTheKeyFile(t *testing.T) {
	log := clustertest.New()
	first := open(t, log, "", nil)
	asked := make(chan struct{}, 1)
	dir := filepath.Join(t.TempDir(), "keyring")
	joined := open(t, log, dir, func(context.Context) ([]byte, error) {
		defer func() { asked <- struct{}{} }()
		return first.Export()
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- joined.Run(ctx) }()
	if _, err := first.Export(); err == nil {
		t.Error("gives a key file which it does not have")
	}
	if err := first.Lead(ctx); err != nil {
		t.Fatal(err)
	}
	<-asked
	cancel()
	<-done
	if _, _, err := joined.SignClaims(1); err != nil {
		t.Errorf("the joined server cannot sign: %v", err)
	}
	if _, err := loadKEK(dir); err != nil {
		t.Error(err)
	}
	// A file that does not fit is refused, and the good one stays.
	bad, err := newKEK("bad").bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{bad, []byte("{}"), []byte("no")} {
		if err := joined.Import(data); err == nil {
			t.Errorf("took over %q", data)
		}
	}
}

func TestDamagedKeyFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := New(Config{Dir: dir}).Open(); err == nil {
		t.Error("opened")
	}
}
