package clustersim

import (
	"cmp"
	"fmt"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// jobPlan is a job as its operator wants it.
type jobPlan struct {
	id      string
	kind    string
	count   int
	version int
	// priority is 50 unless it says otherwise.
	priority int
	shape    func(j *structs.Job, g *structs.TaskGroup)

	running bool   // registered and not stopped
	there   bool   // registered, maybe stopped
	since   uint64 // the version with which it began to run
	had     int    // how many names it has had at once, of those it still asks for
	// What it may have beside each other.
	canaries, replacedUnheard bool
}

func ptr[T any](v T) *T { return &v }

// plans are the jobs of a run: one for each way in which groups tell what is to become of them.
func plans() []*jobPlan {
	return []*jobPlan{
		{id: "web", kind: structs.JobTypeService, count: 2, shape: func(j *structs.Job, g *structs.TaskGroup) {
			g.ShutdownDelay = ptr(4 * time.Second)
			g.Tasks[0].ShutdownDelay = 3 * time.Second
			g.Tasks = append(g.Tasks, &structs.Task{Name: "side", Driver: "mock_driver", Config: map[string]any{"x": "y"},
				Lifecycle: &structs.TaskLifecycle{Hook: structs.TaskLifecyclePrestart, Sidecar: true},
				Resources: &structs.Resources{CPU: ptr(100), MemoryMB: ptr(64)}})
			g.Networks = []*structs.NetworkResource{{ReservedPorts: []structs.Port{{Label: "http", Value: 8080}}}}
			g.Update = &structs.UpdateStrategy{MaxParallel: ptr(1), MinHealthyTime: ptr(5 * time.Second),
				HealthyDeadline: ptr(time.Minute), ProgressDeadline: ptr(5 * time.Minute)}
			g.Migrate = &structs.MigrateStrategy{MaxParallel: ptr(1), MinHealthyTime: ptr(3 * time.Second),
				HealthyDeadline: ptr(30 * time.Second)}
		}},
		{id: "api", kind: structs.JobTypeService, count: 3, canaries: true, shape: func(j *structs.Job, g *structs.TaskGroup) {
			g.Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "rpc"}}}}
			g.Update = &structs.UpdateStrategy{MaxParallel: ptr(1), MinHealthyTime: ptr(3 * time.Second), Canary: ptr(1),
				AutoPromote: ptr(true), HealthyDeadline: ptr(time.Minute), ProgressDeadline: ptr(5 * time.Minute)}
		}},
		{id: "leased", kind: structs.JobTypeService, count: 2, shape: func(j *structs.Job, g *structs.TaskGroup) {
			g.Disconnect = &structs.DisconnectStrategy{StopOnClientAfter: ptr(20 * time.Second)}
			g.Update = &structs.UpdateStrategy{MaxParallel: ptr(0)}
		}},
		{id: "tolerant", kind: structs.JobTypeService, count: 1, replacedUnheard: true,
			shape: func(j *structs.Job, g *structs.TaskGroup) {
				g.Disconnect = &structs.DisconnectStrategy{LostAfter: ptr(90 * time.Second), Replace: ptr(true),
					Reconcile: ptr(structs.ReconcileKeepOriginal)}
				g.Update = &structs.UpdateStrategy{MaxParallel: ptr(0)}
			}},
		{id: "patient", kind: structs.JobTypeService, count: 1, shape: func(j *structs.Job, g *structs.TaskGroup) {
			g.Disconnect = &structs.DisconnectStrategy{LostAfter: ptr(3 * time.Minute), Replace: ptr(false)}
			g.Tasks[0].ShutdownDelay = 20 * time.Second
			g.Update = &structs.UpdateStrategy{MaxParallel: ptr(0)}
		}},
		{id: "plain", kind: structs.JobTypeService, count: 2, shape: func(j *structs.Job, g *structs.TaskGroup) {
			g.Update = &structs.UpdateStrategy{MaxParallel: ptr(0)}
		}},
		{id: "work", kind: structs.JobTypeBatch, count: 2, shape: func(j *structs.Job, g *structs.TaskGroup) {
			g.Tasks[0].Config["run_for"] = "25s"
		}},
		{id: "hungry", kind: structs.JobTypeService, count: 1, priority: 90, shape: func(j *structs.Job, g *structs.TaskGroup) {
			g.Tasks[0].Resources.CPU = ptr(3600) // there is no such node: others have to go
			g.Update = &structs.UpdateStrategy{MaxParallel: ptr(0)}
		}},
		{id: "agents", kind: structs.JobTypeSystem, count: 1, shape: func(j *structs.Job, g *structs.TaskGroup) {}},
	}
}

