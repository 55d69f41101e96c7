// Package uuid makes the random ids of jobs' evaluations, allocations, deployments and nodes.
package uuid

import "github.com/google/uuid"

// New gives a fresh random (version 4) id in its usual text form.
func New() string { return uuid.NewString() }

// Valid says whether s is an id in its usual text form.
func Valid(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

// Short gives the first 8 characters of an id, as the command line shows it.
func Short(id string) string {
	if len(id) < 8 {
		return id
	}
	return id[:8]
}
