package state

import (
	"maps"

	"github.com/nomadlite/nomadlite/structs"
)

// sharedTexts bounds how many texts and scores one transaction remembers.
const sharedTexts = 1 << 16

// shared lets the rows of one transaction hold equal parts once. What comes out of the log or a snapshot was decoded row
// by row, so that each of 5,000 allocations of a plan would have its own copy of what they have in common.
type shared struct {
	texts     map[string]string
	scores    map[string]*structs.NodeScoreMeta // the last one of each node
	metric    structs.AllocationMetric          // the maps of the last one
	resources *structs.AllocatedResources
}

// text gives an equal text that is held already.
func (s *shared) text(text *string) {
	if *text == "" {
		return
	}
	if held, ok := s.texts[*text]; ok {
		*text = held
		return
	}
	if s.texts == nil || len(s.texts) >= sharedTexts {
		s.texts = map[string]string{}
	}
	s.texts[*text] = *text
}

// alloc shares what a new row has in common with those before it.
func (s *shared) alloc(alloc *structs.Allocation) {
	for _, text := range []*string{&alloc.Namespace, &alloc.EvalID, &alloc.NodeID, &alloc.NodeName, &alloc.JobID, &alloc.TaskGroup,
		&alloc.DesiredStatus, &alloc.ObservedStatus, &alloc.ClientStatus, &alloc.ClientDescription, &alloc.DeploymentID} {
		s.text(text)
	}
	if r := alloc.AllocatedResources; r != nil && plain(r) {
		if s.resources != nil && sameAmounts(s.resources, r) {
			alloc.AllocatedResources = s.resources
		}
		s.resources = alloc.AllocatedResources
	}
	if alloc.Metrics != nil {
		alloc.Metrics = s.metrics(alloc.Metrics)
	}
	s.tasks(alloc.TaskStates)
}

func (s *shared) metrics(of *structs.AllocationMetric) *structs.AllocationMetric {
	m := *of
	s.text(&m.NodePool)
	last := &s.metric
	for _, pair := range [][2]*map[string]int{
		{&last.NodesAvailable, &m.NodesAvailable}, {&last.ClassFiltered, &m.ClassFiltered},
		{&last.ConstraintFiltered, &m.ConstraintFiltered}, {&last.ClassExhausted, &m.ClassExhausted},
		{&last.DimensionExhausted, &m.DimensionExhausted},
	} {
		shareMap(pair[0], pair[1])
	}
	shareMap(&last.Missing, &m.Missing)
	if len(of.ScoreMetaData) > 0 {
		m.ScoreMetaData = make([]*structs.NodeScoreMeta, len(of.ScoreMetaData))
	}
	for i, meta := range of.ScoreMetaData {
		m.ScoreMetaData[i] = s.score(meta)
	}
	return &m
}

// shareMap takes the last map in place of one that is equal to it. Nil stays nil.
func shareMap[V comparable](last, m *map[string]V) {
	if *m != nil && *last != nil && maps.Equal(*last, *m) {
		*m = *last
	}
	*last = *m
}

func (s *shared) score(meta *structs.NodeScoreMeta) *structs.NodeScoreMeta {
	if meta == nil {
		return nil
	}
	held := s.scores[meta.NodeID]
	if held != nil && held.NormScore == meta.NormScore && maps.Equal(held.Scores, meta.Scores) {
		return held
	}
	if s.scores == nil || len(s.scores) >= sharedTexts {
		s.scores = map[string]*structs.NodeScoreMeta{}
	}
	own := *meta
	s.text(&own.NodeID)
	s.scores[own.NodeID] = &own
	return &own
}

// tasks packs the events of task states, which are this transaction's own, and shares their texts.
func (s *shared) tasks(states map[string]*structs.TaskState) {
	for _, state := range states {
		if state != nil {
			s.text(&state.State)
			state.Pack()
		}
	}
}

// plain says that resources are amounts alone.
func plain(r *structs.AllocatedResources) bool {
	if len(r.Shared.Networks) > 0 || len(r.Shared.Ports) > 0 {
		return false
	}
	for _, t := range r.Tasks {
		if t == nil || len(t.Networks) > 0 || len(t.Devices) > 0 || len(t.Cpu.ReservedCores) > 0 {
			return false
		}
	}
	return true
}

func sameAmounts(a, b *structs.AllocatedResources) bool {
	return a.Shared.DiskMB == b.Shared.DiskMB &&
		maps.EqualFunc(a.Tasks, b.Tasks, func(x, y *structs.AllocatedTaskResources) bool {
			return x.Cpu.CpuShares == y.Cpu.CpuShares && x.Memory == y.Memory
		})
}
