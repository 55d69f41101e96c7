package clustersim

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// outcome is what a run came to.
type outcome struct {
	fault  *fault
	trace  string
	digest uint64
	pairs  map[[2]string]int
	took   time.Duration // virtual
}

// play runs one cluster from its seed.
func play(t *testing.T, p params) (out outcome) {
	synctest.Test(t, func(*testing.T) {
		s := newSim(p)
		defer func() {
			if r := recover(); r != nil {
				f, ok := r.(*fault)
				if !ok {
					panic(fmt.Sprintf("seed %d: %v\n%s", p.seed, r, s.story(60)))
				}
				out.fault = f
			}
			s.close()
			out.trace, out.digest, out.pairs, out.took = s.story(600), s.digest, s.pairs, time.Since(s.began)
		}()
		s.play()
	})
	return out
}

// close ends all goroutines.
func (s *sim) close() {
	for _, n := range s.nodes {
		if n.agent != nil {
			n.agent.end()
		}
	}
	if s.leader != nil && !s.leader.ended {
		s.leader.cancel()
		<-s.leader.over
	}
	synctest.Wait()
}

func (s *sim) play() {
	for i := range s.params.nodes {
		lease := time.Duration(0)
		if i == 0 {
			lease = 25 * time.Second
		}
		s.addNode(fmt.Sprintf("n%d", i), lease)
	}
	s.elect()
	for _, n := range s.nodes {
		n.start()
	}
	s.run(5 * time.Second)
	s.jobs = plans()
	if s.first {
		s.jobs = slices.DeleteFunc(s.jobs, func(p *jobPlan) bool { return p.priority > 0 })
	} else {
		s.jobs[len(s.jobs)-1].priority = 70 // what belongs on each node gets its place beside anything
		s.apply(fsm.KindSchedulerConfig, &fsm.SchedulerConfig{Config: &structs.SchedulerConfiguration{
			PreemptionConfig: structs.PreemptionConfig{SystemSchedulerEnabled: true, ServiceSchedulerEnabled: true}}})
	}
	for _, p := range s.jobs {
		s.register(p)
	}
	s.run(20 * time.Second)
	s.faulty = true
	ops := operations()
	if s.first {
		ops = slices.DeleteFunc(ops, func(op operation) bool { return op.later })
	}
	for range s.steps {
		s.awaitLeader()
		var can []operation
		for _, op := range ops {
			if op.can == nil || op.can(s) {
				can = append(can, op)
			}
		}
		op := s.lean(can, pick(s, can))
		op.do(s)
		if s.last != "" {
			s.pairs[[2]string{s.last, op.name}]++
		}
		s.last = op.name
		if s.chance(0.85) { // else the next comes before anybody has seen this one
			s.run(s.pause())
		}
	}
	s.calm()
}

// lean takes another operation than the one that was picked when that may lead to a pair which is to come.
func (s *sim) lean(can []operation, picked operation) operation {
	if s.toward[0] == "" {
		return picked
	}
	var alike []operation // what makes an operation possible is called alike
	for _, op := range can {
		if s.last == s.toward[0] && op.name == s.toward[1] {
			return op
		}
		if kind := strings.Fields(op.name)[0]; kind == strings.Fields(s.toward[0])[0] || kind == strings.Fields(s.toward[1])[0] {
			alike = append(alike, op)
		}
	}
	if len(alike) > 0 && s.chance(0.6) {
		return pick(s, alike)
	}
	return picked
}

// pause is the time between two operations.
func (s *sim) pause() time.Duration {
	switch p := s.rng.Float64(); {
	case p < 0.3:
		return s.between(0, 100*time.Millisecond)
	case p < 0.7:
		return s.between(0, 5*time.Second)
	case p < 0.95:
		return s.between(0, 40*time.Second)
	default:
		return s.between(0, 3*time.Minute)
	}
}

func (s *sim) awaitLeader() {
	for s.leader == nil {
		s.run(time.Second)
	}
}

// calm ends all faults and lets everything come to an end; then all is as it was asked for.
func (s *sim) calm() {
	s.faulty = false
	s.awaitLeader()
	s.tracef("== calm")
	for _, n := range s.nodes {
		if n.cut {
			s.heal(n)
		}
	}
	for _, n := range s.nodes {
		if a := n.agent; a != nil && a.dying {
			n.kill()
		}
		if n.agent == nil {
			n.start()
		}
		if maintained(n) {
			s.endMaintenance(n)
		}
		if draining(n) {
			s.endDrain(n)
		} else if n.row() != nil {
			s.eligible(n)
		}
	}
	var f *fault
	for range 120 {
		s.run(15 * time.Second)
		if f = s.unfinished(); f == nil {
			break
		}
	}
	if f == nil {
		if !s.first {
			s.collect()
		}
		s.run(2 * time.Minute) // and nothing moves any more
		s.check()
		f = s.unfinished()
	}
	if f != nil {
		s.breaks(f.invariant, "%s", f.detail)
	}
}

// number reads a number from the environment.
func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// report tells of a fault how to see it again.
func report(t *testing.T, p params, out outcome) {
	t.Helper()
	lines := strings.Split(out.trace, "\n")
	if n := number(t, "CLUSTERSIM_TRACE", 80); len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	t.Errorf("seed %d (%d steps, %d nodes): INVARIANT %v\nagain: CLUSTERSIM_SEED=%d CLUSTERSIM_STEPS=%d CLUSTERSIM_NODES=%d go test -run TestOneSeed ./e2e/clustersim\n%s",
		p.seed, p.steps, p.nodes, out.fault, p.seed, p.steps, p.nodes, strings.Join(lines, "\n"))
}

