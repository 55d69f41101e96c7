package endpoint

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// Snapshots saves the state of the cluster and restores it.
type Snapshots interface {
	SaveSnapshot(ctx context.Context) (*SavedSnapshot, error)
	// RestoreSnapshot reads the archive to its end and gives the index of the state that was restored. An archive that
	// is not whole is refused with structs.CodeInvalid before anything is touched.
	RestoreSnapshot(ctx context.Context, archive io.Reader) (index uint64, err error)
}

// SavedSnapshot is an archive to be read and closed.
type SavedSnapshot struct {
	io.ReadCloser
	Index  uint64 // raft index of the newest entry in it
	Digest string // of the archive, as the HTTP header of that name has it
}

func snapshotRoutes(b *Backend) []route.Route {
	save := read("/v1/operator/snapshot", b.handler(b.saveSnapshot))
	save.Stream = true // it is compressed already
	restore := write("/v1/operator/snapshot", b.handler(b.restoreSnapshot))
	restore.MaxBody = -1
	return []route.Route{save, restore}
}

func (b *Backend) saveSnapshot(w http.ResponseWriter, r *route.Request, q *query) error {
	stale, err := q.flag("stale")
	if err != nil {
		return err
	}
	if !stale {
		if err := b.Raft.VerifyLeader(r.Context()); err != nil {
			return err
		}
	}
	saved, err := b.Snapshots.SaveSnapshot(r.Context())
	if err != nil {
		return err
	}
	defer saved.Close()
	h := w.Header()
	h.Set("Content-Type", "application/x-gzip")
	h.Set("Digest", saved.Digest)
	h.Set("X-Nomad-Index", strconv.FormatUint(saved.Index, 10))
	h.Set("X-Nomad-LastContact", strconv.FormatInt(b.Raft.LastContact().Milliseconds(), 10))
	h.Set("X-Nomad-KnownLeader", strconv.FormatBool(b.Raft.LeaderAddr() != ""))
	if _, err := io.Copy(w, saved); err != nil {
		b.Logger.Warn("a snapshot was not sent to its end", "error", err) // its reader sees that by the digest
	}
	return nil
}

func (b *Backend) restoreSnapshot(w http.ResponseWriter, r *route.Request, q *query) error {
	if r.Body == nil || r.ContentLength == 0 {
		return structs.Errorf(structs.CodeInvalid, "there is no snapshot in the request")
	}
	index, err := b.Snapshots.RestoreSnapshot(r.Context(), r.Body)
	if err != nil {
		return err
	}
	return answerWrite(w, q, index, nil)
}
