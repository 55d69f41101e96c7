package lease

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/internal/boottime"
)

type rig struct {
	*testing.T
	*Tracker
	clock boottime.Fake
}

func with(t *testing.T, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		clock := boottime.Fake{ID: "b1"}
		time.Sleep(time.Second)
		test(&rig{t, New(clock, Moment{}), clock})
	})
}

// sent gives the moment of a heartbeat that is sent now.
func (r *rig) sent() Moment {
	now, id := r.clock.Boot()
	return Moment{BootID: id, Sent: now}
}

func (r *rig) over(want ...string) time.Duration {
	r.Helper()
	got, next := r.Expired()
	if len(got) != len(want) {
		r.Errorf("run out: %v, want %v", got, want)
	}
	for i := range want {
		if got[i].AllocID != want[i] {
			r.Errorf("run out: %v, want %v", got, want)
		}
	}
	return next
}

func isOpen(gate <-chan struct{}) bool {
	select {
	case <-gate:
		return true
	default:
		return false
	}
}

// TestLeaseCountsFromSending of the heartbeat that was confirmed, however late the answer came.
func TestLeaseCountsFromSending(t *testing.T) {
	with(t, func(r *rig) {
		first := r.sent()
		r.Confirm(first)
		r.Hold("a", 30*time.Second, 5*time.Second, false)
		r.Hold("b", time.Minute, 5*time.Second, false)
		time.Sleep(20 * time.Second)
		second := r.sent()
		time.Sleep(9 * time.Second)
		r.Confirm(second)
		if at, _ := r.Until("a"); at.At != second.Sent+35*time.Second {
			t.Errorf("it is killed at %s, sent at %s", at.At, second.Sent)
		}
		if next := r.over(); next != second.Sent+30*time.Second {
			t.Errorf("next look at %s", next-second.Sent)
		}
		time.Sleep(21 * time.Second)
		r.over("a")
		r.over()
		if left := r.Renewals(); len(left) != 1 || left["b"].At != second.Sent+65*time.Second {
			t.Errorf("renewals %v", left)
		}
		if r.Pace() != 20*time.Second {
			t.Errorf("pace %s", r.Pace())
		}
	})
}

// TestOverIsOver even if the heartbeat that came too late is confirmed, and a late answer to an early one gives nothing.
func TestOverIsOver(t *testing.T) {
	with(t, func(r *rig) {
		r.Confirm(r.sent())
		r.Hold("a", 10*time.Second, time.Second, false)
		early := r.sent()
		time.Sleep(11 * time.Second)
		if over := r.Confirm(r.sent()); len(over) != 1 || over[0].AllocID != "a" || over[0].Kill.At != early.Sent+11*time.Second {
			t.Errorf("run out: %+v", over)
		}
		if len(r.Renewals()) != 0 {
			t.Error("it is renewed")
		}
		newest := r.Last()
		r.Confirm(early)
		if r.Last() != newest {
			t.Error("the clock of the lease went back")
		}
		if at, ok := r.Until("a"); !ok || at.At != early.Sent+11*time.Second {
			t.Errorf("it is killed at %v", at)
		}
	})
}

// TestNewLeaseBeginsWithAFreshHeartbeat since the servers count from the last one they had.
func TestNewLeaseBeginsWithAFreshHeartbeat(t *testing.T) {
	with(t, func(r *rig) {
		if isOpen(r.Hold("a", 10*time.Second, 0, false)) {
			t.Error("it begins without any heartbeat")
		}
		late := r.sent()
		time.Sleep(6 * time.Second)
		r.over()
		r.Confirm(late)
		gate := r.Hold("a", 10*time.Second, 0, false)
		if isOpen(gate) {
			t.Error("it begins with a heartbeat of 6 s ago")
		}
		r.Confirm(r.sent())
		if !isOpen(gate) || !isOpen(r.Hold("b", 10*time.Second, 0, false)) {
			t.Error("it does not begin")
		}
	})
}

// TestLeaseThatNeverBeganRunsOutToo since the servers give up what they do not hear of, whether it began or not: a heartbeat
// that is confirmed after that must not let it begin beside its replacement.
func TestLeaseThatNeverBeganRunsOutToo(t *testing.T) {
	with(t, func(r *rig) {
		r.Confirm(r.sent())
		time.Sleep(6 * time.Second)
		gate := r.Hold("a", 10*time.Second, time.Second, false)
		if next := r.over(); next != r.Last().Sent+10*time.Second {
			t.Errorf("next look at %s", next)
		}
		time.Sleep(6 * time.Second)
		if over := r.Confirm(r.sent()); len(over) != 1 || isOpen(gate) {
			t.Errorf("run out: %v, begun: %v", over, isOpen(gate))
		}
	})
}

// TestRestoredLease goes on from what was kept, and a lease of another boot is over.
func TestRestoredLease(t *testing.T) {
	with(t, func(r *rig) {
		kept := r.sent()
		time.Sleep(5 * time.Second)
		next := New(r.clock, kept)
		if !isOpen(next.Hold("a", 10*time.Second, time.Second, true)) {
			t.Error("what runs already waits")
		}
		next.Hold("ended", time.Hour, time.Second, true)
		next.End(Over{AllocID: "ended", Kill: boottime.Deadline{At: 7}})
		if at, ok := next.Until("ended"); !ok || at.At != 7 {
			t.Errorf("it is killed at %v", at)
		}
		if _, at := next.Expired(); at != kept.Sent+10*time.Second {
			t.Errorf("next look at %s", at-kept.Sent)
		}
		booted := New(boottime.Fake{ID: "b2"}, kept)
		booted.Hold("a", time.Hour, time.Second, true)
		if over, _ := booted.Expired(); len(over) != 1 {
			t.Errorf("after a boot: %v", over)
		}
		booted.Drop("a")
		if _, ok := booted.Until("a"); ok {
			t.Error("it is still known")
		}
	})
}
