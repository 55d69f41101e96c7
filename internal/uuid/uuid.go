// Package uuid makes the random ids of evaluations, allocations, deployments and nodes. Servers and the
// node agent call it.
package uuid

import "github.com/google/uuid"

// New gives a fresh random (version 4) id in its usual text form.
func New() string { return uuid.NewString() }

// Valid says whether s is an id in its usual text form.
func Valid(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }
