package clustersim

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// params is what a run is made of.
type params struct {
	seed  uint64
	steps int
	nodes int
	// first leaves out what came into the simulation later, so that the seeds of before still tell the same.
	first bool
	// toward is a pair of operations that is to come, for those which come too seldom by themselves.
	toward [2]string
}

// fault ends a run: an invariant was broken.
type fault struct {
	invariant string
	detail    string
}

func (f *fault) Error() string { return f.invariant + ": " + f.detail }

// sim is one cluster.
type sim struct {
	params
	rng    *rand.Rand
	began  time.Time
	faulty bool // messages get lost, late or twice; tasks fail

	log     *clustertest.Log
	store   *state.Store
	changes *state.Subscription
	leader  *leader // nil while nobody leads
	nodes   []*node
	byID    map[string]*node
	jobs    []*jobPlan
	parked  map[string]*parkedPoll

	events eventHeap
	number uint64
	idMu   sync.Mutex
	ids    uint64

	watch  *watcher
	trace  []string
	digest uint64
	pairs  map[[2]string]int
	last   string // the operation before
}

func newSim(p params) *sim {
	s := &sim{params: p, rng: rand.New(rand.NewPCG(p.seed, 0x9e3779b97f4a7c15)), began: time.Now(), log: clustertest.New(),
		byID: map[string]*node{}, parked: map[string]*parkedPoll{}, pairs: map[[2]string]int{}, digest: 14695981039346656037}
	s.store = s.log.Store
	s.changes = s.store.Subscribe(1 << 20)
	s.watch = newWatcher(s)
	return s
}

// breaks ends the run.
func (s *sim) breaks(invariant, format string, args ...any) {
	panic(&fault{invariant, fmt.Sprintf(format, args...)})
}

func (s *sim) tracef(format string, args ...any) {
	line := fmt.Sprintf("%10.3f ", time.Since(s.began).Seconds()) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", s.digest, line)
	s.digest = h.Sum64()
	s.trace = append(s.trace, line)
	if len(s.trace) > 4000 {
		s.trace = slices.Clone(s.trace[2000:])
	}
}

// story is the end of the trace.
func (s *sim) story(lines int) string {
	return strings.Join(s.trace[max(0, len(s.trace)-lines):], "\n")
}

// newID gives ids that look like those of the product. Goroutines of the product ask too, one at a time.
func (s *sim) newID() string {
	s.idMu.Lock()
	defer s.idMu.Unlock()
	s.ids++
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%d", s.seed, s.ids)
	return fmt.Sprintf("%016x-%04x", h.Sum64(), s.ids)
}

func (s *sim) chance(p float64) bool { return s.rng.Float64() < p }

// between gives a duration of at least low and less than high.
func (s *sim) between(low, high time.Duration) time.Duration {
	return low + time.Duration(s.rng.Int64N(int64(high-low)))
}

func pick[T any](s *sim, list []T) T { return list[s.rng.IntN(len(list))] }

// event is something that happens at a time.
type event struct {
	at     time.Time
	number uint64
	do     func()
}

type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return cmp.Or(h[i].at.Compare(h[j].at), cmp.Compare(h[i].number, h[j].number)) < 0
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(*event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

func (s *sim) after(d time.Duration, do func()) {
	s.number++
	heap.Push(&s.events, &event{at: time.Now().Add(d), number: s.number, do: do})
}

// run lets the cluster go on for some time.
func (s *sim) run(d time.Duration) {
	until := time.Now().Add(d)
	for {
		s.settle()
		next := s.next()
		if next.After(until) {
			next = until
		}
		if wait := time.Until(next); wait > 0 {
			time.Sleep(wait)
			synctest.Wait()
		} else if !next.Before(until) {
			s.stopsAreUnderWay()
			return
		}
		for len(s.events) > 0 && !s.events[0].at.After(time.Now()) {
			heap.Pop(&s.events).(*event).do()
			s.notice()
		}
	}
}

// next is when something happens by itself.
func (s *sim) next() time.Time {
	next := time.Now().Add(time.Hour)
	earlier := func(t time.Time) {
		if !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	if len(s.events) > 0 {
		earlier(s.events[0].at)
	}
	if s.leader != nil {
		earlier(s.leader.next())
	}
	for _, n := range s.nodes {
		earlier(n.next())
	}
	return next
}

// settle lets all that have something to do now do it, in an order that the seed gives.
func (s *sim) settle() {
	for rounds := 0; ; rounds++ {
		if rounds > 20000 {
			s.breaks("rest", "the cluster does not come to rest")
		}
		var ready []func()
		if s.leader != nil {
			ready = s.leader.ready(ready)
		}
		for _, n := range s.nodes {
			if n.due() {
				ready = append(ready, n.turn)
			}
		}
		if len(ready) == 0 {
			return
		}
		pick(s, ready)()
		s.notice()
	}
}

// notice hands the changes of the state to all that follow them, and to the watcher.
func (s *sim) notice() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		change, err := s.changes.Next(ended)
		if errors.Is(err, structs.ErrLagged) {
			continue // a snapshot was restored, while nobody led
		}
		if err != nil {
			break
		}
		s.watch.change(change)
		if s.leader != nil {
			s.leader.hear(change)
		}
		for _, item := range change.Items {
			if item.Table != state.TableAllocs {
				continue
			}
			before, _ := item.Before.(*structs.Allocation)
			after, _ := item.After.(*structs.Allocation)
			switch {
			case after == nil:
				s.answerParked(before.NodeID)
			case before == nil || before.AllocModifyIndex != after.AllocModifyIndex:
				s.answerParked(after.NodeID)
			}
		}
	}
}

// call runs what may wait for a disk, of a node, in a goroutine of its own, and lets the disk write when it does.
func (s *sim) call(n *node, do func()) {
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		do()
	}()
	for range 100 {
		synctest.Wait()
		select {
		case <-finished:
			if s.watch.found != nil {
				panic(s.watch.found)
			}
			if n.agent != nil && n.agent.dying && len(n.disk.pending) > 0 && (n.agent.started || s.chance(0.3)) {
				s.tracef("%s: the agent is killed before its disk has written", n.id)
				n.kill()
			}
			return
		default:
		}
		if n.agent != nil && n.agent.dying {
			s.tracef("%s: the agent is killed while it waits for its disk", n.id)
			n.kill()
			continue
		}
		if !n.disk.flush() {
			break
		}
	}
	s.breaks("rest", "%s waits for what never comes", n.id)
}
