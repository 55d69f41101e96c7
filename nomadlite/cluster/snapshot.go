package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadlite/nomadlite/nomadlite/archive"
)

// restoreTimeout bounds how long raft may take to get to a restore that it was asked for.
const restoreTimeout = time.Minute

// OpenSnapshot takes a snapshot and opens it: meta says what it is, state gives its bytes. The caller closes it.
func (r *Raft) OpenSnapshot(ctx context.Context) (meta archive.Meta, state io.ReadCloser, err error) {
	future := r.raft.Snapshot()
	var found *raft.SnapshotMeta
	switch err = r.futures.settle(ctx, future); {
	case err == nil:
		found, state, err = future.Open()
	case errors.Is(err, raft.ErrNothingNewToSnapshot):
		found, state, err = r.newestSnapshot()
	}
	if err != nil {
		return archive.Meta{}, nil, fmt.Errorf("take raft snapshot: %w", err)
	}
	return archive.Meta{Version: int(found.Version), ID: found.ID, Index: found.Index, Term: found.Term, Size: found.Size}, state, nil
}

func (r *Raft) newestSnapshot() (*raft.SnapshotMeta, io.ReadCloser, error) {
	list, err := r.snaps.List() // newest first
	if err != nil {
		return nil, nil, err
	}
	if len(list) == 0 {
		return nil, nil, errors.New("there is nothing in the state yet")
	}
	return r.snaps.Open(list[0].ID)
}

// RestoreSnapshot puts a state in the place of every server's. Only the leader can; entries that were not committed
// before are given up.
func (r *Raft) RestoreSnapshot(meta archive.Meta, state io.Reader) error {
	err := r.raft.Restore(&raft.SnapshotMeta{Version: raft.SnapshotVersionMax, ID: meta.ID, Index: meta.Index, Term: meta.Term,
		Size: meta.Size}, state, restoreTimeout)
	if err != nil {
		return fmt.Errorf("restore raft snapshot: %w", leaderError(err))
	}
	return nil
}
