package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAStartOfADeadAgentIsOneWithTheNext: an agent that is killed right after it has asked leaves its request to be read
// later, beside that of the next agent for the same id. However they meet there is one process, and the next agent gets it.
func TestAStartOfADeadAgentIsOneWithTheNext(t *testing.T) {
	n := newNode(t, Config{})
	if err := n.Ensure(n.ctx); err != nil {
		t.Fatal(err)
	}
	all, err := n.Supervisors(n.ctx)
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.Open(n.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	for i := range 30 {
		id, mark := fmt.Sprint("t", i), filepath.Join(t.TempDir(), "starts")
		spec := n.spec(id, fmt.Sprintf("echo >> %s; exec sleep 1000", mark))
		c, err := net.Dial("unix", socketPath(base, all[0].Name))
		if err != nil {
			t.Fatal(err)
		}
		if err := writeMessage(c, request{ID: 1, Op: opStart, Start: spec}); err != nil {
			t.Fatal(err)
		}
		c.Close()
		info, err := n.Find(n.ctx, id)
		if errors.Is(err, ErrNotFound) { // not heard yet
			if info, err = n.Start(n.ctx, spec); errors.Is(err, ErrExists) { // but by now
				info, err = n.Find(n.ctx, id)
			}
		}
		if err != nil || info.PID == 0 || !info.Running || info.StartTick == 0 {
			t.Fatalf("got %+v, %v", info, err)
		}
		if _, err := n.Find(n.ctx, id); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Stop(n.ctx, id, unix.SIGTERM, 0); err != nil {
			t.Fatal(err)
		}
		if starts, err := os.ReadFile(mark); err == nil && len(starts) > 1 { // none: killed before it wrote
			t.Fatalf("%d starts", len(starts))
		}
		if err := n.Destroy(n.ctx, id, false); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFindWaitsForAStart: what is asked about while it starts is told of once it runs, or when it did not start.
func TestFindWaitsForAStart(t *testing.T) {
	n := newNode(t, Config{})
	if err := n.Ensure(n.ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		id := fmt.Sprint("t", i)
		spec := n.spec(id, "exec sleep 1000")
		works := i%2 == 0
		if !works {
			spec.Path = "/there/is/no/such/program"
		}
		started := make(chan error, 1)
		go func() {
			_, err := n.Start(n.ctx, spec)
			started <- err
		}()
		for over := false; !over; {
			select {
			case err := <-started:
				over = true
				if works != (err == nil) {
					t.Fatal(err)
				}
			default:
			}
			info, err := n.Find(n.ctx, id)
			if err == nil && (info.PID == 0 || !works) || err != nil && !errors.Is(err, ErrNotFound) {
				t.Fatalf("got %+v, %v", info, err)
			}
		}
	}
}
