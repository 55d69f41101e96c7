package fingerprint

import (
	"context"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func BenchmarkHost(b *testing.B) {
	cfg := Config{AllocDir: b.TempDir()}
	for b.Loop() {
		if err := Host(context.Background(), cfg, &structs.Node{}); err != nil {
			b.Fatal(err)
		}
	}
}
