package client

import (
	"context"
	"slices"
	"testing"
	"time"
)

// TestExpectBack: the announcement is the node's last word, what runs runs on, and the next agent takes it over.
func TestExpectBack(t *testing.T) {
	a := newAgent(t)
	a.cfg.ExpectBack = 20 * time.Minute
	a.start()
	a.servers.assign("a1", jobOf("j", "service", mockTask(map[string]any{"run_for": "1h"})), nil)
	a.servers.untilStatus("a1", "running")
	a.client.ExpectBack(context.Background())
	nudge(a.client.wakeDuty)
	a.end()
	if !slices.Equal(a.servers.away, []time.Duration{20 * time.Minute}) {
		t.Errorf("announced %v", a.servers.away)
	}
	if n := len(a.servers.beats); n != a.servers.beatsThen {
		t.Errorf("%d heartbeats came after the last word", n-a.servers.beatsThen)
	}
	registered := len(a.servers.nodes)
	a.start()
	a.servers.until("its return", func() bool { return len(a.servers.nodes) > registered })
	a.servers.untilStatus("a1", "running")
}

// TestExpectBackOfSilentServers does not keep an agent from ending.
func TestExpectBackOfSilentServers(t *testing.T) {
	a := newAgent(t)
	a.cfg.ExpectBack = time.Minute
	a.servers.mute = true
	a.start()
	a.servers.until("a heartbeat", func() bool { return len(a.servers.beats) > 0 })
	a.servers.until("its answer", func() bool { return a.client.registered.isOpen() || len(a.servers.beats) > 1 })
	took := make(chan time.Duration, 1)
	go func() {
		began := time.Now()
		a.client.ExpectBack(context.Background())
		took <- time.Since(began)
	}()
	select {
	case d := <-took:
		if d < awayLimit {
			t.Errorf("it gave up after %s, or told nobody", d)
		}
	case <-time.After(10 * awayLimit):
		t.Fatal("an agent that ends waits for servers which do not answer")
	}
	a.servers.mute = false
}
