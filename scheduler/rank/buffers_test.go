package rank

import "testing"

func TestBuffersComeBackEmpty(t *testing.T) {
	var b Buffers
	used := b.places.get(8)
	for i := range used {
		used[i].usedCPU, used[i].ports = 100, []uint16{80}
	}
	b.places.put(used)
	for _, n := range []int{3, 8, 20} {
		for i, p := range b.places.get(n) {
			if p.usedCPU != 0 || p.ports != nil {
				t.Errorf("place %d of %d is %+v", i, n, p)
			}
		}
	}
}
