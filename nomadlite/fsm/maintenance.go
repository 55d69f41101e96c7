package fsm

import (
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// NodeMaintenance announces a downtime of a node, or ends it (Maintenance nil).
type NodeMaintenance struct {
	NodeID      string
	Maintenance *structs.NodeMaintenance
	Event       *structs.NodeEvent
	Evals       []*structs.Evaluation
	Now         int64
}

func applyNodeMaintenance(tx *state.Txn, r *NodeMaintenance) (any, error) {
	if err := tx.SetNodeMaintenance(r.NodeID, r.Maintenance, r.Event, r.Now); err != nil {
		return nil, err
	}
	upsertEvals(tx, r.Evals, r.Now)
	return nil, nil
}
