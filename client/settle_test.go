package client

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/drivers/mock"
	"github.com/nomadlite/nomadlite/structs"
)

// pondering is a driver that takes its time to tell what became of a task.
type pondering struct {
	driver.Driver
	asked  chan struct{}
	answer chan error
	ended  chan struct{} // when not nil: what was taken over has ended, as is told once this is closed
}

func (p *pondering) Inspect(ctx context.Context, id string) (*driver.TaskStatus, error) {
	if p.ended != nil {
		return &driver.TaskStatus{ID: id}, nil
	}
	return p.Driver.Inspect(ctx, id)
}

func (p *pondering) Wait(ctx context.Context, id string) (*driver.ExitResult, error) {
	if p.ended == nil {
		return p.Driver.Wait(ctx, id)
	}
	select {
	case <-p.ended:
		return &driver.ExitResult{ExitCode: 1, Known: true, At: time.Now()}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pondering) Recover(ctx context.Context, h *driver.Handle) error {
	select {
	case p.asked <- struct{}{}:
	default:
	}
	select {
	case err := <-p.answer:
		if err == nil {
			err = p.Driver.Recover(ctx, h)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// afterRestart gives an agent whose driver ponders over the one task that an earlier agent left, and what the servers
// knew of that task at the first fresh heartbeat.
func afterRestart(t *testing.T, limit time.Duration, ended chan struct{}) (*agent, *pondering, <-chan string) {
	t.Helper()
	a := newAgent(t).start()
	job := jobOf("j", "service", mockTask(map[string]any{"run_for": "1h"}))
	job.TaskGroups[0].RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(0), Mode: structs.Ptr("fail"),
		Delay: structs.Ptr(time.Second), Interval: structs.Ptr(time.Minute)}
	a.servers.assign("a1", job, nil)
	a.servers.untilStatus("a1", "running")
	a.end()
	p := &pondering{Driver: mock.New(hclog.NewNullLogger()), asked: make(chan struct{}, 1), answer: make(chan error), ended: ended}
	drivers, err := driver.NewRegistry(p)
	if err != nil {
		t.Fatal(err)
	}
	a.prepare = func(c *Client) {
		c.drivers = drivers
		if limit > 0 {
			c.settleLimit = limit
		}
	}
	known := make(chan string, 1)
	a.servers.mu.Lock()
	a.servers.beats = nil
	a.servers.beaten = func(fresh bool) {
		if fresh && len(known) == 0 && !slices.Contains(a.servers.beats[:len(a.servers.beats)-1], true) {
			known <- a.servers.seen["a1"].ObservedStatus
		}
	}
	a.servers.mu.Unlock()
	return a.start(), p, known
}

// TestNodeIsFreshOnceItKnowsWhatBecameOfItsTasks: what an earlier agent wrote down is reported, but it is not news.
func TestNodeIsFreshOnceItKnowsWhatBecameOfItsTasks(t *testing.T) {
	a, p, known := afterRestart(t, 0, nil)
	<-p.asked
	a.servers.until("heartbeats", func() bool { return len(a.servers.beats) > 0 })
	nudge(a.client.wakeReport)
	nudge(a.client.wakeDuty)
	a.servers.until("one more heartbeat", func() bool { return len(a.servers.beats) > 1 })
	select {
	case status := <-known:
		t.Fatalf("the node is fresh while nobody knows whether its task, reported as %s, runs", status)
	default:
	}
	p.answer <- driver.ErrTaskNotFound
	if status := <-known; status != structs.AllocClientStatusFailed {
		t.Errorf("at the first fresh heartbeat the task was reported as %s", status)
	}
}

// TestATaskThatIsTakenOverMakesTheNodeFresh: it need not end for that.
func TestATaskThatIsTakenOverMakesTheNodeFresh(t *testing.T) {
	_, p, known := afterRestart(t, time.Hour, nil)
	p.answer <- nil
	if status := <-known; status != structs.AllocClientStatusRunning {
		t.Errorf("at the first fresh heartbeat the task was reported as %s", status)
	}
}

// TestATaskThatWasTakenOverTooLateIsReportedFirst: its driver knew it, and that it has ended.
func TestATaskThatWasTakenOverTooLateIsReportedFirst(t *testing.T) {
	ended := make(chan struct{})
	a, p, known := afterRestart(t, time.Hour, ended)
	p.answer <- nil
	a.servers.until("the report that it was taken over", func() bool {
		return slices.ContainsFunc(a.servers.seen["a1"].TaskStates["t"].Events, func(e *structs.TaskEvent) bool { return e.Type == "Reattached" })
	})
	nudge(a.client.wakeDuty)
	a.servers.mu.Lock()
	before := len(a.servers.beats)
	a.servers.mu.Unlock()
	a.servers.until("one more heartbeat", func() bool { return len(a.servers.beats) > before })
	close(ended)
	if status := <-known; status != structs.AllocClientStatusFailed {
		t.Errorf("at the first fresh heartbeat the task was reported as %s", status)
	}
}

// TestADriverThatHangsDoesNotHoldTheNode for ever.
func TestADriverThatHangsDoesNotHoldTheNode(t *testing.T) {
	_, _, known := afterRestart(t, 50*time.Millisecond, nil)
	if status := <-known; status != structs.AllocClientStatusRunning {
		t.Errorf("at the first fresh heartbeat the task was reported as %s", status)
	}
}
