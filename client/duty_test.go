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

// The servers' grace is 10 s unless it is configured. A hung server costs as long as its answer is awaited.
func TestHeartbeatsLeaveTimeForAnotherServer(t *testing.T) {
	const grace, margin = 10 * time.Second, time.Second
	for _, ttl := range []time.Duration{10 * time.Second, 20 * time.Second, 2 * time.Minute} {
		latest := nextBeat(ttl, 2*ttl/10, 0) + answerWithin(ttl, 0)
		if latest > ttl+grace-margin {
			t.Errorf("time to live %s: the next server is asked after %s", ttl, latest)
		}
	}
	if got := nextBeat(20*time.Second, 0, 3*time.Second); got != 3*time.Second {
		t.Errorf("a lease is renewed after %s", got)
	}
}
