package clustersim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/broker"
	"github.com/nomadlite/nomadlite/nomadlite/deploy"
	"github.com/nomadlite/nomadlite/nomadlite/drain"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/heartbeat"
	"github.com/nomadlite/nomadlite/nomadlite/plan"
	"github.com/nomadlite/nomadlite/nomadlite/session"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/nomadlite/worker"
	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/structs"
)

// What every node gets when a new leader begins, shorter than by default so that it matters in a run.
const failoverTTL = 40 * time.Second

var schedulerTypes = []string{structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch}

// leader is the duties of one term.
type leader struct {
	s      *sim
	ctx    context.Context
	cancel context.CancelFunc

	evals  broker.Hand
	beats  heartbeat.Hand
	drains drain.Hand
	deploy deploy.Hand
	nodes  session.Hand
	plans  *plan.Queue
	pool   *worker.Pool
	over   chan struct{} // the applier has ended

	// Each duty follows the feed at its own pace.
	brokerFeed, drainFeed, deployFeed follower
	beatsDue                          time.Time
	beatsWake, workerWake             bool
	beatsHeld                         time.Time // until then what is judged of nodes is on its way to the log
	ended                             bool
	elected                           time.Time
}

// follower is a queue of changes and a time.
type follower struct {
	from  uint64
	queue []state.Change
	due   time.Time
	wake  bool
}

func (f *follower) hear(change state.Change) {
	if change.Index > f.from {
		f.queue = append(f.queue, change)
	}
}

func (f *follower) ready() bool {
	return f.wake || len(f.queue) > 0 || !f.due.IsZero() && !f.due.After(time.Now())
}

func (f *follower) take() []state.Change {
	queue := f.queue
	f.queue, f.wake = nil, false
	return queue
}

// elect begins a term: all duties read the state anew.
func (s *sim) elect() {
	s.log.SetLeader(true)
	s.notice()
	if s.faulty && s.chance(0.1) {
		s.restore()
	}
	l := &leader{s: s, plans: plan.NewQueue(), over: make(chan struct{}), elected: time.Now()}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	log := hclog.NewNullLogger()
	random := func(n int64) int64 { return s.rng.Int64N(n) }
	evals := broker.New(broker.Config{Random: random}, log, s.newID)
	l.evals = broker.Hand{Broker: evals, Store: s.store, Raft: s.log}
	l.beats = heartbeat.Hand{Duty: heartbeat.New(heartbeat.Config{Logger: log, Store: s.store, Raft: s.log, NewID: s.newID,
		Random: random, FailoverTTL: failoverTTL})}
	l.drains = drain.Hand{Duty: drain.New(drain.Config{Logger: log, Store: s.store, Raft: s.log, NewID: s.newID})}
	l.deploy = deploy.Hand{Duty: deploy.New(deploy.Config{Logger: log, Store: s.store, Raft: s.log, NewID: s.newID})}
	l.nodes = session.Hand{Assignments: session.NewAssignments(s.store, nil, nil), Store: s.store, NewID: s.newID}
	l.pool = worker.New(worker.Config{Logger: log, Store: s.store, Broker: (*delivery)(l), Leader: (*delivery)(l),
		Factory: scheduler.New, NewID: s.newID})
	applier := plan.NewApplier(plan.Config{Logger: log, Queue: l.plans, Raft: s.log,
		Snapshot: func() plan.State { return s.store.Snapshot().Scheduler() }, Token: evals.Token,
		Alloc: func(id string) *structs.Allocation { return s.store.Alloc(nil, id) }, NewID: s.newID, Now: time.Now})
	begun := make(chan struct{})
	go func() {
		defer close(l.over)
		_ = applier.Run(l.ctx, func() { close(begun) })
	}()
	<-begun
	synctest.Wait()
	l.brokerFeed = follower{from: l.evals.Begin(), wake: true}
	l.drainFeed = follower{from: l.drains.Begin(), wake: true}
	l.deployFeed = follower{from: l.deploy.Begin(), wake: true}
	l.beats.Begin()
	l.beatsWake, l.workerWake = true, true
	l.nodes.Reread()
	s.leader = l
	s.tracef("a leader is elected")
	for _, n := range s.nodes {
		s.answerParked(n.id)
	}
}

