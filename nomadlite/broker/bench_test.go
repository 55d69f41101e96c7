package broker

import (
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/structs"
)

// BenchmarkBroker lets one evaluation after the other in, out and be done, of 1,000 jobs in turn.
func BenchmarkBroker(b *testing.B) {
	broker := New(Config{}, hclog.NewNullLogger(), func() string { return "token" })
	broker.leading = true
	types := []string{structs.JobTypeService}
	evals := make([]*structs.Evaluation, 1000)
	for i := range evals {
		evals[i] = &structs.Evaluation{ID: "eval-" + strconv.Itoa(i), JobID: "job-" + strconv.Itoa(i), Namespace: "default",
			Type: structs.JobTypeService, Priority: 50, Status: structs.EvalStatusPending}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		eval := evals[i%len(evals)]
		broker.mu.Lock()
		broker.evalLocked(time.Now(), nil, eval)
		broker.wakeLocked()
		broker.mu.Unlock()
		got, _ := broker.take(types, "token")
		if got != eval {
			b.Fatal("another evaluation came")
		}
		if err := broker.Ack(got.ID, "token"); err != nil {
			b.Fatal(err)
		}
	}
}
