package endpoint

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/state"
)

// look reads from a snapshot what a request asks for and gives the index of its newest change. ws hears of the next
// one; a look that adds nothing to it runs again for each raft entry, which suits an answer made of several tables. It
// keeps its result in variables of the caller.
type look func(ws memdb.WatchSet, snap *state.Snapshot) (index uint64)

// block runs look, at once or, with ?index, until its answer is newer than that index or the wait is over. It then
// sets the headers of a read.
func (b *Backend) block(w http.ResponseWriter, r *route.Request, q *query, look look) error {
	if q.consistent {
		if err := b.Raft.VerifyLeader(r.Context()); err != nil {
			return err
		}
	}
	if q.minIndex == 0 {
		b.setReadHeaders(w, look(nil, b.Store.Snapshot()))
		return nil
	}
	// Many clients ask at the same time, and should not all come back at the same time.
	wait := q.wait + rand.N(q.wait/16+1)
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	if b.Stopping != nil {
		go func() { // ends with the request
			select {
			case <-b.Stopping:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	for {
		ws := memdb.NewWatchSet()
		snap := b.Store.Snapshot()
		index := look(ws, snap)
		if index > q.minIndex || ctx.Err() != nil {
			b.setReadHeaders(w, index)
			return r.Context().Err()
		}
		// The end of the wait is an answer like any other.
		if len(ws) > 0 {
			_ = ws.WatchCtx(ctx)
		} else {
			_ = b.Store.WaitIndex(ctx, snap.Index()+1)
		}
	}
}

func (b *Backend) setReadHeaders(w http.ResponseWriter, index uint64) {
	h := w.Header()
	h.Set("X-Nomad-Index", strconv.FormatUint(index, 10))
	h.Set("X-Nomad-KnownLeader", strconv.FormatBool(b.Raft.IsLeader() || b.Raft.LeaderAddr() != ""))
	h.Set("X-Nomad-LastContact", strconv.FormatInt(b.Raft.LastContact().Milliseconds(), 10))
}

func setIndex(w http.ResponseWriter, index uint64) {
	w.Header().Set("X-Nomad-Index", strconv.FormatUint(index, 10))
}

// unixNano is the time as commands carry it.
func (b *Backend) unixNano() int64 { return b.now().UnixNano() }

// stamp is t in whole nanoseconds without a monotonic reading, as it is stored.
func stamp(t time.Time) time.Time { return t.UTC().Round(0) }
