package allocrunner

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/nomadlite/nomadlite/client/hook"
)

// slowEnd is in Postrun until it may go on.
type slowEnd struct{ on chan struct{} }

func (*slowEnd) Name() string { return "slow end" }
func (h *slowEnd) Postrun(ctx context.Context, _ *hook.AllocRequest, _ *hook.AllocResponse) error {
	select {
	case <-h.on:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestAnEndIsSettledOnlyWhenItIsCarriedThrough: an agent that finds all tasks of an allocation dead has news for the servers
// only once the allocation is over too. One whose task runs is settled when that was taken over.
func TestAnEndIsSettledOnlyWhenItIsCarriedThrough(t *testing.T) {
	settled := func(r *rig) bool {
		select {
		case <-r.runner.Settled():
			return true
		default:
			return false
		}
	}
	inBubble(t, one, func(r *rig) {
		end := &slowEnd{on: make(chan struct{})}
		r.more = []hook.Hook{end}
		r.run()
		r.crash()
		r.run()
		if !settled(r) {
			t.Error("not settled though its task was taken over")
		}
		r.driver.End("a1/a/1", 0)
		synctest.Wait()
		r.crash()
		r.run()
		if settled(r) {
			t.Error("settled though what follows from its tasks' end is not done")
		}
		close(end.on)
		synctest.Wait()
		if !settled(r) || !r.runner.Terminal() {
			t.Errorf("settled %t, over %t", settled(r), r.runner.Terminal())
		}
	})
}