// playAll runs many seeds, as many side by side as there are processors, and gives the pairs of operations they had.
func playAll(t *testing.T, first uint64, count, steps, nodes int) map[[2]string]int {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // memory is there, time is not
	var mu sync.Mutex
	pairs := map[[2]string]int{}
	failed, limit, expected := 0, 5, os.Getenv("CLUSTERSIM_EXPECT")
	if expected != "" {
		limit = 40 // other invariants may be broken before
	}
	began := time.Now()
	var virtual time.Duration
	t.Run("seeds", func(t *testing.T) {
		const lanes = 2
		for lane := range lanes {
			t.Run(strconv.Itoa(lane), func(t *testing.T) {
				t.Parallel()
				for i := lane; i < count; i += lanes {
					p := params{seed: first + uint64(i), steps: steps, nodes: nodes}
					out := play(t, p)
					mu.Lock()
					for pair, n := range out.pairs {
						pairs[pair] += n
					}
					virtual += out.took
					if out.fault != nil {
						failed++
						if out.fault.invariant == expected {
							failed = limit
						}
						report(t, p, out)
					}
					enough := failed >= limit
					mu.Unlock()
					if enough {
						return
					}
				}
			})
		}
	})
	t.Logf("%d sequences of %d steps on %d nodes, seeds %d to %d: %d failed; %s of the cluster's time in %s", count, steps,
		nodes, first, first+uint64(count)-1, failed, virtual.Round(time.Hour), time.Since(began).Round(time.Second))
	return pairs
}

// TestOneSeed plays one seed again: CLUSTERSIM_SEED (the first one without it), and CLUSTERSIM_STEPS and _NODES when these
// are not the usual.
func TestOneSeed(t *testing.T) {
	seed := number(t, "CLUSTERSIM_SEED", 1)
	p := params{seed: uint64(seed), steps: number(t, "CLUSTERSIM_STEPS", 50), nodes: number(t, "CLUSTERSIM_NODES", 4),
		first: os.Getenv("CLUSTERSIM_FIRST_FORM") != ""}
	if out := play(t, p); out.fault != nil {
		report(t, p, out)
	}
}

// TestSequences plays sequences of operations: CLUSTERSIM_SEQUENCES of them, from seed CLUSTERSIM_FIRST on.
func TestSequences(t *testing.T) {
	count := number(t, "CLUSTERSIM_SEQUENCES", 100)
	pairs := playAll(t, uint64(number(t, "CLUSTERSIM_FIRST", 1)), count, 50, 4)
	if count >= 1000 && !t.Failed() { // with fewer a pair may be missing by chance
		leanToward(t, pairs)
	}
	var missing []string
	all, rarest, least := 0, "", 1<<30
	for _, a := range operations() {
		for _, b := range operations() {
			all++
			n := pairs[[2]string{a.name, b.name}]
			if text := fmt.Sprintf("%q was followed by %q %d times", a.name, b.name, n); n == 0 {
				missing = append(missing, text)
			} else if n < least {
				rarest, least = text, n
			}
		}
	}
	t.Logf("%d of %d pairs of operations came; the rarest: %s", all-len(missing), all, rarest)
	if count >= 1000 && !t.Failed() && len(missing) > 0 {
		t.Error(strings.Join(missing, "\n"))
	}
}

// leanToward plays more sequences for the pairs of operations which have not come.
func leanToward(t *testing.T, pairs map[[2]string]int) {
	for _, a := range operations() {
		for _, b := range operations() {
			pair := [2]string{a.name, b.name}
			for seed := uint64(1); seed <= 60 && pairs[pair] == 0; seed++ {
				p := params{seed: seed, steps: 50, nodes: 4, toward: pair}
				out := play(t, p)
				pairs[pair] += out.pairs[pair]
				if out.fault != nil {
					t.Errorf("on the way to %q:", pair)
					report(t, p, out)
				}
				if pairs[pair] > 0 {
					t.Logf("%q came only when it was led to, from seed %d", pair, seed)
				}
			}
		}
	}
}

// TestLongRuns plays longer runs of a larger cluster: CLUSTERSIM_LONG of them.
func TestLongRuns(t *testing.T) {
	playAll(t, 1_000_001, number(t, "CLUSTERSIM_LONG", 20), 150, 7)
}

// TestSeedsThatFoundFaults plays those again that once did.
func TestSeedsThatFoundFaults(t *testing.T) {
	paths, err := filepath.Glob("testdata/seeds/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found no seeds: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(data)) {
				text, _, _ := strings.Cut(line, "#")
				if text = strings.TrimSpace(text); text == "" {
					continue
				}
				p := params{first: filepath.Base(path) == "first.txt"}
				if _, err := fmt.Sscan(text, &p.seed, &p.steps, &p.nodes); err != nil {
					t.Fatalf("read %q: %v", line, err)
				}
				if out := play(t, p); out.fault != nil {
					report(t, p, out)
				}
			}
		})
	}
}

// TestRunsAreRepeatable proves that a seed tells everything.
func TestRunsAreRepeatable(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		p := params{seed: seed, steps: 50, nodes: 4}
		if one, two := play(t, p), play(t, p); one.digest != two.digest {
			a, b := strings.Split(one.trace, "\n"), strings.Split(two.trace, "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Errorf("seed %d: two runs differ:\n%s\n%s", seed, a[i], b[i])
					break
				}
			}
		}
	}
}
