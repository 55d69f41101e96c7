package sim

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/structs"
)

// maxEvaluations ends a step that does not come to rest: a fault of the scheduler, or of this world.
const maxEvaluations = 1_000_000

// Config is what a simulation begins with.
type Config struct {
	Seed uint64    // of all ids, and so of the choice between equal nodes
	Now  time.Time // when it begins
	// Scheduler is the configuration of the schedulers, nil for that of a new cluster.
	Scheduler *structs.SchedulerConfiguration
	Pools     []*structs.NodePool
}

// Recorded is a cluster as a snapshot holds it. The allocations have their jobs attached.
type Recorded struct {
	Nodes       iter.Seq[*structs.Node]
	Jobs        iter.Seq[*structs.Job]
	Allocs      iter.Seq[*structs.Allocation]
	Evals       iter.Seq[*structs.Evaluation]
	Deployments iter.Seq[*structs.Deployment]
	Index       uint64
}

// Sim is a simulation. It is not safe for concurrent use.
type Sim struct {
	cluster  *cluster
	step     *Step
	outcomes map[name]*structs.Evaluation // what the last evaluation of each job came to

	wanted  []want
	blocked map[name]*structs.Evaluation
	again   map[name]bool // system jobs to be looked at again
	later   []*structs.Evaluation
	freed   bool // room has come since the blocked evaluations were looked at
}

// want is an evaluation to be made.
type want struct {
	job     name
	trigger string
}

// New makes a simulation of an empty cluster.
func New(cfg Config) *Sim {
	s := &Sim{cluster: newCluster(cfg.Seed, cfg.Now), step: &Step{}, outcomes: map[name]*structs.Evaluation{},
		blocked: map[name]*structs.Evaluation{}, again: map[name]bool{}}
	if cfg.Scheduler != nil {
		s.cluster.config = cfg.Scheduler
	}
	for _, pool := range cfg.Pools {
		s.cluster.pools[pool.Name] = pool
	}
	return s
}

// Load puts a recorded cluster into an empty simulation. Evaluations that were waiting or blocked there are looked at
// in the next step.
func (s *Sim) Load(r Recorded) {
	c := s.cluster
	for n := range r.Nodes {
		c.putNode(n.Copy())
	}
	for j := range r.Jobs {
		c.jobs[nameOf(j)] = j
	}
	for a := range r.Allocs {
		copied := *a
		c.putAlloc(&copied)
	}
	for d := range r.Deployments {
		job := name{d.Namespace, d.JobID}
		c.deployments[job] = append(c.deployments[job], d)
	}
	for _, all := range c.deployments {
		slices.SortStableFunc(all, func(a, b *structs.Deployment) int { return cmp.Compare(a.CreateIndex, b.CreateIndex) })
	}
	for e := range r.Evals {
		if !e.TerminalStatus() {
			s.keep(e.Copy())
		}
	}
	c.index = max(c.index, r.Index)
	s.freed = true
}

// Node gives a node by its id, nil when there is none. Nobody may write to it.
func (s *Sim) Node(id string) *structs.Node { return s.cluster.nodes[id] }

// Nodes gives all nodes by id. Nobody may write to them.
func (s *Sim) Nodes() iter.Seq[*structs.Node] { return s.cluster.Nodes() }

// Allocs gives all allocations in the order in which they were made. Nobody may write to them.
func (s *Sim) Allocs() []*structs.Allocation { return s.cluster.pick(s.cluster.allocOrder) }

// Now is the time in the simulation.
func (s *Sim) Now() time.Time { return s.cluster.now }

func (s *Sim) wantEval(namespace, job, trigger string) {
	s.wanted = append(s.wanted, want{name{namespace, job}, trigger})
}

// keep takes an evaluation to where it waits.
func (s *Sim) keep(e *structs.Evaluation) {
	job := name{e.Namespace, e.JobID}
	switch {
	case e.Status == structs.EvalStatusBlocked && e.NodeID != "":
		s.again[job] = true // one of many of a system job, each for one node
	case e.Status == structs.EvalStatusBlocked:
		s.blocked[job] = e // the newest one of a job stands for all
	default:
		s.later = append(s.later, e)
	}
}

