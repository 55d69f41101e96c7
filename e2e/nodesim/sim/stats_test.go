package sim

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRegDoneIsTheFirstTimeAtWhichAllAreReady counts neither nodes that have only registered nor ones that were ready before.
func TestRegDoneIsTheFirstTimeAtWhichAllAreReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := &tally{nodes: 2, began: time.Now()}
		for _, step := range []struct {
			do    func()
			want  int64
			ready int
		}{
			{tally.registered, 0, 0},
			{tally.registered, 0, 0},
			{func() { tally.ready(1) }, 0, 1},
			{func() { tally.ready(-1) }, 0, 0},
			{func() { tally.ready(1) }, 0, 1},
			{func() { tally.ready(1) }, 6000, 2},
			{func() { tally.ready(-1) }, 6000, 1},
			{func() { tally.ready(1) }, 6000, 2},
		} {
			time.Sleep(time.Second) // virtual
			step.do()
			if st, _ := tally.look(); st.RegDoneMS != step.want || st.Ready != step.ready {
				t.Errorf("after %v: %+v", time.Since(tally.began), st)
			}
		}
	})
}
