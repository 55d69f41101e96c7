package endpoint

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

// TestFewJobspecsAreReadAtATime: the others wait for a slot, and give up with their caller.
func TestFewJobspecsAreReadAtATime(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	var now, most atomic.Int32
	p := newParser(&Backend{Parse: func(*structs.JobsParseRequest) (*structs.Job, error) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		entered <- struct{}{}
		<-leave
		now.Add(-1)
		return &structs.Job{}, nil
	}})
	slots := cap(p.slots)
	var group sync.WaitGroup
	for range 3 * slots {
		group.Go(func() {
			if _, err := p.parse(t.Context(), &structs.JobsParseRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
	for range slots {
		<-entered
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.parse(ctx, &structs.JobsParseRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for range 2 * slots {
		leave <- struct{}{}
		<-entered
	}
	for range slots {
		leave <- struct{}{}
	}
	group.Wait()
	if int(most.Load()) > slots {
		t.Errorf("%d were read at a time, want at most %d", most.Load(), slots)
	}
}

// TestHostileJobspecsAreRefused, and the server goes on.
func TestHostileJobspecsAreRefused(t *testing.T) {
	s := newServer(t)
	for word, expr := range map[string]string{
		"Number out of range": "1e999999999",
		"Expression too long": strings.Repeat("-", 100000) + "1",
		"Nested too deep":     strings.Repeat("[", 5000),
		"Jobspec too large":   "[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : 1]]]",
	} {
		s.call("POST", "/v1/jobs/parse", structs.JobsParseRequest{JobHCL: "job \"x\" {\n  meta = { a = " + expr + " }\n}\n"}).says(400, word)
	}
	s.call("POST", "/v1/jobs/parse", structs.JobsParseRequest{JobHCL: "job \"x\" {}\n"}).want(200, nil)
}
