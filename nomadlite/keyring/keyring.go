package keyring

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// Path is where servers give the key file to each other.
const Path = "/v1/internal/keyring/file"

// States and algorithm of a root key, as the public API names them.
const (
	stateActive = "active"
	algorithm   = "aes256-gcm"
	keyBits     = 2048
)

// Raft is how keys are stored.
type Raft interface {
	Apply(ctx context.Context, kind fsm.Kind, req any) (resp any, index uint64, err error)
}

// Config is what a Keyring works with.
type Config struct {
	Logger hclog.Logger
	Store  *state.Store
	Raft   Raft
	// Dir is the folder of the key file; empty keeps it in memory.
	Dir   string
	NewID func() string
	// Fetch asks the other servers for the key file; nil when there are none.
	Fetch func(ctx context.Context) ([]byte, error)
}

// Keyring signs with and shows the cluster's keys. Run must have been called for a server that joins, Lead on the leader.
type Keyring struct {
	cfg Config

	mu      sync.Mutex
	kek     *kek
	arrived chan struct{}              // closed when there is a key file
	signers map[string]*rsa.PrivateKey // unsealed, by key id
	jwks    []byte                     // for the keys as of jwksAt
	jwksAt  keysAt
	first   chan generated // the key which a first leader will need, made ahead
	making  sync.WaitGroup
}

// keysAt names a state of the table of keys: indexes belong to a history.
type keysAt struct {
	epoch string
	index uint64
}

type generated struct {
	key *rsa.PrivateKey
	err error
}

// New makes a keyring without I/O.
func New(cfg Config) *Keyring {
	return &Keyring{cfg: cfg, signers: map[string]*rsa.PrivateKey{}, arrived: make(chan struct{})}
}

// Open reads the key file, if there is one. Call it before anything else.
func (k *Keyring) Open() error {
	if k.cfg.Dir == "" {
		return nil
	}
	loaded, err := loadKEK(k.cfg.Dir)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.useLocked(loaded)
	return nil
}

// useLocked takes a key file into use; nil changes nothing.
func (k *Keyring) useLocked(file *kek) {
	if file == nil {
		return
	}
	if k.kek == nil {
		close(k.arrived)
	}
	k.kek = file
}

// Arrived is closed once this server has a key file.
func (k *Keyring) Arrived() <-chan struct{} { return k.arrived }

// Prepare begins to make a key in the background, so that a first leader finds it ready. It is for servers whose state
// has no key.
func (k *Keyring) Prepare() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.first == nil {
		k.first = make(chan generated, 1)
		to := k.first
		k.making.Go(func() {
			key, err := rsa.GenerateKey(rand.Reader, keyBits)
			to <- generated{key, err}
		})
	}
}

// Close waits for a key that is being made.
func (k *Keyring) Close() { k.making.Wait() }

