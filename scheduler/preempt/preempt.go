package preempt

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// MinDelta is by how much a victim's priority is lower at least, as publicly documented: jobs of about the same priority
// do not chase each other away.
const MinDelta = 10

// Candidate is an allocation on a node that might end for another one.
type Candidate struct {
	ID       string
	Group    structs.NamespacedID // whose allocation it is: its job's namespace, and its job and group as one id
	Priority int
	// MaxParallel is how many allocations of the group may be moved at a time by its migrate block, 0 for any number.
	MaxParallel int
	Holds       structs.Comparable
}

// NewCandidate gives what an allocation is as a candidate; false when it is none for a job of that priority: it ends
// already, or matters too much.
func NewCandidate(a *structs.Allocation, priority int) (Candidate, bool) {
	if a.Job == nil || a.TerminalStatus() || structs.Val(a.Job.Priority) > priority-MinDelta {
		return Candidate{}, false
	}
	c := Candidate{
		ID: a.ID, Priority: structs.Val(a.Job.Priority), Holds: a.AllocatedResources.Comparable(),
		Group: structs.NamespacedID{Namespace: a.Namespace, ID: a.JobID + "/" + a.TaskGroup},
	}
	if tg := a.Group(); tg != nil && tg.Migrate != nil {
		c.MaxParallel = structs.Val(tg.Migrate.MaxParallel)
	}
	return c, true
}

// Lack is what is missing for an allocation on a node. It fits when Fits says so; the amounts are 0 where enough is
// there. Ports are those which it asks for and others hold.
type Lack struct {
	Fits                  bool
	CPU, MemoryMB, DiskMB int64
	Ports                 []uint16 // sorted
}

// Room is a node as one allocation sees it. The more candidates are freed, the less is missing.
type Room interface {
	Free(*Candidate) // as if the candidate had ended
	Hold(*Candidate) // takes Free back
	Lack() Lack
}

// Select gives the indexes of the candidates that end so that the allocation fits, in the order in which they were
// chosen; false when it would not fit even without all of them. taken counts the victims of each group that this plan
// has on other nodes. The room is left with exactly the victims freed.
//
// It goes from the lowest priority up. Within one priority those go first whose group has not reached its max_parallel,
// then whoever is closest to what is missing. What turns out to be needless is put back, the highest priority first.
func Select(candidates []Candidate, room Room, taken map[structs.NamespacedID]int) ([]int, bool) {
	lack := room.Lack()
	if lack.Fits {
		return nil, true
	}
	left := make([]int, len(candidates))
	for i := range left {
		left[i] = i
	}
	s := selection{candidates: candidates, groups: map[structs.NamespacedID]int{}, taken: taken}
	for !lack.Fits {
		if len(left) == 0 {
			for _, i := range s.chosen {
				room.Hold(&candidates[i])
			}
			return nil, false
		}
		at := s.next(left, lack)
		i := left[at]
		left = slices.Delete(left, at, at+1)
		s.choose(i)
		room.Free(&candidates[i])
		lack = room.Lack()
	}
	s.putBack(room)
	return s.chosen, true
}

// selection is one run of Select.
type selection struct {
	candidates []Candidate
	taken      map[structs.NamespacedID]int
	groups     map[structs.NamespacedID]int // chosen, by group
	chosen     []int
}

func (s *selection) choose(i int) {
	s.chosen = append(s.chosen, i)
	s.groups[s.candidates[i].Group]++
}

// over is 1 when one more victim of its group would be beyond the group's max_parallel, else 0.
func (s *selection) over(c *Candidate) int { return s.beyond(c, 1) }

func (s *selection) beyond(c *Candidate, more int) int {
	if c.MaxParallel > 0 && s.groups[c.Group]+s.taken[c.Group]+more > c.MaxParallel {
		return 1
	}
	return 0
}

// next gives the position in left of whoever goes next.
func (s *selection) next(left []int, lack Lack) int {
	best := 0
	for at := 1; at < len(left); at++ {
		if s.before(&s.candidates[left[at]], &s.candidates[left[best]], lack) {
			best = at
		}
	}
	return best
}

func (s *selection) before(a, b *Candidate, lack Lack) bool {
	return cmp.Or(
		cmp.Compare(a.Priority, b.Priority),
		-cmp.Compare(portsOf(a, lack), portsOf(b, lack)), // nothing but its holder's end frees a port that is asked for
		cmp.Compare(s.over(a), s.over(b)),
		cmp.Compare(distance(a, lack), distance(b, lack)),
		strings.Compare(a.ID, b.ID),
	) < 0
}

func portsOf(c *Candidate, lack Lack) int {
	n := 0
	for _, p := range lack.Ports {
		if _, found := slices.BinarySearch(c.Holds.Ports, p); found {
			n++
		}
	}
	return n
}

// distance tells how far what a candidate holds is from what is missing: 0 for exactly that, 1 in a dimension for
// nothing of it. Dimensions of which enough is there do not count.
func distance(c *Candidate, lack Lack) float64 {
	sum := 0.0
	for _, d := range [3][2]int64{{lack.CPU, c.Holds.CPU}, {lack.MemoryMB, c.Holds.MemoryMB}, {lack.DiskMB, c.Holds.DiskMB}} {
		if d[0] > 0 {
			off := float64(d[0]-d[1]) / float64(d[0])
			sum += off * off
		}
	}
	return math.Sqrt(sum)
}

// putBack spares whoever need not end after all: those of the highest priority first, then those beyond their group's
// max_parallel, then who holds most.
func (s *selection) putBack(room Room) {
	order := slices.Clone(s.chosen)
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &s.candidates[a], &s.candidates[b]
		return cmp.Or(
			-cmp.Compare(x.Priority, y.Priority),
			-cmp.Compare(s.beyond(x, 0), s.beyond(y, 0)),
			-cmp.Compare(x.Holds.CPU+x.Holds.MemoryMB, y.Holds.CPU+y.Holds.MemoryMB),
			strings.Compare(x.ID, y.ID),
		)
	})
	for _, i := range order {
		c := &s.candidates[i]
		room.Hold(c)
		if room.Lack().Fits {
			s.chosen = slices.DeleteFunc(s.chosen, func(j int) bool { return j == i })
			s.groups[c.Group]--
		} else {
			room.Free(c)
		}
	}
}

// Over counts how many victims are beyond the max_parallel of their groups, with what was taken already.
func Over(candidates []Candidate, victims []int, taken map[structs.NamespacedID]int) int {
	s := selection{candidates: candidates, groups: map[structs.NamespacedID]int{}, taken: taken}
	over := 0
	for _, v := range victims {
		if s.over(&candidates[v]) > 0 {
			over++
		}
		s.choose(v)
	}
	return over
}
