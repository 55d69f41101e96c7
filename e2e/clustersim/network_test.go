package clustersim

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/client/lease"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

const (
	callLimit = 30 * time.Second // an agent gives a call up
	sessionUp = 8 * time.Second  // it takes so long to see that a session is dead
)

// delay is how long a message is under way.
func (s *sim) delay() time.Duration {
	if !s.faulty {
		return s.between(time.Millisecond, 20*time.Millisecond)
	}
	switch p := s.rng.Float64(); {
	case p < 0.8:
		return s.between(time.Millisecond, 100*time.Millisecond)
	case p < 0.97:
		return s.between(0, 3*time.Second)
	default:
		return s.between(0, 45*time.Second)
	}
}

// inOrder delivers a message of a session after those before it, as a connection does. latest is when the last one comes.
// Answers of an earlier session are dropped with it; its requests may still lie in the servers' sockets.
func (s *sim) inOrder(latest *time.Time, do func()) {
	at := time.Now().Add(s.delay())
	if at.Before(*latest) {
		at = *latest
	}
	*latest = at
	s.after(time.Until(at), do)
}

// rpc is one call of an agent. serve runs on the servers, maybe late, twice or never; done runs on the agent, once,
// unless it was killed meanwhile. park leaves the answer to serve.
func (a *agent) rpc(limit time.Duration, serve func(answer func(any, error)), done func(any, error)) {
	s, n := a.s, a.n
	a.calls++
	number := a.calls
	finish := func(v any, err error) {
		if a.failCalls[number] == nil || n.agent != a {
			return
		}
		delete(a.failCalls, number)
		done(v, err)
		a.dirty = true
	}
	lost := func() { finish(nil, errors.New("the session is dead")) }
	a.failCalls[number] = lost
	s.after(limit, lost)
	if n.cut {
		s.after(sessionUp, lost)
		return
	}
	broken := func() { // a message is lost only with its session
		s.after(sessionUp, func() {
			if n.agent == a && a.failCalls[number] != nil {
				n.reconnect()
			}
		})
	}
	answer := func(v any, err error) {
		if s.faulty && s.chance(0.01) {
			broken()
			return
		}
		s.inOrder(&a.down, func() {
			if !n.cut {
				finish(v, err)
			}
		})
	}
	if s.faulty && s.chance(0.01) {
		broken()
		return
	}
	arrive := func() {
		if !n.cut {
			serve(answer)
		}
	}
	s.inOrder(&a.up, arrive)
	if s.faulty && s.chance(0.02) {
		s.after(s.delay()+s.delay(), arrive) // and once more
	}
}

// disturb lets the next event happen before its time, in the middle of something else.
func (s *sim) disturb() {
	for _, n := range s.nodes {
		if a := n.agent; a != nil && !n.cut && len(a.toReport) > 0 && !a.reporting {
			a.reportNow()
			return
		}
	}
}

var errNoLeader = structs.ErrNoLeader

// connected begins a session: everything is reported anew.
func (a *agent) connected() {
	a.session++
	a.up, a.down = time.Time{}, time.Time{}
	for id, h := range a.held {
		h.reported = nil
		a.toReport[id] = true
	}
	a.dirty = true
	a.wakeBeat()
	a.poll()
}

// reconnect comes when the session was seen to be dead.
func (n *node) reconnect() {
	a := n.agent
	if a == nil {
		return
	}
	numbers := make([]uint64, 0, len(a.failCalls))
	for number := range a.failCalls {
		numbers = append(numbers, number)
	}
	for len(numbers) > 0 { // in their order
		least := 0
		for i := range numbers {
			if numbers[i] < numbers[least] {
				least = i
			}
		}
		if f := a.failCalls[numbers[least]]; f != nil {
			f()
		}
		numbers = append(numbers[:least], numbers[least+1:]...)
	}
	a.connected()
}

// wakeBeat sends a heartbeat now, or after the one that is under way.
func (a *agent) wakeBeat() {
	if a.n.agent != a {
		return
	}
	if a.beating {
		a.beatAgain = true
		return
	}
	a.beatNumber++
	a.beat()
}

func (a *agent) beatIn(d time.Duration) {
	a.beatNumber++
	number := a.beatNumber
	a.s.after(d, func() {
		if a.n.agent == a && a.beatNumber == number && !a.beating {
			a.beat()
		}
	})
}

type beatAnswer struct {
	ttl   time.Duration
	known bool
}

// beat registers if need be, and sends one heartbeat.
func (a *agent) beat() {
	s, n := a.s, a.n
	a.beating = true
	sent, boot := n.clock().Boot()
	register, fresh := !a.known, a.isFresh()
	a.rpc(callLimit, func(answer func(any, error)) {
		l := s.leader
		if l == nil {
			answer(nil, errNoLeader)
			return
		}
		if register && s.store.Node(nil, n.id) == nil {
			req := &fsm.NodeRegister{Node: n.describe(), Now: time.Now().UnixNano()}
			if _, _, err := s.log.Apply(l.ctx, fsm.KindNodeRegister, req); err != nil {
				answer(nil, err)
				return
			}
			s.notice()
		}
		if s.store.Node(nil, n.id) == nil {
			answer(beatAnswer{}, nil)
			return
		}
		ttl, err := l.beat(n.id, fresh && !register)
		answer(beatAnswer{ttl: ttl, known: true}, err)
	}, func(v any, err error) {
		a.beating = false
		if err != nil {
			a.beatIn(s.between(200*time.Millisecond, 2*time.Second))
			return
		}
		res := v.(beatAnswer)
		a.known = res.known
		if !res.known {
			a.beat()
			return
		}
		if register { // what answers a registration confirms no heartbeat
			a.beat()
			return
		}
		a.confirmed(lease.Moment{BootID: boot, Sent: sent, Lease: n.lease, MaxKill: maxKillTimeout})
		if !a.registered {
			a.registered = true
			a.report()
			a.poll()
		}
		if a.beatAgain {
			a.beatAgain = false
			a.beat()
			return
		}
		every := res.ttl*4/10 + s.between(0, res.ttl/20+1)
		if pace := a.leases.Pace(); pace > 0 {
			every = min(every, pace)
		}
		a.beatIn(every)
	})
}

