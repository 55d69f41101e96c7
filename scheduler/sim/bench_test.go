package sim

import (
	"context"
	"fmt"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

// BenchmarkLoseARack plays a cluster of 2,000 nodes with 100 jobs of 100 allocations each, of which a rack in four is lost.
func BenchmarkLoseARack(b *testing.B) {
	for b.Loop() {
		s := New(Config{Seed: 1, Now: start()})
		e := Event{AddNodes: nodes(0, 2000)}
		for i := range 100 {
			j := job(fmt.Sprint("job", i), "service", 100, 50)
			j.TaskGroups[0].Tasks[0].Resources.CPU = structs.Ptr(200)
			e.Run = append(e.Run, j)
		}
		for _, e := range []Event{e, {Lose: []string{"rack=r1"}}} {
			if _, err := s.Do(context.Background(), e); err != nil {
				b.Fatal(err)
			}
		}
		if n := s.Usage()[0].Allocs; n != 10000 {
			b.Fatalf("%d allocations", n)
		}
	}
}
