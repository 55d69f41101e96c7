package nomadlite

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/archive"
	"github.com/nomadlite/nomadlite/nomadlite/endpoint"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

var _ endpoint.Snapshots = (*Server)(nil)

// errRestored ends a reign: the leader's duties begin anew from the state that was restored.
var errRestored = errors.New("a snapshot was restored")

// scratch is a file without a name: its room is free again once it is closed.
func (s *Server) scratch() (*os.File, error) {
	dir := ""
	if s.cfg.DataDir != "" {
		dir = filepath.Join(s.cfg.DataDir, "server")
	}
	f, err := os.CreateTemp(dir, ".snapshot-*")
	if err != nil {
		return nil, fmt.Errorf("make room for a snapshot: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("make room for a snapshot: %w", err), f.Close())
	}
	return f, nil
}

// SaveSnapshot takes a snapshot of this server's state and gives its archive.
func (s *Server) SaveSnapshot(ctx context.Context) (*endpoint.SavedSnapshot, error) {
	log := s.lead.log()
	if log == nil {
		return nil, structs.ErrNoLeader
	}
	meta, content, err := log.OpenSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	meta.Created = time.Now()
	file, err := s.scratch()
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	if err = archive.Write(io.MultiWriter(file, digest), meta, content); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("save snapshot: %w", err), file.Close())
	}
	return &endpoint.SavedSnapshot{ReadCloser: file, Index: meta.Index,
		Digest: "sha-256=" + base64.StdEncoding.EncodeToString(digest.Sum(nil))}, nil
}

// RestoreSnapshot puts the state of an archive in the place of the cluster's. Nothing is touched unless the archive is
// whole and this program can read all of it. It answers once the leader's duties have begun anew.
func (s *Server) RestoreSnapshot(ctx context.Context, from io.Reader) (uint64, error) {
	log := s.lead.log()
	if log == nil || !s.lead.IsLeader() {
		return 0, structs.ErrNoLeader
	}
	found := state.New(state.Config{})
	meta, err := archive.Read(from, found.Restore)
	if err != nil {
		return 0, err
	}
	// The state is written anew: as a history of its own, so that nodes ask for everything that they should run, and
	// without keys that nobody here can use.
	file, err := s.scratch()
	if err != nil {
		return 0, err
	}
	defer file.Close()
	dropped := 0
	opts := state.PersistOptions{Epoch: uuid.New(), Keep: func(key *structs.RootKey) bool {
		if s.keys.Opens(key) {
			return true
		}
		dropped++
		return false
	}}
	if err := found.Snapshot().PersistWith(file, opts); err != nil {
		return 0, fmt.Errorf("restore snapshot: %w", err)
	}
	if meta.Size, err = file.Seek(0, io.SeekCurrent); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return 0, fmt.Errorf("restore snapshot: %w", err)
	}
	if err := s.lead.VerifyLeader(ctx); err != nil {
		return 0, err
	}
	s.log.Warn("a snapshot is being restored", "id", meta.ID, "index", meta.Index, "nodes_and_jobs_after_it", "are forgotten")
	if err := log.RestoreSnapshot(meta, file); err != nil {
		return 0, err
	}
	if dropped > 0 {
		s.log.Warn("root keys of the snapshot were left out: this cluster's key file does not open them", "keys", dropped)
	}
	return s.store.Index(), s.awaitReign(ctx, s.store.Epoch())
}

// awaitReign waits until this server leads with duties that began from the state of that history.
func (s *Server) awaitReign(ctx context.Context, epoch string) error {
	for {
		changed := s.lead.LeaderChanged()
		if reigned := s.reigned.Load(); s.lead.IsLeader() && reigned != nil && *reigned == epoch {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the snapshot is restored, but the leader's duties have not begun yet: %w", ctx.Err())
		}
	}
}
