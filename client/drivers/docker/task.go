package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/internal/pause"
)

// task is a container that is watched.
type task struct {
	id, container string
	cancel        context.CancelFunc
	done          chan struct{} // closed once exit is set and the output is in its files
	over          chan struct{} // closed once nothing watches the container any more
	exit          *driver.ExitResult
}

// retryAfter is how long to leave an engine alone that did not answer.
const retryAfter = 500 * time.Millisecond

// adopt begins to watch a container, or gives the task that does so already.
func (d *Driver) adopt(ctx context.Context, taskID, id string) (*task, error) {
	got, err := d.engine.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return nil, fmt.Errorf("inspect container: %w", contractError(err))
	}
	labels := got.Container.Config.Labels
	if labels[labelTask] != taskID {
		return nil, fmt.Errorf("container %s is not of task %q: %w", id, taskID, driver.ErrTaskNotFound)
	}
	var target logTarget
	if err := json.Unmarshal([]byte(labels[labelLogs]), &target); err != nil {
		return nil, fmt.Errorf("read label of container: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tasks[taskID]; t != nil {
		return t, nil
	}
	if err := d.ctx.Err(); err != nil {
		// What is closed watches nothing: it knows how things stand, and removes when it is asked to.
		over := make(chan struct{})
		close(over)
		return &task{id: taskID, container: id, cancel: func() {}, done: make(chan struct{}), over: over}, nil
	}
	watching, cancel := context.WithCancel(d.ctx)
	t := &task{id: taskID, container: id, cancel: cancel, done: make(chan struct{}), over: make(chan struct{})}
	d.tasks[taskID] = t
	d.work.Go(func() {
		defer close(t.over)
		defer cancel()
		d.watch(watching, t, target, got.Container.Config.Tty)
	})
	return t, nil
}

// watch follows a container to its end.
func (d *Driver) watch(ctx context.Context, t *task, target logTarget, tty bool) {
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		if target.Stdout == "" {
			return
		}
		p := &pump{d: d, container: t.container, tty: tty}
		if err := p.run(ctx, target); err != nil && ctx.Err() == nil {
			d.cfg.Logger.Error("output of a container is lost", "task", t.id, "container", t.container, "error", err)
		}
	}()
	exit := d.awaitExit(ctx, t.container)
	<-copied
	if exit != nil && ctx.Err() == nil {
		t.exit = exit
		close(t.done)
	}
}

// awaitExit waits for a container to end, asking again when the engine goes away meanwhile. nil when ctx is done.
func (d *Driver) awaitExit(ctx context.Context, id string) *driver.ExitResult {
	for {
		wait := d.engine.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		select {
		case <-wait.Result:
		case <-wait.Error:
		case <-ctx.Done():
			return nil
		}
		got, err := d.engine.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		switch {
		case err == nil && !got.Container.State.Running && !got.Container.State.Restarting:
			return exitResult(got.Container.State)
		case errdefs.IsNotFound(err):
			return &driver.ExitResult{Err: errors.New("the container was removed"), At: time.Now()}
		}
		if !pause.For(ctx, retryAfter) {
			return nil
		}
	}
}

// exitResult reads how a container ended. Engines do not tell a signal from the code that a shell makes of it; it is
// taken for the signal.
func exitResult(s *container.State) *driver.ExitResult {
	r := &driver.ExitResult{ExitCode: s.ExitCode, OOMKilled: s.OOMKilled, Known: true, At: moment(s.FinishedAt)}
	if n := s.ExitCode - 128; n > 0 && n <= 64 {
		r.Signal = n
	}
	if s.Error != "" {
		r.Err = errors.New(s.Error)
	}
	return r
}
