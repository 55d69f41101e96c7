package periodic

import (
	"container/heap"
	"reflect"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// Late is by how much a launch may be late and still be made for its own time. What is later is caught up.
const Late = 10 * time.Second

// Due is a launch that is to be made.
type Due struct {
	structs.NamespacedID
	Time time.Time
}

// Schedules is the pure core: the periodic jobs, and which of them is due next.
type Schedules struct {
	jobs  map[structs.NamespacedID]*entry
	queue queue
}

// entry is one periodic job.
type entry struct {
	id       structs.NamespacedID
	config   *structs.PeriodicConfig
	schedule *structs.Schedule // nil while its job is not active
	done     time.Time         // times up to this one are done with
	asked    time.Time         // launches up to this one were handed out, or are not made any more
	next     time.Time         // zero: none
	wake     time.Time         // when next is looked at: then, or later after a failed write
	place    int               // in the queue, -1: not in it
}

// NewSchedules makes a core that knows no job.
func NewSchedules() *Schedules { return &Schedules{jobs: map[structs.NamespacedID]*entry{}} }

// Load takes in a job which this leader finds in the state. Of the times that passed since the schedule was last looked
// after only the newest is launched. row may be nil; the schedule then begins with the job.
func (s *Schedules) Load(job *structs.Job, row *state.Launch, now time.Time) {
	if row != nil {
		s.Launch(row)
	}
	s.Job(job)
	e := s.jobs[idOf(job)]
	if e == nil || e.schedule == nil {
		return
	}
	if last := e.schedule.Last(e.from(), now); !last.IsZero() {
		e.asked = last.Add(-time.Second)
		s.replan(e)
	}
}

func idOf(job *structs.Job) structs.NamespacedID {
	return structs.NamespacedID{Namespace: structs.Val(job.Namespace), ID: structs.Val(job.ID)}
}

// Job takes a job in as it is stored now. It says whether that changes what is due.
func (s *Schedules) Job(job *structs.Job) (changed bool) {
	id := idOf(job)
	if !job.IsPeriodicActive() {
		return s.RemoveJob(id)
	}
	e := s.entry(id)
	if e.schedule != nil && (e.config == job.Periodic || reflect.DeepEqual(e.config, job.Periodic)) {
		return false
	}
	schedule, err := job.Periodic.Schedule()
	if err != nil {
		return s.RemoveJob(id) // no such job is stored
	}
	e.config, e.schedule = job.Periodic, schedule
	if e.done.IsZero() {
		e.done = time.Unix(0, job.SubmitTime)
	}
	s.replan(e)
	return true
}

// RemoveJob forgets a job. It says whether that changes what is due.
func (s *Schedules) RemoveJob(id structs.NamespacedID) (changed bool) {
	e := s.jobs[id]
	if e == nil {
		return false
	}
	delete(s.jobs, id)
	if e.place >= 0 {
		heap.Remove(&s.queue, e.place)
	}
	return true
}

// Launch takes in how far a job's schedule has come. It says whether that changes what is due.
func (s *Schedules) Launch(row *state.Launch) (changed bool) {
	e := s.entry(structs.NamespacedID{Namespace: row.Namespace, ID: row.JobID})
	before := e.next
	e.done = time.Unix(0, row.Time)
	s.replan(e)
	return !e.next.Equal(before)
}

func (s *Schedules) entry(id structs.NamespacedID) *entry {
	e := s.jobs[id]
	if e == nil {
		e = &entry{id: id, place: -1}
		s.jobs[id] = e
	}
	return e
}

// from is the time up to which nothing is to be launched any more.
func (e *entry) from() time.Time {
	if e.asked.After(e.done) {
		return e.asked
	}
	return e.done
}

// replan finds a job's next time.
func (s *Schedules) replan(e *entry) {
	e.next = time.Time{}
	if e.schedule != nil {
		e.next = e.schedule.Next(e.from())
	}
	e.wake = e.next
	s.queue.place(e)
}

// Due hands out at most limit launches that are due, the earliest first, one a job.
func (s *Schedules) Due(now time.Time, limit int) []Due {
	var due []Due
	var handed []*entry
	for len(due) < limit && len(s.queue) > 0 && !s.queue[0].wake.After(now) {
		e := s.queue[0]
		at := e.next
		if now.Sub(at) > Late {
			at = e.schedule.Last(e.from(), now)
		}
		e.asked = at
		due = append(due, Due{NamespacedID: e.id, Time: at})
		heap.Remove(&s.queue, e.place)
		handed = append(handed, e)
	}
	for _, e := range handed {
		s.replan(e)
	}
	return due
}

// Retry takes back a launch that could not be written: it is looked at again at a later moment.
func (s *Schedules) Retry(d Due, at time.Time) {
	e := s.jobs[d.NamespacedID]
	if e == nil || e.schedule == nil || !e.asked.Equal(d.Time) {
		return
	}
	e.asked = d.Time.Add(-time.Second)
	s.replan(e)
	if e.wake.Before(at) && !e.next.IsZero() {
		e.wake = at
		s.queue.place(e)
	}
}

// Next is when to look again; ok is false when nothing will be.
func (s *Schedules) Next() (at time.Time, ok bool) {
	if len(s.queue) == 0 {
		return time.Time{}, false
	}
	return s.queue[0].wake, true
}

// queue is a heap of the jobs that have a next time, by when it is looked at and by id.
type queue []*entry

// place puts an entry where its next time belongs.
func (q *queue) place(e *entry) {
	switch {
	case e.place < 0 && !e.next.IsZero():
		heap.Push(q, e)
	case e.place >= 0 && e.next.IsZero():
		heap.Remove(q, e.place)
	case e.place >= 0:
		heap.Fix(q, e.place)
	}
}

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, k int) bool {
	a, b := q[i], q[k]
	if !a.wake.Equal(b.wake) {
		return a.wake.Before(b.wake)
	}
	if a.id.Namespace != b.id.Namespace {
		return a.id.Namespace < b.id.Namespace
	}
	return a.id.ID < b.id.ID
}

func (q queue) Swap(i, k int) {
	q[i], q[k] = q[k], q[i]
	q[i].place, q[k].place = i, k
}

// Push is for package heap.
func (q *queue) Push(x any) {
	e := x.(*entry)
	e.place = len(*q)
	*q = append(*q, e)
}

// Pop is for package heap.
func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	e.place = -1
	return e
}
