package sim

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client/servers"
	"github.com/nomadlite/nomadlite/structs"
)

const (
	callLimit  = 30 * time.Second
	pollWait   = 5 * time.Minute
	minPause   = 50 * time.Millisecond
	maxPause   = 5 * time.Second
	firstDoubt = 500 * time.Millisecond
	batchLimit = 500
)

// node is one simulated node. Its loops are duty (register, heartbeat), follow (assignments) and report
// (observations), beside the connection's own.
type node struct {
	self  *structs.Node
	conn  *servers.Conn
	log   hclog.Logger
	tally *tally
	shelf *shelf

	introduce  chan struct{} // a new session, or the servers forgot the node
	report     chan struct{} // something is to be reported
	registered chan struct{} // closed once the servers know the node

	reporting sync.Mutex // keeps reports in order

	mu    sync.Mutex
	ready bool
	seen  bool // registered once

	doubt time.Duration // duty's: until it asks once more whether the node is ready
}

func newNode(s *Sim, i int) *node {
	n := &node{self: describe(&s.cfg, i, time.Now()), tally: &s.tally, introduce: make(chan struct{}, 1),
		report: make(chan struct{}, 1), registered: make(chan struct{})}
	n.log = s.cfg.Logger.With("node", n.self.Name)
	n.shelf = newShelf(&s.cfg, &s.tally, func() { signal(n.report) })
	n.conn = servers.New(servers.Config{
		Logger: n.log, Region: s.cfg.Region, NodeID: n.self.ID, SecretID: n.self.SecretID, Servers: s.cfg.Servers,
		Dial:           s.dial,
		OnConnected:    func(context.Context, string) { signal(n.introduce) },
		OnDisconnected: func(string, error) { n.setReady(false) },
	})
	return n
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run lives the node's life until ctx ends.
func (n *node) run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { _ = n.conn.Run(ctx) }) // ends with ctx
	loops.Go(func() { n.duty(ctx) })
	loops.Go(func() { n.follow(ctx) })
	loops.Go(func() { n.reports(ctx) })
	loops.Wait()
	n.shelf.close()
	n.setReady(false)
}

// duty introduces the node on each new session and keeps it alive.
func (n *node) duty(ctx context.Context) {
	due := time.NewTimer(0)
	due.Stop()
	defer due.Stop()
	pause := minPause
	known := false
	for {
		select {
		case <-n.introduce:
			known = false
		case <-due.C:
		case <-ctx.Done():
			return
		}
		var ttl time.Duration
		var err error
		if known {
			ttl, known, err = n.beat(ctx)
		}
		if err == nil && !known {
			ttl, err = n.register(ctx)
			known = err == nil
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			n.failed("duty", err)
			due.Reset(jitter(pause))
			pause = min(2*pause, maxPause)
		default:
			due.Reset(ttl*7/10 + jitter(ttl/5)) // as agents do
			pause = minPause
		}
	}
}

// register introduces the node, says all it knows, and becomes ready.
func (n *node) register(ctx context.Context) (ttl time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if _, err := n.conn.Register(ctx, n.self); err != nil {
		return 0, err
	}
	n.mu.Lock()
	first := !n.seen
	n.seen = true
	n.mu.Unlock()
	if first {
		n.tally.registered()
		close(n.registered)
	}
	n.shelf.again()
	if err := n.send(ctx); err != nil {
		return 0, err
	}
	ttl, known, err := n.beat(ctx)
	if err == nil && !known {
		signal(n.introduce)
	}
	return ttl, err
}

// beat is one heartbeat; known is false when the servers have forgotten the node.
func (n *node) beat(ctx context.Context) (ttl time.Duration, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	res, err := n.conn.Heartbeat(ctx, structs.NodeStatusReady, true)
	if err != nil {
		return 0, false, err
	}
	n.tally.change(func(st *Stats) { st.Heartbeats++ })
	ready := res.Known && (res.Status == structs.NodeStatusReady || res.Status == "") // empty: a server that does not tell
	n.setReady(ready)
	if ready || !res.Known {
		n.doubt = 0
		return res.TTL, res.Known, nil
	}
	// The servers have much to write. It will be ready in a moment, and is not counted before.
	n.doubt = min(max(firstDoubt, 2*n.doubt), res.TTL)
	return n.doubt, true, nil
}

// follow holds the long poll for assignments.
func (n *node) follow(ctx context.Context) {
	select {
	case <-n.registered:
	case <-ctx.Done():
		return
	}
	var assigned servers.Assigned
	pause := minPause
	for ctx.Err() == nil {
		res, err := n.conn.Assignments(ctx, assigned.Request(pollWait))
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			n.failed("assignments", err)
			if structs.ErrorCode(err) == structs.CodeNotFound {
				signal(n.introduce)
			}
			wait(ctx, jitter(pause))
			pause = min(2*pause, maxPause)
			continue
		}
		pause = minPause
		upsert, remove, ok := assigned.Apply(res)
		if !ok {
			n.log.Debug("assignments do not fit what the node holds", "applies_to", res.AppliesTo)
			continue
		}
		n.shelf.assign(upsert, remove)
	}
}

// reports sends observations as soon as there are some; what comes while a report is under way goes with the next.
func (n *node) reports(ctx context.Context) {
	select {
	case <-n.registered:
	case <-ctx.Done():
		return
	}
	pause := minPause
	for {
		select {
		case <-n.report:
		case <-ctx.Done():
			return
		}
		for {
			err := n.send(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			n.failed("report", err)
			wait(ctx, jitter(pause))
			pause = min(2*pause, maxPause)
		}
		pause = minPause
	}
}

// send reports all that is to be reported.
func (n *node) send(ctx context.Context) error {
	n.reporting.Lock()
	defer n.reporting.Unlock()
	for {
		list := n.shelf.pending(batchLimit)
		if len(list) == 0 {
			return nil
		}
		if err := n.conn.UpdateAllocs(ctx, list); err != nil {
			n.shelf.unsent(list)
			return err
		}
		n.shelf.sent(list)
	}
}

func (n *node) setReady(ready bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ready == ready {
		return
	}
	n.ready = ready
	if ready {
		n.tally.ready(1)
	} else {
		n.tally.ready(-1)
	}
}

func (n *node) failed(what string, err error) {
	n.tally.change(func(st *Stats) { st.RPCErrs++ })
	n.log.Debug("message to the servers failed", "message", what, "error", err)
}

// jitter is a random part of d, so that nodes do not move in step.
func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d/4)+1))
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// dial opens a connection; only so many at once, since a listener's queue that runs over costs a second of waiting.
func (s *Sim) dial(ctx context.Context, addr string) (net.Conn, error) {
	select {
	case s.dialing <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.dialing }()
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}
