package heartbeat

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// Bounds of one raft entry: how many nodes come (back) to life in it, how many fall silent, and how many allocations these
// may have, unless one node alone has more. Each entry has an evaluation for each job that it concerns, and a large cluster
// runs a part of every job on a few nodes: few large entries cost far less than many small ones.
const (
	batchSize   = 256
	silentSize  = 1024
	silentAlloc = 20_000
)

// Many nodes that fall silent together do so within seconds, not at one moment, and are not to cost a raft entry each. A
// single one is written at once; what falls silent after it waits for others for gather, and gatherEach longer for each
// node that just did, gatherMost in all.
const (
	gather     = 200 * time.Millisecond
	gatherEach = 4 * time.Millisecond
	gatherMost = time.Second
)

// Raft is how the duty writes.
type Raft interface {
	Apply(ctx context.Context, kind fsm.Kind, req any) (resp any, index uint64, err error)
	VerifyLeader(ctx context.Context) error
}

// Config is what a Duty works with. Zero durations mean the public defaults.
type Config struct {
	Logger       hclog.Logger
	Store        *state.Store
	Raft         Raft
	MinTTL       time.Duration // shortest time between two heartbeats of a node; default 10 s
	MaxPerSecond float64       // heartbeats which the cluster's nodes send together; default 50
	Grace        time.Duration // allowed lateness; default 10 s
	FailoverTTL  time.Duration // what every node gets when a new leader begins; default 5 min
	NewID        func() string
	// Random gives a number in [0,n), by which nodes drift apart; default: by chance.
	Random func(n int64) int64
}

// Duty drives the timers on the leader.
type Duty struct {
	cfg  Config
	wake chan struct{}

	mu        sync.Mutex
	leading   bool
	timers    *Timers
	lastBeat  map[string]time.Time
	began     time.Time
	returning map[string]string // node -> the status it is to have
	pause     time.Time         // no timer is looked at before
	alarm     time.Time         // when Run looks by itself
	judged    map[string]bool   // nodes whose silence is being judged and written down
	round     chan struct{}     // closed at the end of the round under way
}

// New makes a duty that does nothing until Run.
func New(cfg Config) *Duty {
	orDefault := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	orDefault(&cfg.MinTTL, 10*time.Second)
	orDefault(&cfg.Grace, 10*time.Second)
	orDefault(&cfg.FailoverTTL, 5*time.Minute)
	if cfg.Random == nil {
		cfg.Random = rand.Int64N
	}
	if cfg.MaxPerSecond <= 0 {
		cfg.MaxPerSecond = 50
	}
	return &Duty{cfg: cfg, wake: make(chan struct{}, 1), timers: NewTimers(), round: make(chan struct{})}
}

// Beat renews a node's time and says when the next heartbeat is due. fresh says that the node has reported what its
// allocations do since it connected; only then is it given new ones. It fails with structs.ErrNoLeader on a follower
// and structs.ErrNodeNotFound for a node that must register first.
func (d *Duty) Beat(ctx context.Context, nodeID string, fresh bool) (time.Duration, error) {
	node := d.cfg.Store.Node(nil, nodeID)
	if node == nil {
		return 0, structs.ErrNodeNotFound
	}
	leased := d.leased(node)
	if leased {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.cfg.MinTTL)
		defer cancel()
		// What this answer confirms is that nobody gives the node's leased allocations away: only a leader can.
		if err := d.cfg.Raft.VerifyLeader(ctx); err != nil {
			return 0, structs.ErrNoLeader
		}
	}
	ttl, err := d.beat(ctx, nodeID, fresh)
	if err == nil && leased {
		err = d.settle(ctx, nodeID)
	}
	return ttl, err
}

// beat notes a heartbeat, after any judgement of the node that is being written: what that counts from must not change
// under it.
func (d *Duty) beat(ctx context.Context, nodeID string, fresh bool) (time.Duration, error) {
	if err := d.await(ctx, func() bool { return !d.judged[nodeID] }); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	node := d.cfg.Store.Node(nil, nodeID)
	if node == nil {
		return 0, structs.ErrNodeNotFound
	}
	now := time.Now()
	ttl := max(d.cfg.MinTTL, time.Duration(float64(d.timers.Len())/d.cfg.MaxPerSecond*float64(time.Second)))
	ttl += time.Duration(d.cfg.Random(int64(ttl)/5 + 1)) // nodes that came together drift apart
	d.lastBeat[nodeID] = now
	d.timers.Set(Key{NodeID: nodeID, Kind: Missed}, now.Add(ttl+d.cfg.Grace))
	switch {
	case fresh && node.Status != structs.NodeStatusReady:
		d.returning[nodeID] = structs.NodeStatusReady
	case !fresh && node.Down() && d.returning[nodeID] == "":
		d.returning[nodeID] = structs.NodeStatusInit
	}
	d.announce(node)
	// Most heartbeats only put off what Run waits for, and it need not know.
	if next, ok := d.timers.Next(); d.returning[nodeID] != "" || ok && next.Before(d.alarm) {
		d.signal()
	}
	return ttl, nil
}

