package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// Event is what happens at one moment; its parts happen in the order of the fields, and then the cluster settles.
type Event struct {
	Name     string
	AddNodes []*structs.Node
	Return   []string // selectors of nodes that were lost and come back
	Lose     []string // selectors of nodes that are gone for good
	Drain    []string // selectors of nodes that are emptied
	Stop     []string // ids of jobs, or namespace/id
	Scale    []Scale
	Run      []*structs.Job
}

// Scale gives a group of a job another count; Group may be empty when the job has one.
type Scale struct {
	Job, Group string
	Count      int
}

// Do lets an event happen and the cluster settle. It fails, coded as invalid, when the event names what is not there; the
// simulation is of no use after an error.
func (s *Sim) Do(ctx context.Context, e Event) (*Step, error) {
	s.step = &Step{Name: e.Name, Evicted: []Eviction{}, Notes: []string{}}
	for _, part := range []func(Event) error{s.addNodes, s.bringBack, s.lose, s.drain, s.stop, s.scale, s.run} {
		if err := part(e); err != nil {
			return nil, err
		}
	}
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	s.step.Unplaced, s.step.Notes = s.unplaced(), append(s.step.Notes, s.notes()...)
	return s.step, nil
}

func (s *Sim) addNodes(e Event) error {
	for _, n := range e.AddNodes {
		if s.cluster.nodes[n.ID] != nil {
			return structs.Errorf(structs.CodeInvalid, "node %q is there already", n.ID)
		}
		n.Canonicalize()
		n.ComputeClass()
		s.cluster.putNode(n)
	}
	s.step.Added = len(e.AddNodes)
	if s.step.Added > 0 {
		s.wantSystemJobs()
	}
	return nil
}

// wantSystemJobs looks at all jobs that run on every node, and at what found no room.
func (s *Sim) wantSystemJobs() {
	s.freed = true
	for _, j := range s.cluster.sortedJobs() {
		if kind := structs.Val(j.Type); (kind == structs.JobTypeSystem || kind == structs.JobTypeSysBatch) && !j.Stop && j.HasOwnAllocations() {
			s.wantEval(structs.Val(j.Namespace), structs.Val(j.ID), structs.EvalTriggerNodeUpdate)
		}
	}
}

// edit changes the nodes that a selector names, and wants the jobs on them to be looked at.
func (s *Sim) edit(selector, trigger string, affected func(*structs.Node) bool, change func(*structs.Node)) error {
	match, err := Selector(selector)
	if err != nil {
		return err
	}
	found := false
	for _, n := range slices.Clone(s.cluster.ordered()) {
		if !match(n) || !affected(n) {
			continue
		}
		found = true
		s.step.Nodes++
		n = n.Copy()
		change(n)
		s.cluster.putNode(n)
		for _, a := range s.cluster.AllocsByNode(n.ID) {
			if !a.ClientTerminal() {
				s.wantEval(a.Namespace, a.JobID, trigger)
			}
		}
	}
	if !found {
		return structs.Errorf(structs.CodeInvalid, "no node matches %q to which that could happen", selector)
	}
	return nil
}

func up(n *structs.Node) bool { return n.Status == structs.NodeStatusReady }

func (s *Sim) lose(e Event) error {
	for _, selector := range e.Lose {
		err := s.edit(selector, structs.EvalTriggerNodeUpdate, up, func(n *structs.Node) {
			n.Status, n.StatusUpdatedAt = structs.NodeStatusDown, s.cluster.now.Unix()
		})
		if err != nil {
			return fmt.Errorf("lose nodes: %w", err)
		}
	}
	return nil
}

// bringBack brings back nodes; what was given up there has ended by then.
func (s *Sim) bringBack(e Event) error {
	for _, selector := range e.Return {
		err := s.edit(selector, structs.EvalTriggerNodeUpdate, (*structs.Node).Down, func(n *structs.Node) {
			n.Status, n.StatusUpdatedAt = structs.NodeStatusReady, s.cluster.now.Unix()
			for _, a := range s.cluster.AllocsByNode(n.ID) {
				if a.Orphaned() {
					s.cluster.editAlloc(a.ID, func(a *structs.Allocation) { a.ObservedStatus = structs.AllocClientStatusComplete })
				}
			}
		})
		if err != nil {
			return fmt.Errorf("bring nodes back: %w", err)
		}
		s.wantSystemJobs()
	}
	return nil
}

func (s *Sim) drain(e Event) error {
	for _, selector := range e.Drain {
		err := s.edit(selector, structs.EvalTriggerNodeDrain, func(n *structs.Node) bool { return up(n) && n.DrainStrategy == nil },
			func(n *structs.Node) {
				n.DrainStrategy, n.SchedulingEligibility = &structs.DrainStrategy{StartedAt: s.cluster.now}, structs.NodeIneligible
				n.Drain = true
				for _, a := range s.cluster.AllocsByNode(n.ID) {
					if !a.TerminalStatus() {
						s.cluster.editAlloc(a.ID, func(a *structs.Allocation) { a.DesiredTransition.Migrate = structs.Ptr(true) })
					}
				}
			})
		if err != nil {
			return fmt.Errorf("drain nodes: %w", err)
		}
	}
	return nil
}

// job finds a job by its id, or by namespace/id.
func (s *Sim) job(id string) (*structs.Job, error) {
	if j := s.cluster.jobs[name{structs.DefaultNamespace, id}]; j != nil {
		return j, nil
	}
	if namespace, rest, ok := strings.Cut(id, "/"); ok {
		if j := s.cluster.jobs[name{namespace, rest}]; j != nil {
			return j, nil
		}
	}
	return nil, structs.Errorf(structs.CodeInvalid, "there is no job %q (one of another namespace is written NAMESPACE/ID)", id)
}

func (s *Sim) stop(e Event) error {
	for _, id := range e.Stop {
		old, err := s.job(id)
		if err != nil {
			return fmt.Errorf("stop job: %w", err)
		}
		j := *old
		j.Stop = true
		s.cluster.putJob(&j)
		delete(s.blocked, nameOf(&j))
		s.wantEval(structs.Val(j.Namespace), structs.Val(j.ID), structs.EvalTriggerJobDeregister)
	}
	return nil
}

func (s *Sim) scale(e Event) error {
	for _, change := range e.Scale {
		old, err := s.job(change.Job)
		if err != nil {
			return fmt.Errorf("scale job: %w", err)
		}
		j := old.Copy()
		var tg *structs.TaskGroup
		if change.Group == "" && len(j.TaskGroups) == 1 {
			tg = j.TaskGroups[0]
		} else {
			tg = j.LookupTaskGroup(change.Group)
		}
		switch {
		case tg == nil && change.Group == "":
			return structs.Errorf(structs.CodeInvalid, "scale job: job %q has %d groups, name one: JOB/GROUP=COUNT", change.Job,
				len(j.TaskGroups))
		case tg == nil:
			return structs.Errorf(structs.CodeInvalid, "scale job: job %q has no group %q", change.Job, change.Group)
		case change.Count < 0:
			return structs.Errorf(structs.CodeInvalid, "scale job: count %d of job %q is negative", change.Count, change.Job)
		}
		tg.Count = structs.Ptr(change.Count)
		s.cluster.putJob(j)
		s.wantEval(structs.Val(j.Namespace), structs.Val(j.ID), structs.EvalTriggerScaling)
	}
	return nil
}

func (s *Sim) run(e Event) error {
	for _, given := range e.Run {
		j := given.Copy()
		j.Canonicalize()
		if err := j.Validate(); err != nil {
			return &structs.CodedError{Code: structs.CodeInvalid, Err: err,
				Text: fmt.Sprintf("job %q is not valid: %s", structs.Val(j.ID), allFaults(err))}
		}
		if pool := structs.Val(j.NodePool); !s.poolExists(pool) {
			return structs.Errorf(structs.CodeInvalid, "job %q is in nonexistent node pool %q", structs.Val(j.ID), pool)
		}
		s.cluster.putJob(j)
		if !j.HasOwnAllocations() {
			s.step.Notes = append(s.step.Notes, fmt.Sprintf("job %q only launches other jobs: it takes no room itself", structs.Val(j.ID)))
			continue
		}
		s.wantEval(structs.Val(j.Namespace), structs.Val(j.ID), structs.EvalTriggerJobRegister)
	}
	return nil
}

func (s *Sim) poolExists(pool string) bool {
	if pool == structs.NodePoolDefault || pool == structs.NodePoolAll || s.cluster.pools[pool] != nil {
		return true
	}
	for _, n := range s.cluster.ordered() {
		if n.NodePool == pool {
			return true
		}
	}
	return false
}

func allFaults(err error) string {
	var several structs.Errors
	if !errors.As(err, &several) {
		return err.Error()
	}
	var texts []string
	for _, e := range several {
		texts = append(texts, e.Error())
	}
	return strings.Join(texts, "; ")
}
