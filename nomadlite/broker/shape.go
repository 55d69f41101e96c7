package broker

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// Size is what is free on a node, or what one allocation takes of it: what every placement needs, whatever else it may
// need besides.
type Size struct {
	CPU, MemoryMB, DiskMB int64
	Allocs                int64
}

func (s Size) fits(in Size) bool {
	return s.CPU <= in.CPU && s.MemoryMB <= in.MemoryMB && s.DiskMB <= in.DiskMB && s.Allocs <= in.Allocs
}

func (s Size) less(o Size, times int64) Size {
	return Size{s.CPU - times*o.CPU, s.MemoryMB - times*o.MemoryMB, s.DiskMB - times*o.DiskMB, s.Allocs - times*o.Allocs}
}

// Ask is what one group of a blocked evaluation waits for: Count times Size.
type Ask struct {
	Size  Size
	Count int64
}

// shape is the blocked evaluations which the same room helps: they ask for the same sizes and may run on the same
// classes.
type shape struct {
	key     string
	sizes   []Size          // one of them must fit; empty: any node may help, whatever is free there
	classes map[string]bool // nil: every class may help
	evals   []*blocked      // in the order of work
	from    int             // the place in the log of events from which on none was looked at
	open    []*event        // looked at: had room that was promised to others
}

// blocked is one evaluation that waits.
type blocked struct {
	eval  *structs.Evaluation
	key   blockedKey
	asks  []Ask
	shape *shape // nil for those that wait for one node
}

// helps says whether room on a node of the class could help: classes which were found ineligible never do, unless
// something outside the class decides.
func (s *shape) helps(class string) bool {
	eligible, seen := s.classes[class]
	return eligible || !seen
}

// fits says whether one of the sizes fits into what is free.
func (s *shape) fits(free Size) bool {
	return len(s.sizes) == 0 || slices.ContainsFunc(s.sizes, func(size Size) bool { return size.fits(free) })
}

// shapeKey tells shapes apart.
func shapeKey(eval *structs.Evaluation, asks []Ask) string {
	var key strings.Builder
	for _, a := range asks {
		for _, n := range []int64{a.Size.CPU, a.Size.MemoryMB, a.Size.DiskMB} {
			key.WriteString(strconv.FormatInt(n, 36))
			key.WriteByte(',')
		}
	}
	if eval.EscapedComputedClass {
		return key.String() + "*"
	}
	barred := make([]string, 0, len(eval.ClassEligibility))
	for class, eligible := range eval.ClassEligibility {
		if !eligible {
			barred = append(barred, class)
		}
	}
	slices.Sort(barred)
	return key.String() + strings.Join(barred, ",")
}

func newShape(key string, eval *structs.Evaluation, asks []Ask) *shape {
	s := &shape{key: key}
	for _, a := range asks {
		s.sizes = append(s.sizes, a.Size)
	}
	if !eval.EscapedComputedClass {
		s.classes = eval.ClassEligibility
	}
	return s
}

// byUrgency is the order of work among blocked evaluations.
func byUrgency(a, b *blocked) int {
	return cmp.Or(cmp.Compare(b.eval.Priority, a.eval.Priority), cmp.Compare(a.eval.CreateIndex, b.eval.CreateIndex),
		cmp.Compare(a.eval.ID, b.eval.ID))
}

func (s *shape) add(w *blocked) {
	i, _ := slices.BinarySearchFunc(s.evals, w, byUrgency)
	s.evals = slices.Insert(s.evals, i, w)
}

func (s *shape) remove(w *blocked) {
	if i, found := slices.BinarySearchFunc(s.evals, w, byUrgency); found {
		s.evals = slices.Delete(s.evals, i, i+1)
	}
}

// first is the most urgent evaluation that has not seen what happened at index; nil when all have.
func (s *shape) first(index uint64) *blocked {
	for _, w := range s.evals {
		if w.eval.SnapshotIndex < index {
			return w
		}
	}
	return nil
}
