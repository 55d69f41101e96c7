package hook

import (
	"maps"
	"math"
)

// forever marks a point that is never run again.
const forever = uint64(math.MaxUint64)

// Record is what is kept on disk of one hook. Its maps are never changed in place.
type Record struct {
	// Done gives, for each point, the attempt for which it was last finished.
	Done map[Point]uint64  `cbor:"d"`
	Data map[string]string `cbor:"v"`
	Env  map[string]string `cbor:"e"`
}

// finished says whether point need not be run for attempt.
func (r Record) finished(point Point, attempt uint64) bool {
	done, ok := r.Done[point]
	return ok && done >= attempt
}

func (r Record) finish(point Point, attempt uint64) Record {
	done := make(map[Point]uint64, len(r.Done)+1)
	maps.Copy(done, r.Done)
	done[point] = attempt
	r.Done = done
	return r
}

// reopen forgets that point was finished.
func (r Record) reopen(point Point) Record {
	done := maps.Clone(r.Done)
	delete(done, point)
	r.Done = done
	return r
}

// Journal keeps the records of one runner's hooks, durably in the order of its calls.
type Journal interface {
	Record(hook string) Record
	SetRecord(hook string, r Record)
}