func (a *agent) confirmed(m lease.Moment) {
	a.fence(a.leases.Confirm(m))
	d := a.n.disk
	d.write(func() { d.lease = m })
	a.renew()
	a.dirty = true
}

func (a *agent) isFresh() bool {
	if len(a.held) == 0 {
		a.fresh = a.session
	}
	return a.fresh == a.session && a.session > 0
}

// report sends what changed.
func (a *agent) report() {
	if a.reporting || !a.registered || time.Now().Before(a.reportAfter) {
		return
	}
	if len(a.toReport) == 0 && a.fresh == a.session {
		return
	}
	a.reportNow()
}

func (a *agent) reportNow() {
	s, n := a.s, a.n
	var batch []*structs.AllocObservation
	for _, id := range sortedKeys(a.toReport) {
		h := a.held[id]
		if h == nil {
			continue
		}
		if o := a.observation(h); o != nil && !sameObservation(o, h.reported) {
			batch = append(batch, o)
		}
	}
	a.toReport = map[string]bool{}
	session := a.session
	if len(batch) == 0 {
		a.acknowledge(nil, session)
		return
	}
	a.reporting = true
	wire := slices.Clone(batch) // what it says is copied into the log, and never changed here
	a.rpc(callLimit, func(answer func(any, error)) {
		l := s.leader
		switch {
		case l == nil:
			answer(nil, errNoLeader)
			return
		case s.store.Node(nil, n.id) == nil:
			answer(nil, structs.ErrNodeNotFound)
			return
		}
		for _, o := range wire {
			s.tracef("%s reports %s %s", n.id, o.AllocID, o.ObservedStatus)
		}
		var err error
		if req := l.nodes.Observe(n.id, wire, time.Now()); req != nil {
			_, _, err = s.log.Apply(l.ctx, fsm.KindAllocObserve, req)
			s.notice()
		}
		answer(nil, err)
	}, func(_ any, err error) {
		a.reporting = false
		if err == nil {
			a.acknowledge(batch, session)
			return
		}
		for _, o := range batch {
			a.toReport[o.AllocID] = true
		}
		wait := s.between(200*time.Millisecond, 2*time.Second)
		a.reportAfter = time.Now().Add(wait)
		s.after(wait, func() { a.dirty = true })
		a.wakeBeat()
	})
}

func (a *agent) acknowledge(batch []*structs.AllocObservation, session uint64) {
	became := a.session == session && a.fresh != session
	for _, o := range batch {
		if h := a.held[o.AllocID]; h != nil && a.session == session {
			h.reported = o
		}
	}
	if became {
		a.fresh = session
		a.wakeBeat()
	}
}

// parkedPoll is a poll that has no answer yet.
type parkedPoll struct {
	req    structs.AssignmentsRequest
	answer func(any, error)
	life   int    // of the agent
	number uint64 // of its call
}

// poll asks for what the node should run; the servers answer when there is news.
func (a *agent) poll() {
	if a.polling || !a.registered || a.n.agent != a {
		return
	}
	a.polling = true
	s, n := a.s, a.n
	req := a.assigned.Request(5 * time.Minute)
	req.NodeID = n.id
	number := a.calls + 1
	a.rpc(6*time.Minute, func(answer func(any, error)) {
		if s.leader == nil || s.store.Node(nil, n.id) == nil {
			answer(nil, errNoLeader)
			return
		}
		if res, news := s.leader.nodes.Answer(&req); news {
			answer(again(res), nil)
			return
		}
		if p := s.parked[n.id]; p != nil && (p.life > a.life || p.life == a.life && p.number > number) {
			return // a call that came once more and late takes no other's place: nobody waits for its answer
		}
		s.parked[n.id] = &parkedPoll{req: req, answer: answer, life: a.life, number: number}
	}, func(v any, err error) {
		a.polling = false
		if err != nil {
			s.after(s.between(200*time.Millisecond, 2*time.Second), a.poll)
			return
		}
		upsert, remove, ok := a.assigned.Apply(v.(*structs.AssignmentsResponse))
		if ok {
			a.take(upsert, remove)
			a.sync()
		}
		a.poll()
	})
}

// answerParked answers a node's parked poll when there is news for it.
func (s *sim) answerParked(nodeID string) {
	p := s.parked[cmp.Or(nodeID, "")]
	if p == nil || s.leader == nil {
		return
	}
	if res, news := s.leader.nodes.Answer(&p.req); news {
		delete(s.parked, nodeID)
		p.answer(again(res), nil)
	}
}
