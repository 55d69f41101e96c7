package hook

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/structs"
)

type memory map[string]Record

func (m memory) Record(h string) Record       { return m[h] }
func (m memory) SetRecord(h string, r Record) { m[h] = r }

// probe has some points and notes when they are called.
type probe struct {
	name  string
	calls *[]string
	err   error
	once  bool
	hang  bool
}

func (p *probe) Name() string { return p.name }

func (p *probe) Prestart(ctx context.Context, r *TaskRequest, resp *TaskResponse) error {
	*p.calls = append(*p.calls, "prestart "+p.name+" "+r.Data["seen"])
	resp.Data = map[string]string{"seen": r.Data["seen"] + "x"}
	resp.Env = map[string]string{"FROM_" + p.name: "1"}
	resp.Once = p.once
	if p.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return p.err
}

func (p *probe) PreKill(context.Context, *TaskRequest, *TaskResponse) error {
	*p.calls = append(*p.calls, "prekill "+p.name)
	return p.err
}

var (
	_ TaskPrestarter = (*probe)(nil)
	_ TaskPreKiller  = (*probe)(nil)
)

func TestChainKeepsOrderAndDoesNotRepeat(t *testing.T) {
	var calls []string
	journal := memory{}
	chain := &Chain{Journal: journal, Logger: hclog.NewNullLogger(), Hooks: []Hook{
		&probe{name: "a", calls: &calls}, &probe{name: "b", calls: &calls, once: true},
	}}
	run := func(attempt uint64) {
		t.Helper()
		if err := chain.Task(context.Background(), Prestart, TaskRequest{Attempt: attempt}, nil); err != nil {
			t.Fatal(err)
		}
	}
	run(1)
	run(1) // as after a restart of the agent
	run(2)
	if got, want := strings.Join(calls, "|"), "prestart a |prestart b |prestart a x"; got != want {
		t.Fatalf("calls %q, want %q", got, want)
	}
	if env := chain.Env(); env["FROM_a"] != "1" || env["FROM_b"] != "1" {
		t.Fatalf("env %v", env)
	}
}

func TestStartStopsAtTheFirstErrorAndStopDoesNot(t *testing.T) {
	var calls []string
	bad := errors.New("no luck")
	chain := &Chain{Journal: memory{}, Logger: hclog.NewNullLogger(), Hooks: []Hook{
		&probe{name: "a", calls: &calls, err: bad}, &probe{name: "b", calls: &calls},
	}}
	err := chain.Task(context.Background(), Prestart, TaskRequest{Attempt: 1}, nil)
	if !errors.Is(err, bad) || err.Error() != `prestart hook "a" failed: no luck` {
		t.Fatalf("error %v", err)
	}
	err = chain.Task(context.Background(), PreKill, TaskRequest{Attempt: 1}, nil)
	if !errors.Is(err, bad) {
		t.Fatalf("error %v", err)
	}
	if got, want := strings.Join(calls, "|"), "prestart a |prekill a|prekill b"; got != want {
		t.Fatalf("calls %q, want %q", got, want)
	}
	// The failed prestart is tried again, the failed prekill is not.
	_ = chain.Task(context.Background(), Prestart, TaskRequest{Attempt: 1}, nil)
	_ = chain.Task(context.Background(), PreKill, TaskRequest{Attempt: 1}, nil)
	if len(calls) != 4 {
		t.Fatalf("calls %q", calls)
	}
}

func TestEachCallHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		chain := &Chain{Journal: memory{}, Logger: hclog.NewNullLogger(), Hooks: []Hook{
			&probe{name: "slow", calls: &calls, hang: true},
		}}
		begin := time.Now()
		err := chain.Task(context.Background(), Prestart, TaskRequest{Attempt: 1}, nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Hour {
			t.Fatalf("error %v after %s", err, time.Since(begin))
		}
	})
}

type allocProbe struct{ calls *[]string }

