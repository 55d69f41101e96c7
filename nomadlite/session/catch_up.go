package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/state"
)

// catchUpTimeout bounds how long a follower tries to become current.
const catchUpTimeout = 5 * time.Second

// catchUp makes sure that a server's state is at least as new as anything that was acknowledged before it was asked:
// on the leader by a check that it still leads, on a follower by waiting for the leader's index.
type catchUp struct {
	store   *state.Store
	leading func(context.Context) error // may be nil
	forward LeaderAsker
}

func newCatchUp(store *state.Store, leading func(context.Context) error, f LeaderAsker) *catchUp {
	return &catchUp{store: store, leading: leading, forward: f}
}

func (c *catchUp) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, pathIndex, nil)
	if err != nil {
		return fmt.Errorf("ask for the index: %w", err)
	}
	res, err := c.forward.Do(req)
	if errors.Is(err, ErrIsLeader) {
		if c.leading == nil {
			return nil
		}
		return c.leading(ctx)
	}
	if err != nil {
		return fmt.Errorf("ask for the index: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return route.ReadError(res)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, 64))
	if err != nil {
		return fmt.Errorf("ask for the index: %w", err)
	}
	var index uint64
	if err := codec.Unmarshal(data, &index); err != nil {
		return fmt.Errorf("ask for the index: %w", err)
	}
	return c.store.WaitIndex(ctx, index)
}