// settle waits until the state says that a node with leases was heard: the next leader, and who reads the state alone,
// would else count from before that.
func (d *Duty) settle(ctx context.Context, nodeID string) error {
	err := d.await(ctx, func() bool {
		node := d.cfg.Store.Node(nil, nodeID)
		return node == nil || !node.Down()
	})
	if err != nil {
		return err
	}
	d.mu.Unlock()
	return nil
}

// await waits for a condition that a round of Run may make true, at most MinTTL, and returns with the lock held; not so with
// an error.
func (d *Duty) await(ctx context.Context, done func() bool) error {
	var late *time.Timer // set when the first look was not enough: most heartbeats need no timer
	for {
		d.mu.Lock()
		if !d.leading {
			d.mu.Unlock()
			return structs.ErrNoLeader
		}
		if done() {
			return nil
		}
		round := d.round
		d.mu.Unlock()
		if late == nil {
			late = time.NewTimer(d.cfg.MinTTL)
			defer late.Stop()
		}
		select {
		case <-round:
			continue
		case <-late.C:
		case <-ctx.Done():
		}
		return structs.Errorf(structs.CodeUnavailable, "the state of the node is still being written")
	}
}

// Forget drops a node's timers: it was deregistered.
func (d *Duty) Forget(nodeID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timers.Drop(Key{NodeID: nodeID, Kind: Missed})
	d.timers.Drop(Key{NodeID: nodeID, Kind: Tolerance})
	d.timers.Drop(Key{NodeID: nodeID, Kind: Announced})
	delete(d.lastBeat, nodeID)
	delete(d.returning, nodeID)
}

// Reconsider looks again at the maintenance which a node has in the state.
func (d *Duty) Reconsider(nodeID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if node := d.cfg.Store.Node(nil, nodeID); d.leading && node != nil {
		d.announce(node)
		d.signal()
	}
}

// announce sets the timer of a node's maintenance. It stays when the maintenance of a silent node was ended: what is away
// there is judged then, if the node is not heard before. The caller holds the lock.
func (d *Duty) announce(node *structs.Node) {
	key := Key{NodeID: node.ID, Kind: Announced}
	switch {
	case node.Maintenance != nil:
		d.timers.Set(key, node.Maintenance.Until)
	case !node.Down():
		d.timers.Drop(key)
	}
}

// Active is the number of nodes whose heartbeat is awaited.
func (d *Duty) Active() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for key := range d.timers.byKey {
		if key.Kind == Missed {
			n++
		}
	}
	return n
}

// leased says whether a node has live allocations that die with its contact.
func (d *Duty) leased(node *structs.Node) bool {
	for _, a := range d.cfg.Store.AllocsByNode(nil, node.ID) {
		if !a.ClientTerminal() && a.Group().FenceOn(node) > 0 {
			return true
		}
	}
	return false
}

