package broker

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// QueueFailed is the pseudo scheduler type under which evaluations that were delivered too often are dequeued.
const QueueFailed = "_failed"

// Config bounds deliveries. Zero values mean the defaults.
type Config struct {
	NackTimeout   time.Duration // a delivery not acknowledged or renewed within is given back; default 60 s
	NackDelay     time.Duration // wait after the first failed delivery, 4 times as long after each further; default 1 s
	NackDelayMax  time.Duration // default 1 min
	DeliveryLimit int           // deliveries before an evaluation goes to QueueFailed; default 3
	// Random gives a number in [0,n), by which waits of the broker part; default: by chance.
	Random func(n int64) int64
}

func (c Config) withDefaults() Config {
	if c.NackTimeout == 0 {
		c.NackTimeout = time.Minute
	}
	if c.NackDelay == 0 {
		c.NackDelay = time.Second
	}
	if c.NackDelayMax == 0 {
		c.NackDelayMax = time.Minute
	}
	if c.DeliveryLimit == 0 {
		c.DeliveryLimit = 3
	}
	return c
}

// place says where an evaluation known to the queue is.
type place uint8

const (
	ready   place = iota // may be dequeued
	behind               // waits until its job has nothing ready or in flight
	delayed              // waits for a time
	flight               // delivered, not yet acknowledged
)

// entry is one evaluation known to the queue.
type entry struct {
	eval       *structs.Evaluation
	job        structs.NamespacedID
	background bool
	attempts   int // failed deliveries
	place      place
	due        time.Time     // delayed: when it is enqueued; flight: the deadline
	lease      time.Duration // flight: how far each renewal moves the deadline
	token      string
	again      *structs.Evaluation // flight: enqueue this once acknowledged
	pos        int                 // in the heap it is in
	failed     bool                // over the delivery limit
}

// Queue is the pure core of the evaluation broker.
type Queue struct {
	cfg     Config
	entries map[string]*entry                   // by evaluation id
	holder  map[structs.NamespacedID]*entry     // the one evaluation of a job which is ready or in flight
	waiting map[structs.NamespacedID]*entryHeap // behind the holder
	ready   map[string]*entryHeap               // by scheduler type
	timers  timerHeap                           // delayed and flight, by due
	errands map[errand]*entry                   // the evaluation that does it, wherever it is
}

// NewQueue makes an empty queue.
func NewQueue(cfg Config) *Queue {
	q := &Queue{cfg: cfg.withDefaults()}
	q.Flush()
	return q
}

// Flush forgets everything: deliveries under way can no longer be acknowledged.
func (q *Queue) Flush() {
	q.entries = map[string]*entry{}
	q.holder = map[structs.NamespacedID]*entry{}
	q.waiting = map[structs.NamespacedID]*entryHeap{}
	q.ready = map[string]*entryHeap{}
	q.timers = nil
	q.errands = map[errand]*entry{}
}

// Enqueue takes an evaluation in; one that is known already stays as it is. Evaluations in the background are
// dequeued after all others: a new leader's second look at blocked work must not delay fresh work.
func (q *Queue) Enqueue(now time.Time, eval *structs.Evaluation, background bool) {
	if _, known := q.entries[eval.ID]; known {
		return
	}
	e := &entry{eval: eval, background: background, pos: -1,
		job: structs.NamespacedID{Namespace: eval.Namespace, ID: eval.JobID}}
	q.entries[eval.ID] = e
	q.undertake(e)
	if eval.WaitUntil.After(now) {
		q.delay(e, eval.WaitUntil)
		return
	}
	q.admit(e)
}

// Requeue is Enqueue for an evaluation that may be in flight at this moment (it blocked itself and was woken before
// its worker acknowledged it): it then runs again after the acknowledgement.
func (q *Queue) Requeue(now time.Time, eval *structs.Evaluation) {
	if e, known := q.entries[eval.ID]; known && e.place == flight {
		e.again = eval
		return
	}
	q.Enqueue(now, eval, false)
}

// Dequeue delivers the most urgent ready evaluation of the given scheduler types under token; nil when there is none.
func (q *Queue) Dequeue(now time.Time, types []string, token string) *structs.Evaluation {
	var best *entry
	for _, t := range types {
		if h := q.ready[t]; h != nil && h.Len() > 0 && (best == nil || before((*h)[0], best)) {
			best = (*h)[0]
		}
	}
	if best == nil {
		return nil
	}
	q.dropReady(best)
	best.place, best.token, best.due, best.lease = flight, token, now.Add(q.cfg.NackTimeout), q.cfg.NackTimeout
	heap.Push(&q.timers, best)
	return best.eval
}

// Token gives the token under which an evaluation is in flight, empty when it is not.
func (q *Queue) Token(evalID string) string {
	if e := q.entries[evalID]; e != nil && e.place == flight {
		return e.token
	}
	return ""
}

// Active says whether an evaluation has its turn: it is ready, or in flight.
func (q *Queue) Active(evalID string) bool {
	e := q.entries[evalID]
	return e != nil && !e.failed && (e.place == ready || e.place == flight)
}

// Ack ends a delivery: the evaluation is done.
func (q *Queue) Ack(now time.Time, evalID, token string) error {
	e, err := q.delivered(evalID, token)
	if err != nil {
		return err
	}
	again := e.again
	q.forget(e)
	if again != nil {
		q.Enqueue(now, again, false)
	}
	return nil
}

// Nack gives a delivery back: it is tried again after a delay that grows, until the delivery limit.
func (q *Queue) Nack(now time.Time, evalID, token string) error {
	e, err := q.delivered(evalID, token)
	if err != nil {
		return err
	}
	q.giveBack(now, e)
	return nil
}

