package broker

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/structs"
)

// naive is a second, dumb implementation of Queue: one list, looked through from the start for everything.
type naive struct {
	cfg  Config
	list []*naiveEntry
}

type naiveEntry struct {
	entry
	started bool // was admitted, not waiting for a time
}

func (n *naive) find(id string) (*naiveEntry, int) {
	for i, e := range n.list {
		if e.eval.ID == id {
			return e, i
		}
	}
	return nil, -1
}

func (n *naive) enqueue(now time.Time, eval *structs.Evaluation, background bool) {
	if e, _ := n.find(eval.ID); e != nil {
		return
	}
	e := &naiveEntry{started: !eval.WaitUntil.After(now)}
	e.eval, e.background, e.due = eval, background, eval.WaitUntil
	n.list = append(n.list, e)
}

func (n *naive) dequeue(now time.Time, typ, token string) *structs.Evaluation {
	var best *naiveEntry
	for _, e := range n.list {
		if !e.started || e.token != "" || e.failed != (typ == QueueFailed) || (!e.failed && e.eval.Type != typ) {
			continue
		}
		busy := false
		for _, o := range n.list {
			busy = busy || (o != e && o.eval.JobID == e.eval.JobID && (o.token != "" || o.failed))
		}
		// A better one of another type of the same job has the turn.
		for _, o := range n.list {
			busy = busy || (!e.failed && o != e && o.eval.JobID == e.eval.JobID && o.started && before(&o.entry, &e.entry))
		}
		if !busy && (best == nil || before(&e.entry, &best.entry)) {
			best = e
		}
	}
	if best == nil {
		return nil
	}
	best.token, best.due = token, now.Add(n.cfg.NackTimeout)
	return best.eval
}

func (n *naive) nack(now time.Time, e *naiveEntry) {
	e.attempts++
	e.token = ""
	if e.attempts >= n.cfg.DeliveryLimit {
		e.failed = true
		return
	}
	e.started = false
	e.due = now.Add(min(n.cfg.NackDelay<<(2*(e.attempts-1)), n.cfg.NackDelayMax))
}

func (n *naive) tick(now time.Time) {
	for _, e := range n.list {
		switch {
		case e.token != "" && !e.due.After(now):
			n.nack(now, e)
			fallthrough
		case !e.started && e.token == "" && !e.failed:
			if !e.due.After(now) {
				e.started = true
			}
		}
	}
}

// TestQueueAgainstNaive drives Queue and the dumb implementation with the same commands: every answer must agree, so
// nothing is lost, delivered twice or out of order, and one evaluation a job is in flight.
func TestQueueAgainstNaive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{}.withDefaults()
		q, n := NewQueue(cfg), &naive{cfg: cfg}
		now := time.Unix(0, 0)
		var made uint64
		id := rapid.IntRange(0, 12)
		rt.Repeat(map[string]func(*rapid.T){
			"enqueue": func(rt *rapid.T) {
				made++
				k := id.Draw(rt, "id")
				eval := &structs.Evaluation{ID: fmt.Sprint("e", k), JobID: fmt.Sprint("j", k%4), CreateIndex: made,
					Type: []string{"service", "batch"}[k%2], Priority: rapid.IntRange(1, 3).Draw(rt, "priority")}
				if rapid.Bool().Draw(rt, "wait") {
					eval.WaitUntil = now.Add(time.Duration(rapid.IntRange(0, 5).Draw(rt, "for")) * time.Second)
				}
				background := rapid.Bool().Draw(rt, "background")
				q.Enqueue(now, eval, background)
				n.enqueue(now, eval, background)
			},
			"dequeue": func(rt *rapid.T) {
				typ := rapid.SampledFrom([]string{"service", "batch", QueueFailed}).Draw(rt, "type")
				made++
				token := fmt.Sprint("t", made)
				got, want := q.Dequeue(now, []string{typ}, token), n.dequeue(now, typ, token)
				if got != want {
					rt.Fatalf("dequeue %s: got %v want %v", typ, got, want)
				}
			},
			"ack": func(rt *rapid.T) {
				e, i := n.find(fmt.Sprint("e", id.Draw(rt, "id")))
				if e == nil || e.token == "" {
					return
				}
				if err := q.Ack(now, e.eval.ID, e.token); err != nil {
					rt.Fatal(err)
				}
				n.list = append(n.list[:i:i], n.list[i+1:]...)
			},
			"nack": func(rt *rapid.T) {
				e, _ := n.find(fmt.Sprint("e", id.Draw(rt, "id")))
				if e == nil || e.token == "" {
					return
				}
				if err := q.Nack(now, e.eval.ID, e.token); err != nil {
					rt.Fatal(err)
				}
				n.nack(now, e)
			},
			"remove": func(rt *rapid.T) {
				e, i := n.find(fmt.Sprint("e", id.Draw(rt, "id")))
				if e == nil {
					return
				}
				q.Remove(e.eval.ID)
				if e.token == "" {
					n.list = append(n.list[:i:i], n.list[i+1:]...)
				}
			},
			"tick": func(rt *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 70).Draw(rt, "seconds")) * time.Second)
				q.Tick(now)
				n.tick(now)
			},
			"": func(rt *rapid.T) {
				s := q.Stats()
				if sum := s.Ready + s.Behind + s.Delayed + s.InFlight; sum != len(n.list) || len(q.entries) != sum {
					rt.Fatalf("holds %d (%d entries), want %d", sum, len(q.entries), len(n.list))
				}
			},
		})
	})
}