// Run does the leader's duty until ctx ends. It calls ready once heartbeats are taken.
func (d *Duty) Run(ctx context.Context, ready func()) error {
	d.begin()
	defer d.end()
	ready()
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	for {
		more, next, err := d.turn(ctx)
		if err != nil {
			return err
		}
		if more {
			continue
		}
		alarm.Reset(time.Until(next))
		select {
		case <-alarm.C:
		case <-d.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// turn writes one batch of what is due; more says that there may be another.
func (d *Duty) turn(ctx context.Context) (more bool, next time.Time, err error) {
	due, next := d.work(time.Now())
	err = d.write(ctx, due)
	d.endRound()
	return due.size() > 0, next, err
}

// begin gives every node that is not down the failover TTL, or the time after which the first of its leased allocations
// has ended for sure; and it takes up the disconnections that are tolerated.
func (d *Duty) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pause = time.Time{}
	d.leading, d.timers, d.began = true, NewTimers(), time.Now()
	d.lastBeat, d.returning, d.judged = map[string]time.Time{}, map[string]string{}, map[string]bool{}
	snap := d.cfg.Store.Snapshot()
	for node := range snap.Nodes(nil) {
		d.announce(node)
		if !node.Down() {
			wait := d.cfg.FailoverTTL
			for _, a := range snap.AllocsByNode(nil, node.ID) {
				if fence := a.Group().FenceOn(node); fence > 0 && !a.ClientTerminal() {
					wait = min(wait, fence)
				}
			}
			d.timers.Set(Key{NodeID: node.ID, Kind: Missed}, d.began.Add(wait))
			continue
		}
		var until time.Time
		for _, a := range snap.AllocsByNode(nil, node.ID) {
			if overlooked(a) {
				until = d.began
				break
			}
			waits := a.Condition.Status == structs.ConditionUnknown ||
				a.Condition.Status == structs.ConditionAway && node.Maintenance == nil
			if !waits || a.ClientTerminal() {
				continue
			}
			at := a.Condition.Until
			if endless(a.Condition) {
				at = d.began.Add(lookAgain)
			}
			if until.IsZero() || at.Before(until) {
				until = at
			}
		}
		if !until.IsZero() {
			d.timers.Set(Key{NodeID: node.ID, Kind: Tolerance}, until)
		}
	}
}

func (d *Duty) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leading, d.timers = false, NewTimers()
	d.lastBeat, d.returning = map[string]time.Time{}, map[string]string{}
	close(d.round)
	d.round = make(chan struct{})
}

// endRound lets go on who waits for what was being written.
func (d *Duty) endRound() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.judged = map[string]bool{}
	close(d.round)
	d.round = make(chan struct{})
}

func (d *Duty) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// batch is what is due at one time, by node id.
type batch struct {
	missed, expired, announced []string
	returned                   map[string]string // the status it is to have
}

func (b *batch) size() int {
	return len(b.missed) + len(b.expired) + len(b.announced) + len(b.returned)
}

// work takes one batch of what is due.
func (d *Duty) work(now time.Time) (due batch, next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	due.returned = map[string]string{}
	var keys []Key
	if !now.Before(d.pause) {
		var full bool
		keys, full = d.takeDue(now)
		if n := len(keys); n > 0 && !full {
			d.pause = now.Add(min(gatherMost, gather+time.Duration(n)*gatherEach))
		}
	}
	for _, key := range keys {
		d.judged[key.NodeID] = true
		switch key.Kind {
		case Missed:
			due.missed = append(due.missed, key.NodeID)
		case Tolerance:
			due.expired = append(due.expired, key.NodeID)
		case Announced:
			due.announced = append(due.announced, key.NodeID)
		}
	}
	for id, status := range d.returning {
		if len(due.returned) == batchSize {
			break
		}
		due.returned[id] = status
		delete(d.returning, id)
	}
	next, ok := d.timers.Next()
	if !ok {
		next = now.Add(time.Hour)
	} else if next.Before(d.pause) {
		next = d.pause
	}
	d.alarm = next
	return due, next
}

// takeDue takes the timers that are due, as many as one entry has room for; full says that there may be more. The caller
// holds the lock.
func (d *Duty) takeDue(now time.Time) (keys []Key, full bool) {
	for allocs := 0; len(keys) < silentSize && allocs < silentAlloc; {
		next := d.timers.Due(now, 1)
		if len(next) == 0 {
			return keys, false
		}
		keys = append(keys, next...)
		allocs += len(d.cfg.Store.AllocsByNode(nil, next[0].NodeID))
	}
	return keys, true
}