// spec makes the job to register.
func (p *jobPlan) spec() *structs.Job {
	g := &structs.TaskGroup{
		Name: ptr("g"), Count: ptr(p.count), EphemeralDisk: &structs.EphemeralDisk{SizeMB: ptr(100)},
		Tasks: []*structs.Task{{Name: "main", Driver: "mock_driver", KillTimeout: ptr(5 * time.Second),
			Config:    map[string]any{"x": "y"},
			Env:       map[string]string{"VERSION": fmt.Sprint(p.version)},
			Resources: &structs.Resources{CPU: ptr(250), MemoryMB: ptr(256)}}},
		RestartPolicy: &structs.RestartPolicy{Attempts: ptr(1), Interval: ptr(time.Minute), Delay: ptr(2 * time.Second),
			Mode: ptr(structs.RestartPolicyModeFail)},
	}
	if p.kind == structs.JobTypeService || p.kind == structs.JobTypeBatch {
		g.ReschedulePolicy = &structs.ReschedulePolicy{Unlimited: ptr(true), Delay: ptr(5 * time.Second),
			DelayFunction: ptr("constant")}
	}
	j := &structs.Job{ID: ptr(p.id), Name: ptr(p.id), Type: ptr(p.kind), Priority: ptr(cmp.Or(p.priority, 50)), Datacenters: []string{"dc1"},
		TaskGroups: []*structs.TaskGroup{g}}
	p.shape(j, g)
	j.Canonicalize()
	return j
}

// eval is the evaluation which comes with a change of a job.
func (s *sim) eval(p *jobPlan, trigger string) *structs.Evaluation {
	now := time.Now().UnixNano()
	return &structs.Evaluation{ID: s.newID(), Namespace: structs.DefaultNamespace, JobID: p.id, Type: p.kind, Priority: cmp.Or(p.priority, 50),
		TriggeredBy: trigger, Status: structs.EvalStatusPending, CreateTime: now, ModifyTime: now}
}

// apply writes what an operator asked for; the answer acknowledges it.
func (s *sim) apply(kind fsm.Kind, req any) any {
	resp, _, err := s.log.Apply(s.leader.ctx, kind, req)
	if err != nil {
		s.breaks("request", "%v: %v", kind, err)
	}
	s.notice()
	return resp
}

func (s *sim) register(p *jobPlan) {
	s.apply(fsm.KindJobRegister, &fsm.JobRegister{Job: p.spec(), Eval: s.eval(p, structs.EvalTriggerJobRegister),
		Now: time.Now().UnixNano()})
	if !p.running {
		p.had = 0
		p.since = s.store.Job(nil, structs.DefaultNamespace, p.id).Version
	}
	p.running, p.there = true, true
}

// stopTerms are the flags of a stop.
type stopTerms struct {
	noDelay bool
	kill    *time.Duration
}

func (s *sim) deregister(p *jobPlan, purge bool, terms stopTerms) {
	s.apply(fsm.KindJobDeregister, &fsm.JobDeregister{Namespace: structs.DefaultNamespace, JobID: p.id, Purge: purge,
		NoShutdownDelay: terms.noDelay, KillTimeout: terms.kill, Eval: s.eval(p, structs.EvalTriggerJobDeregister),
		Now: time.Now().UnixNano()})
	p.running = false
	p.there = !purge
}
