// Package gc decides which ended allocations are removed from the node. It is pure; the client measures, asks it, and
// destroys. An allocation is a candidate only once it has ended, and the servers know how.
package gc

import (
	"cmp"
	"slices"
	"time"
)

// Limits are the gc_* keys of the agent's configuration.
type Limits struct {
	MaxAllocs           int     // allocations tracked before ended ones are removed; 0 means 50
	DiskUsageThreshold  float64 // percent; 0 means 80
	InodeUsageThreshold float64 // percent; 0 means 70
	ParallelDestroys    int     // 0 means 2
}

// WithDefaults fills in the public defaults.
func (l Limits) WithDefaults() Limits {
	if l.MaxAllocs <= 0 {
		l.MaxAllocs = 50
	}
	if l.DiskUsageThreshold <= 0 {
		l.DiskUsageThreshold = 80
	}
	if l.InodeUsageThreshold <= 0 {
		l.InodeUsageThreshold = 70
	}
	if l.ParallelDestroys <= 0 {
		l.ParallelDestroys = 2
	}
	return l
}

// Candidate is an ended allocation.
type Candidate struct {
	ID      string
	EndedAt time.Time
}

// Measure is what the node is like now.
type Measure struct {
	Tracked    int     // all allocations that have a directory, candidates included
	DiskUsed   float64 // percent
	InodesUsed float64 // percent
	Everything bool    // an operator asked to remove all that can be removed
}

// Choose lists what to remove now, the oldest first, with the reason. Disk figures change only with removal, so for
// them it gives a few at a time and wants to be asked again with fresh ones.
func Choose(l Limits, m Measure, candidates []Candidate) (ids []string, reason string) {
	sorted := slices.Clone(candidates)
	slices.SortFunc(sorted, func(a, b Candidate) int {
		return cmp.Or(a.EndedAt.Compare(b.EndedAt), cmp.Compare(a.ID, b.ID))
	})
	take := 0
	switch {
	case m.Everything:
		take, reason = len(sorted), "requested"
	case m.Tracked > l.MaxAllocs:
		take, reason = m.Tracked-l.MaxAllocs, "more allocations than gc_max_allocs"
	case m.DiskUsed > l.DiskUsageThreshold:
		take, reason = l.ParallelDestroys, "disk usage above gc_disk_usage_threshold"
	case m.InodesUsed > l.InodeUsageThreshold:
		take, reason = l.ParallelDestroys, "inode usage above gc_inode_usage_threshold"
	}
	for _, c := range sorted[:min(take, len(sorted))] {
		ids = append(ids, c.ID)
	}
	if len(ids) == 0 {
		return nil, ""
	}
	return ids, reason
}
