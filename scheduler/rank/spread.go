package rank

import (
	"math"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/structs"
)

// spread counts the allocations of a group over the values of one attribute, and says how much each value is wanted.
//
// Each value has a share of the group's count: the percentage of its target, an equal part of what targets leave over,
// or an equal part of everything when there are no targets. A value's deficit is the part of its share that would still
// be open after one more allocation. The value with the largest deficit scores 1, the one with the smallest -1, and the
// others lie between, so that the spread holds its ratio at any count.
type spread struct {
	attribute string
	weight    float64 // share of all spreads' weights
	values    []string
	index     map[string]int
	used      []int
	share     []float64 // allocations that each value should have
	score     []float64
}

// newSpreads reads the spread blocks of job and group.
func newSpreads(job *structs.Job, tg *structs.TaskGroup, nodes []*structs.Node) []*spread {
	blocks := append(append([]*structs.Spread(nil), tg.Spreads...), job.Spreads...)
	sum := 0.0
	for _, b := range blocks {
		sum += weightOf(b)
	}
	if sum == 0 {
		return nil
	}
	count := float64(structs.Val(tg.Count))
	var out []*spread
	for _, b := range blocks {
		s := &spread{attribute: b.Attribute, weight: weightOf(b) / sum, index: map[string]int{}}
		for _, n := range nodes {
			if v, ok := feasible.Resolve(n, b.Attribute); ok {
				s.valueIndex(v)
			}
		}
		s.setShares(b.SpreadTarget, count)
		s.rescore()
		out = append(out, s)
	}
	return out
}

func weightOf(b *structs.Spread) float64 {
	if b.Weight == nil {
		return 50
	}
	return math.Abs(float64(*b.Weight))
}

func (s *spread) valueIndex(v string) int {
	i, ok := s.index[v]
	if !ok {
		i = len(s.values)
		s.index[v] = i
		s.values = append(s.values, v)
		s.used = append(s.used, 0)
	}
	return i
}

func (s *spread) setShares(targets []*structs.SpreadTarget, count float64) {
	s.share = make([]float64, len(s.values))
	s.score = make([]float64, len(s.values))
	named := map[string]float64{}
	left := 100.0
	for _, t := range targets {
		named[t.Value] = float64(t.Percent)
		left -= float64(t.Percent)
	}
	others := 0
	for _, v := range s.values {
		if _, ok := named[v]; !ok {
			others++
		}
	}
	for i, v := range s.values {
		if percent, ok := named[v]; ok {
			s.share[i] = percent / 100 * count
		} else if left > 0 {
			s.share[i] = left / 100 * count / float64(others)
		}
	}
}

// add counts an allocation on a node in.
func (s *spread) add(node *structs.Node) {
	v, ok := feasible.Resolve(node, s.attribute)
	if !ok {
		return
	}
	if i, ok := s.index[v]; ok {
		s.used[i]++
	}
}

func (s *spread) rescore() {
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, share := range s.share {
		if share > 0 {
			d := s.deficit(i)
			lo, hi = min(lo, d), max(hi, d)
		}
	}
	for i, share := range s.share {
		switch {
		case share <= 0:
			s.score[i] = -1
		case hi-lo < 1e-12:
			s.score[i] = 0
		default:
			s.score[i] = 2*(s.deficit(i)-lo)/(hi-lo) - 1
		}
	}
}

func (s *spread) deficit(i int) float64 { return (s.share[i] - float64(s.used[i]) - 1) / s.share[i] }

// of gives the weighted score of the value with index i; -1 is a node without the attribute.
func (s *spread) of(i int) float64 {
	if i < 0 {
		return -s.weight
	}
	return s.weight * s.score[i]
}
