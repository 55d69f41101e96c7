// Package pause waits for a while that can be cut short.
package pause

import (
	"context"
	"time"
)

// For waits for d; false when ctx is done first.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
