package state

import (
	"context"
	"errors"
	"sync"

	"github.com/nomadlite/nomadlite/structs"
)

// followBuffer is how many changes may wait for a follower before it reads everything again.
const followBuffer = 4096

// Follower is a duty of the leader which keeps a picture of the state and acts on it.
type Follower struct {
	// Load reads the whole state anew and gives its raft index. It is called first, and again when the follower lagged.
	Load func() (index uint64)
	// Change takes one change in that is newer than what was loaded.
	Change func(Change)
	// Lagged is told before the state is read again because changes came faster than they were taken in.
	Lagged func()
	// Act acts beside that until its context ends. Its error ends the follower.
	Act func(ctx context.Context) error
}

// Follow runs f until ctx ends or acting fails, and gives the reason. It calls ready once the state was read.
func (s *Store) Follow(ctx context.Context, f Follower, ready func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	sub := s.Subscribe(followBuffer)
	defer sub.Close()
	from := f.Load()
	ready()
	wg.Go(func() { cancel(f.Act(ctx)) })
	for {
		change, err := sub.Next(ctx)
		switch {
		case errors.Is(err, structs.ErrLagged):
			f.Lagged()
			from = f.Load()
		case err != nil:
			return err
		case change.Index > from:
			f.Change(change)
		}
	}
}
