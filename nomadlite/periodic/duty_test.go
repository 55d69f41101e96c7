package periodic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a duty over a real store, in virtual time.
type rig struct {
	*testing.T
	log  *clustertest.Log
	fail atomic.Pointer[error] // of the next write
	ids  atomic.Int64
	done chan error
	end  context.CancelFunc
}

func withRig(t *testing.T, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, log: clustertest.New()}
		test(r)
		r.rest()
	})
}

// Propose refuses once when fail is set.
func (r *rig) Propose(kind fsm.Kind, req any) func(context.Context) (any, uint64, error) {
	if err := r.fail.Swap(nil); err != nil {
		return func(context.Context) (any, uint64, error) { return nil, 0, *err }
	}
	return r.log.Propose(kind, req)
}

// lead begins a term.
func (r *rig) lead() {
	r.rest()
	ctx, cancel := context.WithCancel(context.Background())
	duty := New(Config{Logger: hclog.NewNullLogger(), Store: r.log.Store, Raft: r,
		NewID: func() string { return fmt.Sprint("own", r.ids.Add(1)) }})
	r.done, r.end = make(chan error, 1), cancel
	go func() { r.done <- duty.Run(ctx, func() {}) }()
	synctest.Wait()
}

// rest ends the term.
func (r *rig) rest() {
	if r.end != nil {
		r.end()
		<-r.done
		r.end = nil
	}
}

func (r *rig) pass(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

func (r *rig) register(job *structs.Job) {
	r.Helper()
	_, _, err := r.log.Apply(context.Background(), fsm.KindJobRegister, &fsm.JobRegister{Job: job, Now: time.Now().UnixNano()})
	if err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
}

// launches gives the times of the children, in minutes since begin.
func (r *rig) launches(id string, begin time.Time) (minutes []int) {
	for child := range r.log.Store.Children(nil, "default", id) {
		var epoch int64
		if _, err := fmt.Sscanf(structs.Val(child.ID), id+"/periodic-%d", &epoch); err != nil {
			r.Fatal(err)
		}
		minutes = append(minutes, int(time.Unix(epoch, 0).Sub(begin).Minutes()))
	}
	return minutes
}

func (r *rig) want(id string, begin time.Time, minutes ...int) {
	r.Helper()
	if got := r.launches(id, begin); !slices.Equal(got, minutes) {
		r.Errorf("launches of %s: %v, want %v", id, got, minutes)
	}
}

func TestDutyLaunches(t *testing.T) {
	withRig(t, func(r *rig) {
		begin := time.Now()
		r.lead()
		r.register(cronJob("minute", "* * * * *"))
		r.pass(150 * time.Second)
		r.want("minute", begin, 1, 2)
		evals := r.log.Store.EvalsByJob(nil, "default", fmt.Sprint("minute/periodic-", begin.Add(time.Minute).Unix()))
		if len(evals) != 1 || evals[0].TriggeredBy != structs.EvalTriggerPeriodicJob || evals[0].Status != structs.EvalStatusPending {
			t.Errorf("evaluations %+v", evals)
		}
		// Another schedule takes the place of the first, at once.
		r.register(cronJob("minute", "5 * * * *"))
		r.pass(10 * time.Minute)
		r.want("minute", begin, 1, 2, 5)
		stopped := &fsm.JobDeregister{Namespace: "default", JobID: "minute", Now: time.Now().UnixNano()}
		if _, _, err := r.log.Apply(context.Background(), fsm.KindJobDeregister, stopped); err != nil {
			t.Fatal(err)
		}
		r.pass(3 * time.Hour)
		r.want("minute", begin, 1, 2, 5)
	})
}

func TestANewLeaderGoesOnWhereTheOldOneStopped(t *testing.T) {
	withRig(t, func(r *rig) {
		begin := time.Now()
		r.register(cronJob("minute", "* * * * *"))
		r.lead()
		r.pass(61 * time.Second)
		r.lead() // nothing was missed, nothing is launched again
		r.pass(60 * time.Second)
		r.want("minute", begin, 1, 2)
		r.rest()
		r.pass(10 * time.Minute)
		r.lead()
		r.pass(2 * time.Second)
		r.want("minute", begin, 1, 2, 12)
		r.pass(time.Minute)
		r.want("minute", begin, 1, 2, 12, 13)
	})
}

func TestTwoLeadersLaunchOnce(t *testing.T) {
	withRig(t, func(r *rig) {
		begin := time.Now()
		r.register(cronJob("minute", "* * * * *"))
		other := &rig{T: t, log: r.log}
		other.ids.Store(1000)
		r.lead()
		other.lead()
		r.pass(5*time.Minute + time.Second)
		other.rest()
		r.want("minute", begin, 1, 2, 3, 4, 5)
		n := 0
		for range r.log.Store.Evals(nil, "default") {
			n++
		}
		if n != 5 {
			t.Errorf("%d evaluations of 5 launches", n)
		}
	})
}

func TestFailedWrites(t *testing.T) {
	withRig(t, func(r *rig) {
		begin := time.Now()
		r.register(cronJob("minute", "* * * * *"))
		r.lead()
		refused := errors.New("the disk is full")
		r.fail.Store(&refused)
		r.pass(60*time.Second + 500*time.Millisecond)
		r.want("minute", begin)
		r.pass(time.Second)
		r.want("minute", begin, 1)
		for _, code := range []structs.Code{structs.CodeNotFound, structs.CodeValidation} {
			gone := structs.Errorf(code, "gone")
			r.fail.Store(&gone)
			r.pass(time.Minute)
		}
		r.want("minute", begin, 1)
		r.log.SetLeader(false)
		r.pass(time.Minute)
		if err := <-r.done; !errors.Is(err, structs.ErrNoLeader) {
			t.Errorf("the duty ended with %v", err)
		}
		r.end()
		r.end = nil
	})
}