// settle lets schedulers and nodes work until nothing is left to do.
func (s *Sim) settle(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("simulate: %w", err)
		}
		wave := s.due()
		if len(wave) == 0 {
			if s.act() || s.unblock() || s.waitForNext() {
				continue
			}
			return nil
		}
		for _, e := range wave {
			if s.step.Evaluations++; s.step.Evaluations > maxEvaluations {
				return structs.Errorf(structs.CodeInternal, "no rest after %d evaluations, the last one of job %q for %s",
					maxEvaluations, e.JobID, e.TriggeredBy)
			}
			if err := s.process(ctx, e); err != nil {
				return err
			}
		}
	}
}

func (s *Sim) process(ctx context.Context, e *structs.Evaluation) error {
	sched, err := scheduler.New(e.Type, scheduler.Config{State: s.cluster, Planner: planner{s}, Now: s.cluster.now, NewID: s.cluster.newID})
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	if err := sched.Process(ctx, e); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	return nil
}

// due takes the evaluations that can be processed now, the most important first, one a job.
func (s *Sim) due() []*structs.Evaluation {
	var wave []*structs.Evaluation
	seen := map[name]bool{}
	s.later = slices.DeleteFunc(s.later, func(e *structs.Evaluation) bool {
		job := name{e.Namespace, e.JobID}
		if e.WaitUntil.After(s.cluster.now) || seen[job] {
			return false
		}
		seen[job] = true
		wave = append(wave, e)
		return true
	})
	for _, w := range s.wanted {
		j := s.cluster.jobs[w.job]
		if j == nil || seen[w.job] {
			continue
		}
		seen[w.job] = true
		e := &structs.Evaluation{ID: s.cluster.newID(), Namespace: w.job.namespace, JobID: w.job.id, Type: structs.Val(j.Type),
			Priority: priority(j), TriggeredBy: w.trigger, JobModifyIndex: j.JobModifyIndex, Status: structs.EvalStatusPending,
			CreateTime: s.cluster.now.UnixNano()}
		s.cluster.putEval(e)
		wave = append(wave, e)
	}
	s.wanted = nil
	slices.SortStableFunc(wave, func(a, b *structs.Evaluation) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.CreateIndex, b.CreateIndex))
	})
	return wave
}

// unblock looks again at what found no room, when there may be some now.
func (s *Sim) unblock() bool {
	if !s.freed {
		return false
	}
	s.freed = false
	for job := range s.again {
		s.wantEval(job.namespace, job.id, structs.EvalTriggerQueuedAllocs)
	}
	s.again = map[name]bool{}
	slices.SortFunc(s.wanted, func(a, b want) int {
		return cmp.Or(cmp.Compare(a.job.namespace, b.job.namespace), cmp.Compare(a.job.id, b.job.id))
	})
	woken := len(s.blocked)
	for _, e := range s.blocked {
		s.later = append(s.later, e)
	}
	s.blocked = map[name]*structs.Evaluation{}
	slices.SortFunc(s.later, func(a, b *structs.Evaluation) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
	})
	return woken > 0 || len(s.wanted) > 0
}

// waitForNext lets time pass until the next evaluation is due.
func (s *Sim) waitForNext() bool {
	if len(s.later) == 0 {
		return false
	}
	next := slices.MinFunc(s.later, func(a, b *structs.Evaluation) int { return a.WaitUntil.Compare(b.WaitUntil) }).WaitUntil
	if next.After(s.cluster.now) {
		s.step.Waited += next.Sub(s.cluster.now)
		s.cluster.now = next
	}
	return true
}

// HasJob says whether there is a job of this id, or namespace/id.
func (s *Sim) HasJob(id string) bool {
	_, err := s.job(id)
	return err == nil
}
