package allocrunner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

func TestReportTellsThatTheLeaseEndedIt(t *testing.T) {
	in := func(r *rig) boottime.Deadline { return boottime.After(r.runner.cfg.Clock, time.Second) }
	for name, tc := range map[string]struct {
		end    func(r *rig)
		fenced bool
	}{
		"lease over": {func(r *rig) { r.runner.Fence(in(r)) }, true},
		"lease over while it waits": {func(r *rig) {
			r.crash()
			r.disk = &disk{}
			r.alloc = awaiting(t).alloc
			r.run()
			r.runner.Fence(in(r))
		}, true},
		"failed":                      {func(r *rig) { r.driver.End("a1/a/1", 1) }, false},
		"stopped, then the lease ran": {func(r *rig) { r.stop(); r.runner.Fence(in(r)) }, false},
		"lease over, then stopped":    {func(r *rig) { r.runner.Fence(in(r)); synctest.Wait(); r.stop() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, one, func(r *rig) {
				r.run()
				tc.end(r)
				synctest.Wait()
				time.Sleep(time.Minute) // virtual: whatever ending takes
				synctest.Wait()
				o := r.runner.Observation()
				want := structs.AllocClientStatusFailed
				if name == "stopped, then the lease ran" {
					want = structs.AllocClientStatusComplete
				}
				if o.Fenced != tc.fenced || o.ObservedStatus != want {
					t.Fatalf("fenced %v, %s", o.Fenced, o.ObservedStatus)
				}
			})
		})
	}
}
