package heartbeat

import (
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// TestNeverReplacedIsNeverLost: a group that wants no replacement gains nothing from being given up, so that its
// allocation is unknown until its node is heard again.
func TestNeverReplacedIsNeverLost(t *testing.T) {
	for name, group := range map[string]*structs.TaskGroup{
		"replace = false": {Name: structs.Ptr("g"), Disconnect: &structs.DisconnectStrategy{Replace: structs.Ptr(false)}},
		"with lost_after": {Name: structs.Ptr("g"),
			Disconnect: &structs.DisconnectStrategy{Replace: structs.Ptr(false), LostAfter: structs.Ptr(time.Minute)}},
		"older option": {Name: structs.Ptr("g"), PreventRescheduleOnLost: structs.Ptr(true)},
	} {
		t.Run(name, func(t *testing.T) {
			withRig(t, group, func(r *rig) {
				r.pass(r.beat("n1", true) + 11*time.Second)
				r.expect("a1", r.alloc("a1"), structs.AllocClientStatusLost)
				r.expect("a2", r.alloc("a2"), structs.AllocClientStatusUnknown)
				r.pass(100 * time.Hour)
				r.expect("a2 after days", r.alloc("a2"), structs.AllocClientStatusUnknown)
				r.end()
				r.lead() // a new leader does not give it up either
				r.pass(100 * time.Hour)
				r.expect("a2 after a change of leader", r.alloc("a2"), structs.AllocClientStatusUnknown)
				r.beat("n1", true)
				r.expect("a2 heard again", r.alloc("a2"), structs.AllocClientStatusRunning)
			})
		})
	}
}

// TestToldToStopIsNotWaitedFor: the wish not to be replaced ends with the wish to run.
func TestToldToStopIsNotWaitedFor(t *testing.T) {
	group := &structs.TaskGroup{Name: structs.Ptr("g"), Disconnect: &structs.DisconnectStrategy{Replace: structs.Ptr(false)}}
	withRig(t, group, func(r *rig) {
		r.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: 1, Plans: []*structs.Plan{{Namespace: "default", JobID: "patient",
			Stops: map[string][]*structs.AllocStop{"n1": {{ID: "a2", DesiredStatus: structs.AllocDesiredStatusStop}}}}}})
		r.pass(r.beat("n1", true) + 11*time.Second)
		r.expect("a2", r.alloc("a2"), structs.AllocClientStatusLost)
	})
}

// TestReadyNodeIsOfferedToSystemJobs also when these have nothing there yet.
func TestReadyNodeIsOfferedToSystemJobs(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		system := func(id, kind string, change func(*structs.Job)) {
			j := &structs.Job{ID: &id, Name: &id, Namespace: structs.Ptr("default"), Type: &kind, Priority: structs.Ptr(50),
				NodePool: structs.Ptr("default"), Datacenters: []string{"*"}}
			if change != nil {
				change(j)
			}
			r.apply(fsm.KindJobRegister, &fsm.JobRegister{Job: j, Now: 1})
		}
		system("everywhere", structs.JobTypeSystem, nil)
		system("once", structs.JobTypeSysBatch, nil)
		system("elsewhere", structs.JobTypeSystem, func(j *structs.Job) { j.Datacenters = []string{"dc9"} })
		system("stopped", structs.JobTypeSystem, func(j *structs.Job) { j.Stop = true })
		r.pass(r.beat("n2", true) + 11*time.Second)
		r.expect("n2", r.node("n2"), structs.NodeStatusDown)
		r.beat("n2", false)
		if n := r.evals("everywhere")[structs.EvalTriggerNodeUpdate]; n != 0 {
			t.Errorf("%d evaluations before the node is ready", n)
		}
		r.beat("n2", true)
		r.expect("n2", r.node("n2"), structs.NodeStatusReady)
		for job, want := range map[string]int{"everywhere": 1, "once": 1, "elsewhere": 0, "stopped": 0} {
			if n := r.evals(job)[structs.EvalTriggerNodeUpdate]; n != want {
				t.Errorf("job %s got %d evaluations, want %d", job, n, want)
			}
		}
	})
}

// TestToldToStopWhileItWasWaitedForWithoutEnd: whoever takes its place waits for lost_after at most, by a new leader too.
func TestToldToStopWhileItWasWaitedForWithoutEnd(t *testing.T) {
	group := &structs.TaskGroup{Name: structs.Ptr("g"), Disconnect: &structs.DisconnectStrategy{LostAfter: structs.Ptr(time.Hour),
		Replace: structs.Ptr(false)}}
	for _, again := range []bool{false, true} {
		withRig(t, group, func(r *rig) {
			r.pass(r.beat("n1", true) + 11*time.Second)
			r.expect("a2", r.alloc("a2"), structs.AllocClientStatusUnknown)
			r.pass(30 * time.Minute)
			r.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: time.Now().UnixNano(), Plans: []*structs.Plan{{Stops: map[string][]*structs.AllocStop{
				"n1": {{ID: "a2", DesiredStatus: structs.AllocDesiredStatusStop}}}}}})
			if again {
				r.end()
				r.lead()
			}
			r.pass(29 * time.Minute)
			r.expect("a2 within lost_after", r.alloc("a2"), structs.AllocClientStatusUnknown)
			r.pass(2 * time.Minute)
			r.expect("a2 after it", r.alloc("a2"), structs.AllocClientStatusLost)
			r.expect("n1", r.node("n1"), structs.NodeStatusDown)
		})
	}
}
