package rawexec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// IDRanges is a set of user or group ids.
type IDRanges []idRange

type idRange struct{ from, to uint32 }

// ParseIDRanges reads "0,10-15,22"; all faults at once.
func ParseIDRanges(text string) (IDRanges, error) {
	var out IDRanges
	var faults structs.Errors
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, errFrom := strconv.ParseUint(strings.TrimSpace(low), 10, 32)
		to, errTo := strconv.ParseUint(strings.TrimSpace(high), 10, 32)
		if errFrom != nil || errTo != nil || from > to {
			faults.Add(fmt.Errorf("%q is no range of ids", part))
			continue
		}
		out = append(out, idRange{uint32(from), uint32(to)})
	}
	return out, faults.Err()
}

// Contain says whether an id is in the set.
func (r IDRanges) Contain(id uint32) bool {
	for _, x := range r {
		if id >= x.from && id <= x.to {
			return true
		}
	}
	return false
}
