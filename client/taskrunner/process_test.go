package taskrunner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/drivers/rawexec"
	"github.com/nomadlite/nomadlite/client/supervisor"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// failing is a disk that tells when it loses its first write.
type failing struct {
	frozen
	once sync.Once
	lost chan struct{}
}

func (f *failing) SaveTask(task string, l *Local, done func(error)) {
	if f.left <= 0 {
		f.once.Do(func() { close(f.lost) })
	}
	f.frozen.SaveTask(task, l, done)
}

// TestABatchTaskRunsOnceWhereverItsAgentDies runs real processes, each of which writes a line when it begins. The agent
// dies at each of the writes on the way, and the next one brings the task to its end.
func TestABatchTaskRunsOnceWhereverItsAgentDies(t *testing.T) {
	dir := t.TempDir()
	config := supervisor.Config{Dir: filepath.Join(dir, "supervisor")}
	t.Cleanup(func() {
		c := supervisor.NewClient(config)
		defer c.Close()
		if _, err := c.Supervisors(t.Context()); err == nil {
			_ = c.Shutdown(context.Background())
		}
	})
	survived := false
	for n := 0; !survived; n++ {
		file := filepath.Join(dir, fmt.Sprint("lines", n))
		r := newRig(t, "batch")
		run := func(store Store) {
			client := supervisor.NewClient(config)
			defer client.Close()
			r.runner = New(Config{
				Alloc: &structs.Allocation{ID: fmt.Sprint("a", n), Job: r.job, TaskGroup: "g"}, Task: r.task,
				Driver: rawexec.New(rawexec.Config{Supervisor: client}), Store: store, Changed: func() {}, Saved: func() {},
				Clock: boottime.System(), Random: func() float64 { return 0 },
				Build: func(_ context.Context, b BuildRequest) (*driver.TaskConfig, error) {
					return &driver.TaskConfig{ID: b.TaskID, TaskDir: dir, LogsDisabled: true, Config: map[string]any{
						"command": "/bin/sh", "args": []any{"-c", "echo line >> " + file}}}, nil
				},
			}, r.record())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan struct{})
			go func() {
				defer close(done)
				r.runner.Run(ctx)
			}()
			r.runner.Release()
			select {
			case <-done:
			case <-lostBy(store):
				cancel()
				<-done
			}
		}
		first := &failing{frozen: frozen{disk: r.disk, left: n}, lost: make(chan struct{})}
		run(first)
		run(r.disk)
		if v := r.runner.View(); v.Phase != Dead || v.State.Failed || v.Attempt != 1 {
			t.Errorf("agent died before write %d: phase %q, attempt %d, state %+v", n, v.Phase, v.Attempt, v.State)
		}
		if lines, err := os.ReadFile(file); err != nil || string(lines) != "line\n" {
			t.Errorf("agent died before write %d: the process wrote %q (%v)", n, lines, err)
		}
		select {
		case <-first.lost:
		default:
			survived = n > 0 // there was no such write
		}
	}
}

// lostBy is closed when the store loses a write; nil, which is never, when it does not.
func lostBy(s Store) <-chan struct{} {
	if f, ok := s.(*failing); ok {
		return f.lost
	}
	return nil
}