// restore puts a snapshot in the place of the state, as on a server that was too far behind: a new history for nodes.
func (s *sim) restore() {
	s.tracef("the next leader has its state from a snapshot")
	var snapshot bytes.Buffer
	err := s.store.Snapshot().Persist(&snapshot)
	if err == nil {
		err = s.store.Restore(&snapshot)
	}
	if err != nil {
		s.breaks("snapshot", "%v", err)
	}
	s.notice()
}

// depose ends the term.
func (l *leader) depose() {
	l.s.tracef("the leader is gone")
	l.s.log.SetLeader(false)
	l.ended = true
	l.cancel()
	<-l.over
	synctest.Wait()
	l.evals.End()
	l.beats.End()
	if l.s.leader == l {
		l.s.leader = nil
	}
}

func (l *leader) hear(change state.Change) {
	l.brokerFeed.hear(change)
	l.drainFeed.hear(change)
	l.deployFeed.hear(change)
	l.nodes.Follow(change)
}

func (l *leader) next() time.Time {
	var next time.Time
	beats := l.beatsDue
	if held := l.beatsHeld; held.After(time.Now()) && (l.beatsWake || held.After(beats)) {
		beats = held
	}
	for _, t := range []time.Time{l.brokerFeed.due, l.drainFeed.due, l.deployFeed.due, beats} {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	return next
}

// ready adds what the duties have to do now.
func (l *leader) ready(out []func()) []func() {
	if l.brokerFeed.ready() {
		out = append(out, l.handOut)
	}
	if l.drainFeed.ready() {
		out = append(out, l.drainNodes)
	}
	if l.deployFeed.ready() {
		out = append(out, l.rollOut)
	}
	due := l.beatsWake || !l.beatsDue.IsZero() && !l.beatsDue.After(time.Now())
	if due && !l.beatsHeld.After(time.Now()) {
		out = append(out, l.judgeNodes)
	}
	if l.workerWake {
		out = append(out, l.schedule)
	}
	return out
}

func (l *leader) must(err error) {
	if err != nil && !errors.Is(err, structs.ErrNoLeader) && l.ctx.Err() == nil {
		l.s.breaks("duty", "a duty ended: %v", err)
	}
}

func (l *leader) handOut() {
	for _, change := range l.brokerFeed.take() {
		l.evals.Follow(change)
	}
	next, ok := l.evals.Work(l.ctx)
	l.brokerFeed.due = time.Time{}
	if ok {
		l.brokerFeed.due = next
	}
	l.workerWake = true
}

func (l *leader) drainNodes() {
	for _, change := range l.drainFeed.take() {
		l.drains.Follow(change)
	}
	more, next, err := l.drains.Work(l.ctx)
	l.must(err)
	l.drainFeed.wake, l.drainFeed.due = more, next
}

func (l *leader) rollOut() {
	for _, change := range l.deployFeed.take() {
		l.deploy.Follow(change)
	}
	more, next, err := l.deploy.Work(l.ctx)
	l.must(err)
	l.deployFeed.wake, l.deployFeed.due = more, next
}

func (l *leader) judgeNodes() {
	l.beatsWake = false
	next, err := l.beats.Work(l.ctx)
	l.must(err)
	l.beatsDue = next
}

// beat answers a heartbeat.
func (l *leader) beat(nodeID string, fresh bool) (time.Duration, error) {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	type answer struct {
		ttl time.Duration
		err error
	}
	result := make(chan answer, 1)
	go func() {
		ttl, err := l.beats.Duty.Beat(ctx, nodeID, fresh)
		result <- answer{ttl, err}
	}()
	for range 3 {
		synctest.Wait()
		select {
		case a := <-result:
			l.beatsWake = true
			return a.ttl, a.err
		default:
		}
		l.judgeNodes()
	}
	cancel()
	synctest.Wait()
	return 0, errors.New("the leader did not answer")
}

// schedule lets a worker process one evaluation.
func (l *leader) schedule() {
	s := l.s
	eval, token := l.evals.Take(schedulerTypes)
	if eval == nil {
		l.workerWake = false
		return
	}
	s.tracef("evaluation %s of %s (%s)", eval.ID, eval.JobID, eval.TriggeredBy)
	disturbance := s.watch.disturbance
	l.pool.Deliver(l.ctx, worker.Delivery{Eval: eval, Token: token, Index: eval.ModifyIndex})
	l.brokerFeed.wake = true
	s.notice()
	if !l.ended {
		s.again(eval, disturbance)
	}
}

// delivery is the leader as its worker sees it. While a worker plans, other things happen.
type delivery leader

func (d *delivery) Dequeue(context.Context, []string) (worker.Delivery, error) {
	return worker.Delivery{}, structs.ErrNoLeader // deliveries are taken by hand
}

func (d *delivery) Ack(_ context.Context, evalID, token string) error {
	if d.ended {
		return structs.ErrNoLeader
	}
	return d.evals.Broker.Ack(evalID, token)
}

func (d *delivery) Nack(_ context.Context, evalID, token string) error {
	if d.ended {
		return structs.ErrNoLeader
	}
	d.s.tracef("evaluation %s is given back", evalID)
	return d.evals.Broker.Nack(evalID, token)
}

func (d *delivery) Renew(_ context.Context, evalID, token string) error { return nil }

// SubmitPlan hands a plan to the applier. By chance the leader is gone before, or before the worker hears of it.
func (d *delivery) SubmitPlan(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
	s, l := d.s, (*leader)(d)
	if s.faulty && s.chance(0.02) {
		s.nextLeader(l, "before a plan")
		return nil, structs.ErrNoLeader
	}
	if s.faulty && s.chance(0.1) && len(s.events) > 0 {
		// Something else comes first, such as a report of a node.
		s.watch.disturbance++
		s.disturb()
	}
	if nodes := sortedKeys(p.Places); s.later(0.02) && len(nodes) > 0 && registered(s.byID[nodes[0]]) {
		s.tracef("the plan of %s is late", p.EvalID)
		s.purgeNode(s.byID[nodes[0]])
	}
	synctest.Wait()
	s.notice()
	s.tracef("%s", planText(p))
	result, err := d.plans.Submit(ctx, p)
	synctest.Wait()
	s.notice()
	if err == nil && s.faulty && s.chance(0.02) {
		s.nextLeader(l, "after a plan")
		return nil, structs.ErrNoLeader
	}
	return result, err
}

func (d *delivery) UpdateEvals(ctx context.Context, evalID, token string, evals []*structs.Evaluation) (uint64, error) {
	if current := d.evals.Broker.Token(evalID); d.ended || current == "" || current != token {
		return 0, fmt.Errorf("update evaluations: %w", structs.ErrStaleToken)
	}
	_, index, err := d.s.log.Apply(ctx, fsm.KindEvalUpdate, &fsm.EvalUpdate{Evals: evals, Now: time.Now().UnixNano()})
	return index, err
}

// nextLeader ends a term in the middle of something; another begins a little later.
func (s *sim) nextLeader(l *leader, when string) {
	if l.ended {
		return
	}
	s.tracef("the leader changes %s", when)
	s.watch.disturbance++
	l.depose()
	s.after(s.between(100*time.Millisecond, 6*time.Second), s.elect)
}

func planText(p *structs.Plan) string {
	text := "plan of " + p.EvalID + ":"
	for _, node := range sortedKeys(p.Stops) {
		for _, st := range p.Stops[node] {
			text += fmt.Sprintf(" stop %s (%s) %s", st.ID, node, st.DesiredDescription)
			if st.Condition != nil {
				text += " " + st.Condition.Status
			}
			if st.NoShutdownDelay {
				text += " at once"
			}
			text += ";"
		}
	}
	for _, node := range sortedKeys(p.Places) {
		for _, a := range p.Places[node] {
			text += fmt.Sprintf(" place %s %s on %s after %q;", a.ID, a.Name, node, a.PreviousAllocation)
		}
	}
	return text
}
