package rank

import (
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func TestTiesAreTheHashOfEachNode(t *testing.T) {
	var nodes []*structs.Node
	for i := range 11 {
		nodes = append(nodes, &structs.Node{ID: strings.Repeat("x", i%5) + string(rune('a'+i))})
	}
	out := make([]uint64, len(nodes))
	ties(out, "seed", nodes)
	for i, tie := range out {
		if want := mix(hash(hash(fnvOffset, "seed"), nodes[i].ID)); tie != want {
			t.Errorf("node %d has %x, want %x", i, tie, want)
		}
	}
}