// Lead makes sure that the cluster has an active key: the leader calls it once its state is caught up.
func (k *Keyring) Lead(ctx context.Context) error {
	if active(k.cfg.Store) != nil {
		return nil
	}
	k.Prepare()
	k.mu.Lock()
	first := k.first
	k.mu.Unlock()
	select {
	case g := <-first:
		first <- g // for a later try, should this one fail
		if g.err != nil {
			return fmt.Errorf("make root key: %w", g.err)
		}
		_, err := k.store(ctx, g.key)
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run fetches the key file when the state has keys which this server cannot open, until ctx ends.
func (k *Keyring) Run(ctx context.Context) error {
	sub := k.cfg.Store.Subscribe(64)
	defer sub.Close()
	for {
		for backoff := 100 * time.Millisecond; k.missing(); backoff = min(2*backoff, time.Minute) {
			err := k.fetch(ctx)
			if err == nil {
				break
			}
			if ctx.Err() == nil && backoff > time.Second {
				k.cfg.Logger.Warn("key file could not be fetched from another server", "error", err)
			}
			select {
			case <-time.After(backoff):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for relevant := false; !relevant; {
			change, err := sub.Next(ctx)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			relevant = err != nil // lagged: look again
			for _, item := range change.Items {
				relevant = relevant || item.Table == state.TableKeys
			}
		}
	}
}

// missing says whether the state has a key sealed under a key file that is not here.
func (k *Keyring) missing() bool {
	if k.cfg.Fetch == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, row := range k.cfg.Store.RootKeys(nil) {
		if k.kek == nil || k.kek.ID != row.KEKID {
			return true
		}
	}
	return false
}

func (k *Keyring) fetch(ctx context.Context) error {
	data, err := k.cfg.Fetch(ctx)
	if err != nil {
		return err
	}
	return k.Import(data)
}

// Export gives the key file for another server.
func (k *Keyring) Export() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kek == nil {
		return nil, structs.Errorf(structs.CodeUnavailable, "this server has no key file")
	}
	return k.kek.bytes()
}

// Import takes over the key file of another server. It refuses one that opens none of the cluster's keys.
func (k *Keyring) Import(data []byte) error {
	got, err := parseKEK(data)
	if err != nil {
		return err
	}
	for _, row := range k.cfg.Store.RootKeys(nil) {
		if _, err := got.open(row.KeyID, row.WrappedKey, row.Nonce); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cfg.Dir != "" {
		if err := got.save(k.cfg.Dir); err != nil {
			return err
		}
	}
	k.useLocked(got)
	return nil
}

// Handler gives the key file to other servers; it belongs on server sessions only.
func (k *Keyring) Handler(w http.ResponseWriter, _ *route.Request) error {
	data, err := k.Export()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(data)
	return err
}

func active(store *state.Store) *structs.RootKey {
	for _, row := range store.RootKeys(nil) {
		if row.State == stateActive {
			return row
		}
	}
	return nil
}

// Opens says whether this server can use a key, which need not be in the state.
func (k *Keyring) Opens(key *structs.RootKey) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kek == nil || k.kek.ID != key.KEKID {
		return false
	}
	_, err := k.kek.open(key.KeyID, key.WrappedKey, key.Nonce)
	return err == nil
}

// store seals a new key and makes it the active one.
func (k *Keyring) store(ctx context.Context, key *rsa.PrivateKey) (*structs.RootKeyMeta, error) {
	wrapper, err := k.wrapper()
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("store root key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("store root key: %w", err)
	}
	now := time.Now().UnixNano()
	row := &structs.RootKey{RootKeyMeta: structs.RootKeyMeta{KeyID: k.cfg.NewID(), Algorithm: algorithm, CreateTime: now,
		State: stateActive}, KEKID: wrapper.ID, PublicKey: public}
	if row.WrappedKey, row.Nonce, err = wrapper.seal(row.KeyID, private); err != nil {
		return nil, err
	}
	if _, _, err := k.cfg.Raft.Apply(ctx, fsm.KindKeyringUpsert, &fsm.KeyringUpsert{Key: row, Now: now}); err != nil {
		return nil, fmt.Errorf("store root key: %w", err)
	}
	meta := row.RootKeyMeta
	return &meta, nil
}

// wrapper gives the key file, and makes one when the cluster has none yet.
func (k *Keyring) wrapper() (*kek, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kek != nil {
		return k.kek, nil
	}
	if len(k.cfg.Store.RootKeys(nil)) > 0 {
		return nil, structs.Errorf(structs.CodeUnavailable, "this server does not have the cluster's key file yet")
	}
	made := newKEK(k.cfg.NewID())
	if k.cfg.Dir != "" {
		if err := made.save(k.cfg.Dir); err != nil {
			return nil, err
		}
	}
	k.useLocked(made)
	return made, nil
}

// Rotate makes a new active key. The old one stays, so that what it signed can be verified; full is accepted for the
// interface's sake: there is nothing sealed with the root key that would have to be sealed again.
func (k *Keyring) Rotate(ctx context.Context, full bool) (*structs.RootKeyMeta, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, fmt.Errorf("make root key: %w", err)
	}
	return k.store(ctx, key)
}

// Remove deletes a key that is not active.
func (k *Keyring) Remove(ctx context.Context, keyID string) error {
	found := k.cfg.Store.RootKey(nil, keyID)
	if found == nil {
		return structs.Errorf(structs.CodeNotFound, "root key not found")
	}
	if _, _, err := k.cfg.Raft.Apply(ctx, fsm.KindKeyringDelete, &fsm.KeyringDelete{KeyID: keyID}); err != nil {
		return fmt.Errorf("delete root key: %w", err)
	}
	k.mu.Lock()
	delete(k.signers, keyID)
	k.mu.Unlock()
	return nil
}

// jwk is one key of a JSON Web Key Set (RFC 7517).
type jwk struct {
	Use       string `json:"use"`
	KeyType   string `json:"kty"`
	KeyID     string `json:"kid"`
	Algorithm string `json:"alg"`
	N         string `json:"n"`
	E         string `json:"e"`
}

// JWKS is the public keys as a JSON Web Key Set; an empty set until the first key was made.
func (k *Keyring) JWKS() ([]byte, error) {
	snap := k.cfg.Store.Snapshot()
	at := keysAt{snap.Epoch(), snap.TableIndex(state.TableKeys)}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.jwks != nil && k.jwksAt == at {
		return k.jwks, nil
	}
	set := struct {
		Keys []jwk `json:"keys"`
	}{Keys: []jwk{}}
	for _, row := range snap.RootKeys(nil) {
		parsed, err := x509.ParsePKIXPublicKey(row.PublicKey)
		if err != nil {
			return nil, fmt.Errorf("read root key %s: %w", row.KeyID, err)
		}
		public, ok := parsed.(*rsa.PublicKey)
		if !ok {
			return nil, fmt.Errorf("read root key %s: it is a %T", row.KeyID, parsed)
		}
		set.Keys = append(set.Keys, jwk{Use: "sig", KeyType: "RSA", KeyID: row.KeyID, Algorithm: "RS256",
			N: base64.RawURLEncoding.EncodeToString(public.N.Bytes()),
			E: base64.RawURLEncoding.EncodeToString(big.NewInt(int64(public.E)).Bytes())})
	}
	out, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("write key set: %w", err)
	}
	k.jwks, k.jwksAt = out, at
	return out, nil
}

// SignClaims makes a signed JWT (RS256) of claims with the active key.
func (k *Keyring) SignClaims(claims any) (token, keyID string, err error) {
	row := active(k.cfg.Store)
	if row == nil {
		return "", "", structs.Errorf(structs.CodeUnavailable, "the cluster has no root key yet")
	}
	signer, err := k.signer(row)
	if err != nil {
		return "", "", err
	}
	header, err := json.Marshal(struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
		Type      string `json:"typ"`
	}{"RS256", row.KeyID, "JWT"})
	if err != nil {
		return "", "", fmt.Errorf("sign claims: %w", err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", "", fmt.Errorf("sign claims: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(body)
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, signer, crypto.SHA256, digest[:])
	if err != nil {
		return "", "", fmt.Errorf("sign claims: %w", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), row.KeyID, nil
}

// signer unseals a key, once.
func (k *Keyring) signer(row *structs.RootKey) (*rsa.PrivateKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.signers[row.KeyID]; s != nil {
		return s, nil
	}
	if k.kek == nil || k.kek.ID != row.KEKID {
		return nil, structs.Errorf(structs.CodeUnavailable, "this server does not have the cluster's key file yet")
	}
	plain, err := k.kek.open(row.KeyID, row.WrappedKey, row.Nonce)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(plain)
	if err != nil {
		return nil, fmt.Errorf("read root key %s: %w", row.KeyID, err)
	}
	s, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read root key %s: it is a %T", row.KeyID, parsed)
	}
	k.signers[row.KeyID] = s
	return s, nil
}
