package structs

import (
	"fmt"
	"strings"
)

// PlanAnnotations is what a plan would change, for people.
type PlanAnnotations struct {
	DesiredTGUpdates map[string]*DesiredUpdates
	PreemptedAllocs  []*AllocationListStub
	// Reasons says of each group what its updates are for; the same allocations as in DesiredTGUpdates.
	Reasons map[string][]*PlannedUpdate `json:",omitempty"`
}

// Kinds of updates, by the names that the public tools give them.
const (
	UpdateIgnore      = "ignore"
	UpdateCreate      = "create"
	UpdateMigrate     = "migrate"
	UpdateDestroy     = "destroy"
	UpdateCanary      = "canary"
	UpdateInPlace     = "in-place update"
	UpdateDestructive = "create/destroy update"
	UpdatePreemptions = "preemptions"
)

// PlannedUpdate says of some allocations of a group why a plan does with them what it does.
type PlannedUpdate struct {
	Update  string // one of the kinds
	Allocs  uint64
	Reason  string   // in words, without a subject
	Differs []string `json:",omitempty"` // what the new version of the job has otherwise, as a jobspec names it
}

// Text says all of it in one line.
func (u *PlannedUpdate) Text() string {
	text := fmt.Sprintf("%d %s: %s", u.Allocs, u.Update, u.Reason)
	if len(u.Differs) > 0 {
		text += " (" + strings.Join(u.Differs, ", ") + ")"
	}
	return text
}

// DesiredUpdates counts what a plan would do in one group.
type DesiredUpdates struct {
	Ignore            uint64
	Place             uint64
	Migrate           uint64
	Stop              uint64
	InPlaceUpdate     uint64
	DestructiveUpdate uint64
	Canary            uint64
	Preemptions       uint64
	Disconnect        uint64
	Reconnect         uint64
	RescheduleNow     uint64
	RescheduleLater   uint64
}
