package client

import (
	"testing"
	"time"
)

// TestTimeForAnAnswer: a node that has just begun is in no hurry, since nobody awaits it yet; a busy server may well take
// longer than a second to write down that it is there.
func TestTimeForAnAnswer(t *testing.T) {
	for _, c := range []struct{ ttl, pace, want time.Duration }{
		{0, 0, maxAnswer},
		{0, 3 * time.Second, 3 * time.Second},
		{time.Second, 0, minAnswer},
		{5 * time.Second, 0, 3 * time.Second},
		{time.Minute, 0, maxAnswer},
		{time.Minute, 100 * time.Millisecond, minAnswer / 2},
	} {
		if got := answerWithin(c.ttl, c.pace); got != c.want {
			t.Errorf("heartbeats every %s, leases every %s: %s, want %s", c.ttl, c.pace, got, c.want)
		}
	}
}
