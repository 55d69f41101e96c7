package structs

import (
	"fmt"
	"maps"
	"slices"
)

// JobExplanation tells why a job is as it is: what its evaluations decided and found in the way, and for each group with
// something left to place, where it may run now and what would let it run elsewhere.
type JobExplanation struct {
	Namespace   string
	JobID       string
	Version     uint64
	Status      string
	Evaluations []*EvalExplanation // those that nobody in the list led to, the oldest first
	Groups      []*GroupExplanation
	Deployment  *DeploymentExplanation // nil when nothing is rolled out
}

// EvalExplanation is one evaluation in a tree: Next are those which it led to.
type EvalExplanation struct {
	ID                string
	TriggeredBy       string
	Status            string
	StatusDescription string
	CreateIndex       uint64
	WaitUntil         int64               `json:",omitempty"` // unix nanoseconds, 0 for at once
	NodeID            string              `json:",omitempty"`
	Failed            map[string][]Reason `json:",omitempty"` // by group
	// WokenBy are the classes of nodes whose change wakes a blocked evaluation; empty when any change does.
	WokenBy []string           `json:",omitempty"`
	Next    []*EvalExplanation `json:",omitempty"`
}

// GroupExplanation is one group in the cluster as it is now.
type GroupExplanation struct {
	Name     string
	Desired  int
	Running  int
	Queued   int
	Nodes    int           // all nodes of the cluster
	Open     int           // nodes on which another allocation fits now
	Barriers []NodeBarrier // why the others are closed, the most frequent first; a node may be closed by several
	Relax    []Relaxation  // what would open nodes if it alone were changed, the most helpful first
}

// NodeBarrier is something that keeps a group off some nodes.
type NodeBarrier struct {
	What     string
	Nodes    int
	Examples []string // names of up to three of the nodes
}

// Relaxation is one thing to change.
type Relaxation struct {
	What  string // the constraint, or what is missing
	Opens int    // nodes on which an allocation would fit then
}

// DeploymentExplanation says what holds a deployment.
type DeploymentExplanation struct {
	ID                string
	Status            string
	StatusDescription string
	Waiting           []string `json:",omitempty"`
}

// Explain says what a deployment that goes on waits for; nil for one that is over.
func (d *Deployment) Explain() *DeploymentExplanation {
	if d == nil || !d.Active() {
		return nil
	}
	out := &DeploymentExplanation{ID: d.ID, Status: d.Status, StatusDescription: d.StatusDescription}
	if d.Status == DeploymentStatusPaused {
		out.Waiting = append(out.Waiting, "it is paused: nothing is placed until `deployment resume`")
	}
	for _, name := range slices.Sorted(maps.Keys(d.TaskGroups)) {
		g := d.TaskGroups[name]
		say := func(format string, args ...any) {
			out.Waiting = append(out.Waiting, fmt.Sprintf("group %q ", name)+fmt.Sprintf(format, args...))
		}
		switch {
		case g.DesiredCanaries > 0 && !g.Promoted && g.HealthyAllocs < g.DesiredCanaries:
			say("waits for its canaries: %d of %d healthy", g.HealthyAllocs, g.DesiredCanaries)
		case g.DesiredCanaries > 0 && !g.Promoted:
			say("has healthy canaries that wait for `deployment promote`")
		case g.HealthyAllocs < g.DesiredTotal:
			say("has %d of %d healthy, %d placed, %d unhealthy", g.HealthyAllocs, g.DesiredTotal, g.PlacedAllocs, g.UnhealthyAllocs)
		}
	}
	return out
}
