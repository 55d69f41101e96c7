package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// TestContendedEvaluationRunsAgainByItself: nothing need ever change that wakes an evaluation whose plans kept meeting
// others, so time alone must.
func TestContendedEvaluationRunsAgainByItself(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		contended := r.eval("a", "j1", structs.EvalStatusBlocked)
		contended.TriggeredBy, contended.EscapedComputedClass = structs.EvalTriggerMaxPlans, true
		room := r.eval("b", "j2", structs.EvalStatusBlocked) // blocked for want of room: only a change helps it
		room.EscapedComputedClass = true
		r.put(contended, room)
		r.expect("")
		time.Sleep(r.broker.retryWait - time.Millisecond) // virtual
		synctest.Wait()
		r.expect("")
		time.Sleep(r.broker.retryWait + time.Millisecond)
		synctest.Wait()
		token := r.expect("a")
		// It meets others again: the same evaluation is blocked once more, and runs once more.
		again := contended.Copy()
		again.SnapshotIndex = r.log.Store.Index()
		r.put(again)
		r.ack("a", token)
		r.expect("")
		time.Sleep(2 * r.broker.retryWait)
		synctest.Wait()
		r.ack("a", r.expect("a"))
		time.Sleep(time.Hour)
		synctest.Wait()
		r.expect("")
	})
}

// TestShortenedDeliveryIsGivenBackSooner: what was handed to a server that is then killed must not wait for long.
func TestShortenedDeliveryIsGivenBackSooner(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.put(r.eval("a", "j1", structs.EvalStatusPending))
		token := r.expect("a")
		if err := r.broker.Shorten("a", token, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			time.Sleep(9 * time.Second) // virtual
			if err := r.broker.Renew("a", token); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		r.expect("")
		time.Sleep(12 * time.Second) // the lease and the wait after a failed delivery
		synctest.Wait()
		r.expect("a")
		if err := r.broker.Shorten("a", token, time.Second); err == nil {
			t.Error("a delivery that was taken away could be shortened")
		}
	})
}