func (allocProbe) Name() string { return "alloc" }
func (p allocProbe) Prerun(context.Context, *AllocRequest, *AllocResponse) error {
	*p.calls = append(*p.calls, "prerun")
	return nil
}
func (p allocProbe) Update(context.Context, *AllocRequest, *AllocResponse) error {
	*p.calls = append(*p.calls, "update")
	return nil
}

func TestAllocPointsRunOnceButUpdatesEachTime(t *testing.T) {
	var calls []string
	chain := &Chain{Journal: memory{}, Logger: hclog.NewNullLogger(), Hooks: []Hook{allocProbe{&calls}}}
	for _, p := range []Point{Prerun, Prerun, Update, Update, Destroy} {
		if err := chain.Alloc(context.Background(), p, AllocRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(calls, "|"); got != "prerun|update|update" {
		t.Fatalf("calls %q", got)
	}
}

// slowKiller is in PreKill until it may go on.
type slowKiller struct{ in, on chan struct{} }

func (*slowKiller) Name() string { return "slow" }
func (s *slowKiller) PreKill(_ context.Context, _ *TaskRequest, resp *TaskResponse) error {
	close(s.in)
	<-s.on
	resp.Data = map[string]string{"left": "yes"}
	return nil
}
func (s *slowKiller) Update(_ context.Context, r *TaskRequest, resp *TaskResponse) error {
	if r.Task != nil {
		resp.Data = map[string]string{"updated": "yes"}
	}
	return nil
}

// TestAnUpdateBesideAnotherPointLosesNothing: neither an update while a point runs nor one after it takes anything back.
func TestAnUpdateBesideAnotherPointLosesNothing(t *testing.T) {
	journal := &locked{memory: memory{}}
	s := &slowKiller{in: make(chan struct{}), on: make(chan struct{})}
	chain := &Chain{Journal: journal, Logger: hclog.NewNullLogger(), Hooks: []Hook{s}}
	done := make(chan error, 1)
	go func() { done <- chain.Task(context.Background(), PreKill, TaskRequest{Attempt: 1}, nil) }()
	<-s.in
	if err := chain.Task(context.Background(), Update, TaskRequest{Attempt: 1, Task: &structs.Task{}}, nil); err != nil {
		t.Fatal(err)
	}
	if rec := journal.Record("slow"); rec.Data["updated"] != "yes" || rec.finished(PreKill, 1) {
		t.Fatalf("record %+v", rec)
	}
	close(s.on)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := chain.Task(context.Background(), Update, TaskRequest{Attempt: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if rec := journal.Record("slow"); rec.Data["left"] != "yes" || !rec.finished(PreKill, 1) {
		t.Fatalf("record %+v", rec)
	}
}

// locked is a journal for several goroutines.
type locked struct {
	mu sync.Mutex
	memory
}

func (l *locked) Record(h string) Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.memory.Record(h)
}

func (l *locked) SetRecord(h string, r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.memory.SetRecord(h, r)
}

// hoarder keeps something although it fails.
type hoarder struct{ err error }

func (*hoarder) Name() string { return "hoarder" }

func (h *hoarder) Prestart(_ context.Context, r *TaskRequest, resp *TaskResponse) error {
	resp.Data = map[string]string{"seen": r.Data["seen"] + "x"}
	return h.err
}

// TestWhatAFailedStartKeptIsThereForTheNext lets a hook that got half way not begin anew.
func TestWhatAFailedStartKeptIsThereForTheNext(t *testing.T) {
	journal := memory{}
	chain := &Chain{Journal: journal, Logger: hclog.NewNullLogger(), Hooks: []Hook{&hoarder{err: errors.New("no luck")}}}
	stopped, stop := context.WithCancel(context.Background())
	_ = chain.Task(context.Background(), Prestart, TaskRequest{Attempt: 1}, nil)
	stop()
	_ = chain.Task(stopped, Prestart, TaskRequest{Attempt: 2}, nil)
	if rec := journal.Record("hoarder"); rec.Data["seen"] != "xx" || rec.finished(Prestart, 1) {
		t.Errorf("record %+v", rec)
	}
}
