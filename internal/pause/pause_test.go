package pause

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		if !For(ctx, 2*time.Second) || time.Since(begin) != 2*time.Second {
			t.Errorf("waited %s", time.Since(begin))
		}
		if For(ctx, 2*time.Second) || time.Since(begin) != 3*time.Second {
			t.Errorf("waited %s, beyond its context", time.Since(begin))
		}
	})
}