// write decides and commits one batch. A write that fails while this server still leads is tried again.
func (d *Duty) write(ctx context.Context, due batch) error {
	now := time.Now()
	judge := Judge{NewID: d.cfg.NewID, Now: now}
	snap := d.cfg.Store.Snapshot()
	req := &fsm.NodeStatus{Now: now.UnixNano()}
	until := map[string]time.Time{}
	evaluated := map[structs.NamespacedID]bool{}
	take := func(o Outcome) {
		req.Updates = append(req.Updates, o.Update)
		for _, e := range o.Evals { // one evaluation of a job looks at all its nodes
			if id := (structs.NamespacedID{Namespace: e.Namespace, ID: e.JobID}); !evaluated[id] {
				evaluated[id] = true
				req.Evals = append(req.Evals, e)
			}
		}
		until[o.Update.NodeID] = o.Until
	}
	for _, id := range due.missed {
		if node := snap.Node(nil, id); node != nil && !node.Down() && !d.heardSince(id) {
			d.cfg.Logger.Warn("node missed its heartbeat", "node_id", id)
			judge := Judge{NewID: d.cfg.NewID, Now: now, Spare: d.spare(id)}
			take(judge.Missed(node, snap.AllocsByNode(nil, id), d.last(id)))
		}
	}
	for _, id := range due.announced {
		if node := snap.Node(nil, id); node != nil && node.Maintenance == nil {
			due.expired = append(due.expired, id) // it was ended otherwise, and nobody else looks at what is away
		}
	}
	for _, id := range due.expired {
		node := snap.Node(nil, id)
		if node == nil || !node.Down() || due.returned[id] != "" {
			continue
		}
		o := judge.Expired(node, snap.AllocsByNode(nil, id), d.last(id))
		if len(o.Update.Conditions) > 0 {
			take(o)
		} else {
			until[id] = o.Until
		}
	}
	var ready []*structs.Node
	for _, id := range due.announced {
		node := snap.Node(nil, id)
		if node == nil || node.Maintenance == nil || node.Maintenance.Covers(now) || due.returned[id] != "" {
			continue // it was ended or made longer, or is judged with the node's return
		}
		take(judge.Announced(node, snap.AllocsByNode(nil, id), d.last(id)))
		if node.Status == structs.NodeStatusReady {
			ready = append(ready, node)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(due.returned)) {
		status := due.returned[id]
		if node := snap.Node(nil, id); node != nil && node.Status != status {
			take(judge.Returned(node, snap.AllocsByNode(nil, id), status))
			if status == structs.NodeStatusReady {
				ready = append(ready, node)
			}
		}
	}
	if len(ready) > 0 {
		req.Evals = append(req.Evals, judge.Ready(snap.SystemJobs(ready...), req.Evals)...)
	}
	if len(req.Updates) > 0 {
		if _, _, err := d.cfg.Raft.Apply(ctx, fsm.KindNodeStatus, req); err != nil {
			if ctx.Err() != nil || errors.Is(err, structs.ErrNoLeader) {
				return err
			}
			d.cfg.Logger.Error("node statuses could not be written", "nodes", len(req.Updates), "error", err)
			d.retry(due)
			return nil
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, at := range until {
		if d.overlooks(id) {
			at = now
		}
		if at.IsZero() {
			d.timers.Drop(Key{NodeID: id, Kind: Tolerance})
		} else {
			d.timers.Set(Key{NodeID: id, Kind: Tolerance}, at)
		}
	}
	for id := range due.returned {
		if node := d.cfg.Store.Node(nil, id); node != nil {
			d.announce(node)
		}
	}
	for _, id := range due.missed {
		if d.cfg.Store.Node(nil, id) == nil {
			delete(d.lastBeat, id)
		}
	}
	return nil
}

// overlooks says that a node is silent by now, and that something was placed there before that was written.
func (d *Duty) overlooks(nodeID string) bool {
	node := d.cfg.Store.Node(nil, nodeID)
	return node != nil && node.Down() && slices.ContainsFunc(d.cfg.Store.AllocsByNode(nil, nodeID), overlooked)
}

// retry puts a batch back for a second later: the log refused it, and at once it would again.
func (d *Duty) retry(due batch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	again := time.Now().Add(time.Second)
	for _, id := range due.missed {
		if key := (Key{NodeID: id, Kind: Missed}); !d.timers.Has(key) {
			d.timers.Set(key, again)
		}
	}
	for _, id := range due.expired {
		d.timers.Set(Key{NodeID: id, Kind: Tolerance}, again)
	}
	for _, id := range due.announced {
		d.timers.Set(Key{NodeID: id, Kind: Announced}, again)
	}
	// A returned node asks again with its next heartbeat.
}

// heardSince says whether a heartbeat came after the timers were looked at: it has a new timer then.
func (d *Duty) heardSince(nodeID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.timers.Has(Key{NodeID: nodeID, Kind: Missed})
}

// spare is until when this leader waits for a node that it has not heard of yet; zero when it has, or does not wait.
func (d *Duty) spare(nodeID string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, heard := d.lastBeat[nodeID]; heard {
		return time.Time{}
	}
	return d.began.Add(d.cfg.FailoverTTL)
}

func (d *Duty) last(nodeID string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.lastBeat[nodeID]; !t.IsZero() {
		return t
	}
	return d.began
}
