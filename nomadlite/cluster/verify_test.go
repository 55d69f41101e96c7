package cluster

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestVerificationsAreAskedTogether: those who come while a question is under way share the next one, and none is
// answered by a question that was asked before it came.
func TestVerificationsAreAskedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		refused := errors.New("no")
		v := &verifier{ask: func() error {
			n := asked + 1
			asked = n
			time.Sleep(time.Second) // virtual
			if n == 3 {
				return refused
			}
			return nil
		}}
		var wg sync.WaitGroup
		began := time.Now()
		ask := func(n int, took time.Duration, want error) {
			for range n {
				wg.Go(func() {
					from := time.Now()
					if err := v.verify(t.Context()); !errors.Is(err, want) {
						t.Errorf("answered %v, want %v", err, want)
					}
					if d := time.Since(from); d != took {
						t.Errorf("answered after %s, want %s", d, took)
					}
				})
			}
			synctest.Wait()
		}
		ask(1, time.Second, nil)
		time.Sleep(400 * time.Millisecond)
		ask(500, 1600*time.Millisecond, nil) // the rest of the first question, and one of their own
		time.Sleep(700 * time.Millisecond)
		ask(500, 1900*time.Millisecond, refused)
		wg.Wait()
		if asked != 3 || time.Since(began) != 3*time.Second {
			t.Errorf("1001 callers were answered by %d questions in %s", asked, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := v.verify(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller whose time is up got %v", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
	})
}
