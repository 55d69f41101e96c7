package periodic

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// launched is the core over the real commands and a real store, beside a model that knows nothing of cron: its jobs are
// due at each multiple of some seconds.
type launched struct {
	*rapid.T
	log   *clustertest.Log
	now   time.Time
	core  *Schedules // nil: nobody leads
	jobs  map[string]*modelJob
	evals int
}

type modelJob struct {
	every   int
	overlap bool        // prohibited
	waiting []time.Time // times that passed and are neither launched nor left out
	wake    time.Time   // after a failed write
	live    map[string]bool
	made    map[string]bool
}

func newLaunched(t *rapid.T) *launched {
	l := &launched{T: t, log: clustertest.New(), now: begin, jobs: map[string]*modelJob{}}
	for i := range 3 {
		m := &modelJob{every: rapid.SampledFrom([]int{1, 2, 5, 15, 30, 60}).Draw(t, "every"), overlap: rapid.Bool().Draw(t, "prohibit overlap"),
			live: map[string]bool{}, made: map[string]bool{}}
		l.jobs[fmt.Sprint("job", i)] = m
		l.register(fmt.Sprint("job", i))
	}
	return l
}

func (l *launched) apply(kind fsm.Kind, req any) any {
	resp, _, err := l.log.Apply(context.Background(), kind, req)
	if err != nil {
		l.Fatal(err)
	}
	return resp
}

func (l *launched) register(id string) {
	m := l.jobs[id]
	spec := map[bool]string{true: "0 * * * * * *", false: fmt.Sprintf("*/%d * * * * * *", m.every)}[m.every == 60]
	job := cronJob(id, spec)
	job.Periodic.ProhibitOverlap = &m.overlap
	job.Meta = map[string]string{"rev": rapid.SampledFrom([]string{"1", "2"}).Draw(l.T, "rev")}
	l.apply(fsm.KindJobRegister, &fsm.JobRegister{Job: job, Now: l.now.UnixNano()})
	if l.core != nil {
		l.core.Job(l.log.Store.Job(nil, "default", id))
	}
}

// lead begins a term: of what passed, only the newest is launched.
func (l *launched) lead() {
	l.core = NewSchedules()
	for id, m := range l.jobs {
		l.core.Load(l.log.Store.Job(nil, "default", id), l.log.Store.Launch(nil, "default", id), l.now)
		m.wake = time.Time{}
		m.keepNewest()
	}
}

func (m *modelJob) keepNewest() {
	if n := len(m.waiting); n > 1 {
		m.waiting = m.waiting[n-1:]
	}
}

// second lets one second pass.
func (l *launched) second() {
	l.now = l.now.Add(time.Second)
	for _, m := range l.jobs {
		if l.now.Unix()%int64(m.every) == 0 {
			m.waiting = append(m.waiting, l.now)
		}
	}
}

// want is what the model says is due, one a job.
func (l *launched) want() map[string]time.Time {
	out := map[string]time.Time{}
	for id, m := range l.jobs {
		if len(m.waiting) == 0 || m.wake.After(l.now) {
			continue
		}
		if l.now.Sub(m.waiting[0]) > Late {
			m.keepNewest()
		}
		out[id] = m.waiting[0]
	}
	return out
}

// work launches all that is due now; some writes fail, before or after they took effect.
func (l *launched) work() {
	for {
		want, due := l.want(), l.core.Due(l.now, 10)
		for _, d := range due {
			if !want[d.ID].Equal(d.Time) {
				l.Fatalf("at %s the launch of %s for %s is due, want %v", l.now, d.ID, d.Time, want)
			}
			delete(want, d.ID)
		}
		if len(want) > 0 {
			l.Fatalf("at %s launches are not due: %v", l.now, want)
		}
		if len(due) == 0 {
			break
		}
		for _, d := range due {
			l.write(d)
		}
	}
	if at, ok := l.core.Next(); !ok || !at.After(l.now) {
		l.Fatalf("nothing is due, and the next look is at %s (%v)", at, ok)
	}
}

