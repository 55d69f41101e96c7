package worker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// crew is the workers that are on duty together; a pool whose setting changes gets a new one.
type crew struct {
	types    []string
	workers  []*member
	started  time.Time
	relieved chan struct{} // closed when another crew takes over
}

// member is one worker.
type member struct {
	id   string
	busy atomic.Bool
}

// Status is one worker as operators see it.
type Status struct {
	ID      string
	Types   []string
	Started time.Time
	Busy    bool // it works on an evaluation
}

func (p *Pool) newCrew(types []string, count int) *crew {
	c := &crew{types: slices.Clone(types), started: time.Now(), relieved: make(chan struct{})}
	for range count {
		m := &member{}
		if p.cfg.NewID != nil {
			m.id = p.cfg.NewID()
		}
		c.workers = append(c.workers, m)
	}
	return c
}

// Set changes what evaluations the pool takes and how many at once. Workers that are busy end their evaluation first;
// meanwhile the new ones begin.
func (p *Pool) Set(types []string, count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if count == len(p.crew.workers) && slices.Equal(types, p.crew.types) {
		return
	}
	close(p.crew.relieved)
	p.crew = p.newCrew(types, count)
}

// Setting is what Set set last.
func (p *Pool) Setting() (types []string, count int) {
	c := p.current()
	return slices.Clone(c.types), len(c.workers)
}

// Workers gives those on duty.
func (p *Pool) Workers() []Status {
	c := p.current()
	out := make([]Status, 0, len(c.workers))
	for _, m := range c.workers {
		out = append(out, Status{ID: m.id, Types: c.types, Started: c.started, Busy: m.busy.Load()})
	}
	return out
}

func (p *Pool) current() *crew {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crew
}

// Run works until ctx ends.
func (p *Pool) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for ctx.Err() == nil {
		c := p.current()
		duty, end := context.WithCancel(ctx)
		for _, m := range c.workers {
			wg.Go(func() { p.work(ctx, duty, c.types, m) })
		}
		select {
		case <-c.relieved:
		case <-ctx.Done():
		}
		end()
	}
	return ctx.Err()
}

// work processes one evaluation after the other until duty ends. When the broker cannot be reached (an election) it
// tries again with a growing delay.
func (p *Pool) work(ctx, duty context.Context, types []string, m *member) {
	failures := 0
	for duty.Err() == nil {
		d, err := p.cfg.Broker.Dequeue(duty, types)
		if err == nil {
			failures = 0
			m.busy.Store(true)
			p.deliver(ctx, d)
			m.busy.Store(false)
			continue
		}
		failures = min(failures+1, 6)
		select {
		case <-time.After(50 * time.Millisecond << failures):
		case <-duty.Done():
		}
	}
}
