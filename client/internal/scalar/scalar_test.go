package scalar

import (
	"math"
	"testing"
	"time"
)

func TestWhole(t *testing.T) {
	for _, v := range []any{7, int64(7), uint64(7), 7.0, "7", 7 * time.Nanosecond} {
		if n, ok := Whole(v); n != 7 || !ok {
			t.Errorf("%T %v: %d %v", v, v, n, ok)
		}
	}
	for _, v := range []any{nil, true, "7.5", "x", "", 7.5, math.NaN(), math.Inf(1), float64(1 << 60), uint64(math.MaxUint64), []any{7}} {
		if n, ok := Whole(v); ok {
			t.Errorf("%T %v is %d", v, v, n)
		}
	}
}

func TestText(t *testing.T) {
	for want, v := range map[string]any{"x": "x", "true": true, "7": 7, "1500000": 1.5e6, "0.5": 0.5} {
		if got, ok := Text(v); got != want || !ok {
			t.Errorf("%T %v: %q %v", v, v, got, ok)
		}
	}
	if got, ok := Text([]any{"x"}); ok {
		t.Errorf("a list is %q", got)
	}
}
