package gc

import (
	"fmt"
	"testing"
	"time"
)

func TestChoose(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	ended := []Candidate{{"c", at(3)}, {"a", at(1)}, {"b", at(2)}}
	limits := Limits{MaxAllocs: 10}.WithDefaults()
	for _, c := range []struct {
		name    string
		measure Measure
		want    string
	}{
		{"nothing to do", Measure{Tracked: 10, DiskUsed: 80, InodesUsed: 70}, "[]"},
		{"too many, the oldest go", Measure{Tracked: 12}, "[a b]"},
		{"far too many, most of which run", Measure{Tracked: 100}, "[a b c]"},
		{"disk", Measure{Tracked: 3, DiskUsed: 80.5}, "[a b]"},
		{"inodes", Measure{Tracked: 3, InodesUsed: 71}, "[a b]"},
		{"everything", Measure{Tracked: 3, Everything: true}, "[a b c]"},
	} {
		ids, reason := Choose(limits, c.measure, ended)
		if fmt.Sprint(ids) != c.want || (len(ids) > 0) != (reason != "") {
			t.Errorf("%s: %v because %q", c.name, ids, reason)
		}
	}
}

func TestDefaults(t *testing.T) {
	if got := (Limits{}).WithDefaults(); got != (Limits{50, 80, 70, 2}) {
		t.Fatalf("%+v", got)
	}
}
