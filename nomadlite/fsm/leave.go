package fsm

import (
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// NodeLeave says that a node begins to leave for good: it is ineligible from then on, and drained unless Drain is nil. What it
// had before is kept with it until NodeStatusUpdate.EndLeaving.
type NodeLeave struct {
	NodeID string
	Agent  string // the process that leaves
	Drain  *structs.DrainStrategy
	Event  *structs.NodeEvent
	Now    int64
}

func applyNodeLeave(tx *state.Txn, r *NodeLeave) (any, error) {
	return nil, tx.SetNodeLeaving(r.NodeID, r.Agent, r.Drain, r.Event, r.Now)
}