// Renew moves the deadline of a delivery that is still being worked on.
func (q *Queue) Renew(now time.Time, evalID, token string) error {
	e, err := q.delivered(evalID, token)
	if err != nil {
		return err
	}
	e.due = now.Add(e.lease)
	heap.Fix(&q.timers, e.pos)
	return nil
}

// Shorten lets a delivery be given back after lease already, unless it is renewed within.
func (q *Queue) Shorten(now time.Time, evalID, token string, lease time.Duration) error {
	e, err := q.delivered(evalID, token)
	if err != nil {
		return err
	}
	e.lease = min(e.lease, lease)
	e.due = now.Add(e.lease)
	heap.Fix(&q.timers, e.pos)
	return nil
}

// Remove forgets an evaluation that was ended elsewhere (cancelled, deleted). A delivery under way ends by itself, but
// does not run again.
func (q *Queue) Remove(evalID string) {
	e := q.entries[evalID]
	switch {
	case e == nil:
	case e.place == flight:
		e.again = nil
	default:
		q.forget(e)
	}
}

// Tick does what is due: delayed evaluations are enqueued, deliveries past their deadline are given back.
func (q *Queue) Tick(now time.Time) {
	for len(q.timers) > 0 && !q.timers[0].due.After(now) {
		e := q.timers[0]
		if e.place == flight {
			q.giveBack(now, e)
			continue
		}
		heap.Remove(&q.timers, e.pos)
		q.admit(e)
	}
}

// Next says when Tick has something to do; false when nothing waits for a time.
func (q *Queue) Next() (time.Time, bool) {
	if len(q.timers) == 0 {
		return time.Time{}, false
	}
	return q.timers[0].due, true
}

func (q *Queue) delivered(evalID, token string) (*entry, error) {
	e := q.entries[evalID]
	if e == nil || e.place != flight {
		return nil, fmt.Errorf("evaluation %s is not in flight: %w", evalID, structs.ErrStaleToken)
	}
	if e.token != token {
		return nil, fmt.Errorf("evaluation %s was delivered again: %w", evalID, structs.ErrStaleToken)
	}
	return e, nil
}

// giveBack ends a failed delivery. The job's next evaluation gets its turn while this one waits.
func (q *Queue) giveBack(now time.Time, e *entry) {
	heap.Remove(&q.timers, e.pos)
	if e.again != nil {
		e.eval, e.again = e.again, nil
	}
	e.attempts++
	e.token = ""
	if e.attempts >= q.cfg.DeliveryLimit {
		// It keeps its job's turn until the cluster has recorded the failure: nothing may overtake that record.
		e.failed = true
		q.pushReady(e)
		return
	}
	wait := q.cfg.NackDelay
	for i := 1; i < e.attempts && wait < q.cfg.NackDelayMax; i++ {
		wait *= 4
	}
	q.release(e)
	q.delay(e, now.Add(min(wait, q.cfg.NackDelayMax)))
}

func (q *Queue) delay(e *entry, due time.Time) {
	e.place, e.due = delayed, due
	heap.Push(&q.timers, e)
}

// admit makes e ready, or puts it behind the one which holds its job's turn. A more urgent one takes the turn over
// from one that is not yet delivered.
func (q *Queue) admit(e *entry) {
	holder := q.holder[e.job]
	if holder == nil {
		q.holder[e.job] = e
		q.pushReady(e)
		return
	}
	if holder.place == ready && !holder.failed && before(e, holder) {
		q.dropReady(holder)
		q.holder[e.job] = e
		q.pushReady(e)
		e = holder
	}
	h := q.waiting[e.job]
	if h == nil {
		h = &entryHeap{}
		q.waiting[e.job] = h
	}
	e.place = behind
	heap.Push(h, e)
}

// release passes the turn of e's job on.
func (q *Queue) release(e *entry) {
	if q.holder[e.job] != e {
		return
	}
	delete(q.holder, e.job)
	if h := q.waiting[e.job]; h != nil {
		next := heap.Pop(h).(*entry)
		if h.Len() == 0 {
			delete(q.waiting, e.job)
		}
		q.holder[e.job] = next
		q.pushReady(next)
	}
}

// forget removes e from wherever it is and passes its turn on.
func (q *Queue) forget(e *entry) {
	switch e.place {
	case ready:
		q.dropReady(e)
	case behind:
		h := q.waiting[e.job]
		heap.Remove(h, e.pos)
		if h.Len() == 0 {
			delete(q.waiting, e.job)
		}
	case delayed, flight:
		heap.Remove(&q.timers, e.pos)
	}
	delete(q.entries, e.eval.ID)
	q.drop(e)
	q.release(e)
}

func (e *entry) queue() string {
	if e.failed {
		return QueueFailed
	}
	return e.eval.Type
}

func (q *Queue) pushReady(e *entry) {
	h := q.ready[e.queue()]
	if h == nil {
		h = &entryHeap{}
		q.ready[e.queue()] = h
	}
	e.place = ready
	heap.Push(h, e)
}

func (q *Queue) dropReady(e *entry) { heap.Remove(q.ready[e.queue()], e.pos) }

// Stats counts the evaluations by where they are.
type Stats struct {
	Ready, Behind, Delayed, InFlight, Failed int
	ByType                                   map[string]int // ready ones
}

// Stats counts what the queue holds.
func (q *Queue) Stats() Stats {
	s := Stats{ByType: map[string]int{}}
	for t, h := range q.ready {
		s.ByType[t] = h.Len()
		s.Ready += h.Len()
	}
	s.Failed = s.ByType[QueueFailed]
	for _, h := range q.waiting {
		s.Behind += h.Len()
	}
	for _, e := range q.timers {
		if e.place == flight {
			s.InFlight++
		} else {
			s.Delayed++
		}
	}
	return s
}
