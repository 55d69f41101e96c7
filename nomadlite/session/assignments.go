package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/internal/codec"
	wire "github.com/nomadlite/nomadlite/internal/session"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// Bounds of how long a poll waits when nothing changes.
const (
	defaultPollWait = 5 * time.Minute
	maxPollWait     = 10 * time.Minute
)

// Assignments answers the nodes' long polls for what they should run. A poll that has nothing to say is parked; the
// change feed of the state wakes exactly those of the nodes concerned.
type Assignments struct {
	store *state.Store
	log   hclog.Logger
	// verify makes sure that this server's state is the newest before a complete set is sent, since a node stops what
	// is not in it.
	verify func(context.Context) error

	encoder encoder

	mu       sync.Mutex
	polls    map[string]*poll // by node
	removals removals
	closed   bool
	answers  sync.WaitGroup
}

// poll is one parked request.
type poll struct {
	req    structs.AssignmentsRequest
	parked *wire.Parked
	timer  *time.Timer
}

// NewAssignments makes the hub. verify is asked before a complete set is sent: it fails unless this server leads. Run
// feeds the hub; until then polls are answered at once or when their wait ends.
func NewAssignments(store *state.Store, verify func(context.Context) error, log hclog.Logger) *Assignments {
	if log == nil {
		log = hclog.NewNullLogger()
	}
	return &Assignments{store: store, verify: verify, log: log.Named("assignments"), polls: map[string]*poll{}}
}

// Run follows the change feed until ctx ends, then gives all parked polls up and waits for the answers under way.
func (a *Assignments) Run(ctx context.Context) error {
	sub := a.store.Subscribe(4096)
	defer sub.Close()
	defer a.close()
	a.reread()
	for {
		change, err := sub.Next(ctx)
		switch {
		case errors.Is(err, structs.ErrLagged):
			a.reread()
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		default:
			a.apply(change)
		}
	}
}

// Waiting is the number of parked polls.
func (a *Assignments) Waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.polls)
}

// apply wakes the polls of the nodes which a change concerns.
func (a *Assignments) apply(change state.Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, item := range change.Items {
		if item.Table != state.TableAllocs {
			continue
		}
		before, _ := item.Before.(*structs.Allocation)
		after, _ := item.After.(*structs.Allocation)
		switch {
		case after == nil && before != nil:
			a.removals.add(before.NodeID, removal{index: change.Index, created: before.CreateIndex, id: before.ID})
			a.wake(before.NodeID)
		case after != nil && (before == nil || before.AllocModifyIndex != after.AllocModifyIndex):
			a.wake(after.NodeID)
		}
	}
}

// reread looks at every parked poll again, since changes were missed.
func (a *Assignments) reread() {
	a.mu.Lock()
	defer a.mu.Unlock()
	snap, epoch := a.look()
	a.removals.reset()
	for nodeID, p := range a.polls {
		if _, news := a.delta(snap, epoch, &p.req); news {
			a.wake(nodeID)
		}
	}
}

// look gives the newest state and the history that its indexes belong to, in this cluster.
func (a *Assignments) look() (*state.Snapshot, string) {
	for {
		epoch := a.store.Epoch()
		snap := a.store.Snapshot()
		if a.store.Epoch() == epoch { // no snapshot was restored between the two
			return snap, snap.ClusterID(nil) + ":" + epoch
		}
	}
}

// wake answers a node's parked poll, if there is one. The lock is held.
func (a *Assignments) wake(nodeID string) {
	p := a.polls[nodeID]
	if p == nil {
		return
	}
	delete(a.polls, nodeID)
	p.timer.Stop()
	a.answers.Add(1)
	go func() {
		defer a.answers.Done()
		a.finish(p)
	}()
}

// finish computes and sends the answer of a poll that was taken off the table.
func (a *Assignments) finish(p *poll) {
	res, err := a.answer(context.Background(), &p.req)
	if err == nil {
		var body []byte
		if body, err = a.encoder.encode(res); err == nil {
			p.parked.Header().Set("Content-Type", codec.ContentType)
			err = p.parked.Finish(http.StatusOK, body)
		}
	}
	if err != nil {
		// The node asks again.
		a.log.Debug("could not answer a node's poll", "node_id", p.req.NodeID, "error", err)
		p.parked.Drop()
	}
}

func (a *Assignments) close() {
	a.mu.Lock()
	a.closed = true
	polls := a.polls
	a.polls = map[string]*poll{}
	a.mu.Unlock()
	for _, p := range polls {
		p.timer.Stop()
		p.parked.Drop()
	}
	a.answers.Wait()
}

// answer is what a request gets when it is answered now.
func (a *Assignments) answer(ctx context.Context, req *structs.AssignmentsRequest) (*structs.AssignmentsResponse, error) {
	res := a.compute(req)
	if !res.Complete || a.verify == nil {
		return res, nil
	}
	if err := a.verify(ctx); err != nil {
		a.log.Debug("cannot tell a node its complete set", "node_id", req.NodeID, "error", err)
		return nil, structs.ErrNoLeader
	}
	return a.compute(req), nil // the state may have caught up meanwhile
}

func (a *Assignments) compute(req *structs.AssignmentsRequest) *structs.AssignmentsResponse {
	a.mu.Lock()
	defer a.mu.Unlock()
	snap, epoch := a.look()
	res, _ := a.delta(snap, epoch, req)
	return res
}

// serve answers a poll, at once when there is news for the node, else when some comes or its wait ends. The caller
// has checked the node's secret.
func (a *Assignments) serve(ctx context.Context, w http.ResponseWriter, req structs.AssignmentsRequest) error {
	if req.Wait <= 0 {
		req.Wait = defaultPollWait
	}
	req.Wait = min(req.Wait, maxPollWait)
	a.mu.Lock()
	snap, epoch := a.look()
	_, news := a.delta(snap, epoch, &req)
	if !news && !a.closed && a.park(w, req) {
		a.mu.Unlock()
		return nil
	}
	a.mu.Unlock()
	res, err := a.answer(ctx, &req)
	if err != nil {
		return err
	}
	body, err := a.encoder.encode(res)
	if err != nil {
		return fmt.Errorf("encode assignments: %w", err)
	}
	w.Header().Set("Content-Type", codec.ContentType)
	_, _ = w.Write(body) // a sender that has gone needs no answer
	return nil
}

// park puts a request on the table in place of the node's earlier one. The lock is held, so that no change comes
// between the look at the state and this.
func (a *Assignments) park(w http.ResponseWriter, req structs.AssignmentsRequest) bool {
	p := &poll{req: req}
	parked, ok := wire.Park(w, func() { a.forget(p) })
	if !ok {
		return false
	}
	p.parked = parked
	if old := a.polls[req.NodeID]; old != nil {
		old.timer.Stop()
		a.answers.Add(1)
		go func() {
			defer a.answers.Done()
			old.parked.Drop() // the node has given it up
		}()
	}
	p.timer = time.AfterFunc(req.Wait, func() {
		a.mu.Lock()
		mine := a.polls[req.NodeID] == p
		if mine {
			a.wake(req.NodeID)
		}
		a.mu.Unlock()
	})
	a.polls[req.NodeID] = p
	return true
}

// forget drops a poll whose session has ended.
func (a *Assignments) forget(p *poll) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.polls[p.req.NodeID] == p {
		delete(a.polls, p.req.NodeID)
		p.timer.Stop()
	}
}
