package sim

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Stats is where the simulation stands.
type Stats struct {
	// Registered nodes have been accepted by the servers once; Ready ones have since reported what they hold on their
	// present session, and are ready in the servers' state.
	Registered int `json:"registered"`
	Ready      int `json:"ready"`
	// Known allocations are assigned to a node now; of them Running and Complete are as the servers acknowledged.
	Known    int `json:"known"`
	Running  int `json:"running"`
	Complete int `json:"complete"`
	// Heartbeats were answered; RPCErrs are messages that failed, but for those given up at the end.
	Heartbeats int `json:"heartbeats"`
	RPCErrs    int `json:"rpcerrs"`
	// RegDoneMS is the time from the start until all nodes were ready at once for the first time, in milliseconds; 0 until then.
	RegDoneMS int64 `json:"regdone_ms"`
}

// Figure gives one of the figures by its JSON name.
func (s Stats) Figure(name string) (int, error) {
	switch name {
	case "registered":
		return s.Registered, nil
	case "ready":
		return s.Ready, nil
	case "known":
		return s.Known, nil
	case "running":
		return s.Running, nil
	case "complete":
		return s.Complete, nil
	case "heartbeats":
		return s.Heartbeats, nil
	case "rpcerrs":
		return s.RPCErrs, nil
	case "regdone_ms":
		return int(s.RegDoneMS), nil
	}
	return 0, fmt.Errorf("no figure is called %q", name)
}

// tally is the shared Stats, with a signal for those who wait for a change.
type tally struct {
	nodes int       // that there will be
	began time.Time // of Run

	mu      sync.Mutex
	stats   Stats
	changed chan struct{} // nil: nobody waits
}

func (t *tally) change(f func(*Stats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.stats)
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// registered counts a node that has registered for the first time.
func (t *tally) registered() { t.change(func(st *Stats) { st.Registered++ }) }

// ready counts a node that has become ready, or with -1 one that is no more.
func (t *tally) ready(by int) {
	t.change(func(st *Stats) {
		if st.Ready += by; st.Ready == t.nodes && st.RegDoneMS == 0 {
			st.RegDoneMS = max(1, time.Since(t.began).Milliseconds())
		}
	})
}

// look gives the present figures and a channel that is closed once they change.
func (t *tally) look() (Stats, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.stats, t.changed
}

func (t *tally) await(ctx context.Context, done func(Stats) bool) (Stats, error) {
	for {
		stats, changed := t.look()
		if done(stats) {
			return stats, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return stats, fmt.Errorf("wait for simulated nodes: %w", context.Cause(ctx))
		}
	}
}