func (l *launched) write(d Due) {
	m := l.jobs[d.ID]
	kind := rapid.SampledFrom([]string{"", "", "", "", "", "lost", "unheard", "twice"}).Draw(l.T, "fault")
	if kind == "lost" {
		l.retry(d)
		return
	}
	l.evals++
	req := &fsm.PeriodicLaunch{Namespace: "default", JobID: d.ID, Time: d.Time.UnixNano(), EvalID: fmt.Sprint("e", l.evals), Now: l.now.UnixNano()}
	result := l.apply(fsm.KindPeriodicLaunch, req).(fsm.LaunchResult)
	if left := result.Child == nil; left != (m.overlap && len(m.live) > 0) {
		l.Fatalf("launch of %s for %s: left out %v, live children %v, overlap prohibited %v", d.ID, d.Time, left, m.live, m.overlap)
	}
	if result.Child != nil {
		id := structs.Val(result.Child.ID)
		if m.made[id] {
			l.Fatalf("%s was launched twice", id)
		}
		m.made[id], m.live[id] = true, true
	}
	if kind == "twice" {
		req.EvalID += "-again"
		if _, _, err := l.log.Apply(context.Background(), fsm.KindPeriodicLaunch, req); structs.ErrorCode(err) != structs.CodeConflict {
			l.Fatalf("the same entry once more: %v", err)
		}
	}
	m.waiting = m.waiting[1:]
	if kind == "unheard" {
		l.core.Retry(d, l.now.Add(time.Second))
	}
	l.core.Launch(l.log.Store.Launch(nil, "default", d.ID))
}

func (l *launched) retry(d Due) {
	l.core.Retry(d, l.now.Add(time.Second))
	l.jobs[d.ID].wake = l.now.Add(time.Second)
}

// finish lets a child end.
func (l *launched) finish(job, child string) {
	var evals []*structs.Evaluation
	for _, e := range l.log.Store.EvalsByJob(nil, "default", child) {
		done := *e
		done.Status = structs.EvalStatusComplete
		evals = append(evals, &done)
	}
	l.apply(fsm.KindEvalUpdate, &fsm.EvalUpdate{Evals: evals, Now: l.now.UnixNano()})
	if status := l.log.Store.Job(nil, "default", child).Status; status != structs.JobStatusDead {
		l.Fatalf("%s is %s", child, status)
	}
	delete(l.jobs[job].live, child)
}

// check compares the children in the store with those that were made, and their count with the summary.
func (l *launched) check() {
	for id, m := range l.jobs {
		n := 0
		for child := range l.log.Store.Children(nil, "default", id) {
			n++
			if !m.made[structs.Val(child.ID)] {
				l.Fatalf("%s was not launched", structs.Val(child.ID))
			}
		}
		counted := *l.log.Store.JobSummary(nil, "default", id).Children
		if want := (structs.JobChildrenSummary{Pending: int64(len(m.live)), Dead: int64(len(m.made) - len(m.live))}); n != len(m.made) || counted != want {
			l.Fatalf("%s has %d children, counted %+v, want %d, %+v", id, n, counted, len(m.made), want)
		}
	}
}

// TestEachTimeIsLaunchedOnce: whatever leaders, writes and children do, no time is launched twice, none is lost while a
// leader works, one is caught up after a time without, and children of jobs that prohibit it do not overlap.
func TestEachTimeIsLaunchedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLaunched(t)
		l.lead()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"pass", "pass", "pass", "finish", "leader", "busy", "register"}).Draw(t, "step") {
			case "pass":
				for range rapid.IntRange(1, 20).Draw(t, "seconds") {
					l.second()
					if l.core != nil {
						l.work()
					}
				}
			case "busy": // the leader does not come to it
				for range rapid.IntRange(1, 20).Draw(t, "seconds") {
					l.second()
				}
			case "finish":
				id := fmt.Sprint("job", rapid.IntRange(0, 2).Draw(t, "job"))
				if live := keys(l.jobs[id].live); len(live) > 0 {
					l.finish(id, rapid.SampledFrom(live).Draw(t, "child"))
				}
			case "leader":
				if l.core = nil; rapid.Bool().Draw(t, "at once") {
					l.lead()
				}
			case "register":
				l.register(fmt.Sprint("job", rapid.IntRange(0, 2).Draw(t, "job")))
			}
			if l.core == nil && rapid.Bool().Draw(t, "elected") {
				l.lead()
			}
			l.check()
		}
	})
}

func keys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
