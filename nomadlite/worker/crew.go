package worker

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// flightsPerWorker is how many evaluations a worker may have under way on average, of which it works on one: the others
// wait until what was decided is written.
const flightsPerWorker = 8

// Who decides at the same moment as another one does not know of its plan. Where room is tight both then want the same,
// so that one decides after the other once two plans met; and one more at a time after so many in a row that fitted.
const fitsToWiden = 32

// crew is the workers that are on duty together; a pool whose setting changes gets a new one.
type crew struct {
	types    []string
	workers  []*member
	started  time.Time
	relieved chan struct{} // closed when another crew takes over
	flights  *window       // of evaluations under way
	deciding *window       // of those that do not wait
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
	c := &crew{types: slices.Clone(types), started: time.Now(), relieved: make(chan struct{}),
		flights:  newWindow(count, flightsPerWorker*count, 1),
		deciding: newWindow(1, max(1, min(count, runtime.GOMAXPROCS(0))), fitsToWiden)}
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
			wg.Go(func() { p.work(ctx, duty, c, m) })
		}
		select {
		case <-c.relieved:
		case <-ctx.Done():
		}
		end()
	}
	return ctx.Err()
}

// work processes one evaluation after the other until duty ends, and waits for those under way. When the broker cannot
// be reached (an election) it tries again with a growing delay.
func (p *Pool) work(ctx, duty context.Context, c *crew, m *member) {
	var flights sync.WaitGroup
	defer flights.Wait()
	failures := 0
	for duty.Err() == nil && c.flights.enter(duty) == nil {
		d, err := p.cfg.Broker.Dequeue(duty, c.types)
		if err == nil {
			failures = 0
			decided := make(chan struct{})
			m.busy.Store(true)
			flights.Go(func() {
				defer c.flights.exit()
				p.deliver(ctx, d, &desk{decided: sync.OnceFunc(func() { close(decided) }), deciding: c.deciding, flights: c.flights})
			})
			<-decided
			m.busy.Store(false)
			continue
		}
		c.flights.exit()
		failures = min(failures+1, 6)
		select {
		case <-time.After(50 * time.Millisecond << failures):
		case <-duty.Done():
		}
	}
}

// desk is where a worker decides about one evaluation. It is free for the next one as soon as the first decision is on its
// way into the log; an evaluation whose plan did not fit decides again beside the next ones. There are no more decisions at
// a time than processors: more would only take longer, and know less of each other.
type desk struct {
	decided  func() // may be called again
	deciding *window
	flights  *window
	held     bool // a place of deciding
}

// leave says that what comes next is waiting.
func (d *desk) leave() {
	if d.held {
		d.held = false
		d.deciding.exit()
	}
	d.decided()
}

// back waits until the evaluation may decide.
func (d *desk) back(ctx context.Context) error {
	if err := d.deciding.enter(ctx); err != nil {
		return err
	}
	d.held = true
	return nil
}
