package endpoint

import (
	"net/http"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func keyringRoutes(b *Backend) []route.Route {
	return []route.Route{
		local("/.well-known/jwks.json", b.handler(b.readJWKS)),
		read("/v1/operator/keyring/keys", b.handler(b.listKeys)),
		write("/v1/operator/keyring/rotate", b.handler(b.rotateKey)),
		remove("/v1/operator/keyring/key/{key_id}", b.handler(b.deleteKey)),
	}
}

func (b *Backend) readJWKS(w http.ResponseWriter, _ *route.Request, q *query) error {
	text, err := b.Keyring.JWKS()
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "max-age=300") // keys are published well before they sign
	return answerRaw(w, q, text)
}

func (b *Backend) listKeys(w http.ResponseWriter, r *route.Request, q *query) error {
	var keys []*structs.RootKey
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		keys = snap.RootKeys(ws)
		return snap.TableIndex(state.TableKeys)
	})
	if err != nil {
		return err
	}
	out := []*structs.RootKeyMeta{}
	for _, key := range keys {
		out = append(out, &key.RootKeyMeta)
	}
	return answer(w, q, out)
}

func (b *Backend) rotateKey(w http.ResponseWriter, r *route.Request, q *query) error {
	full, err := q.flag("full")
	if err != nil {
		return err
	}
	if algo := q.values.Get("algo"); algo != "" && algo != "aes256-gcm" {
		return structs.Errorf(structs.CodeInvalid, "invalid algorithm %q: expected \"aes256-gcm\"", algo)
	}
	if q.values.Get("publish_time") != "" {
		return unsupported("a key that is published before it is used")
	}
	key, err := b.Keyring.Rotate(r.Context(), full)
	if err != nil {
		return err
	}
	// The answer shows the key as it was submitted, without the indexes that storing it gave: the public API's clients
	// wait for what is newer than them.
	submitted := *key
	submitted.CreateIndex, submitted.ModifyIndex = 0, 0
	index := max(key.CreateIndex, b.Store.TableIndex(state.TableKeys))
	return answerWrite(w, q, index, struct {
		Key   *structs.RootKeyMeta
		Index uint64
	}{&submitted, index})
}

func (b *Backend) deleteKey(w http.ResponseWriter, r *route.Request, q *query) error {
	if _, err := q.flag("force"); err != nil { // nothing is encrypted with root keys yet
		return err
	}
	id := r.Param("key_id")
	if b.Store.RootKey(nil, id) == nil {
		return structs.Errorf(structs.CodeNotFound, "root key %q not found", id)
	}
	if err := b.Keyring.Remove(r.Context(), id); err != nil {
		return err
	}
	index := b.Store.TableIndex(state.TableKeys)
	return answerWrite(w, q, index, struct{ Index uint64 }{index})
}
