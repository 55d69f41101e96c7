// Package scalar reads the single values of a task's config block, which come as JSON or from a jobspec: numbers may be
// written as text, after a variable was put in.
package scalar

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Whole gives a value as a whole number; a duration counts its nanoseconds. false when it is none, or is a float too large
// to be exact.
func Whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	case time.Duration:
		return int64(v), true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// Text gives a value as text; false when it is not a single one.
func Text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool, int, int64, uint64:
		return fmt.Sprint(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}
