package state

import "github.com/nomadlite/nomadlite/structs"

// SetNodeLeaving makes a node ineligible, and drains it unless drain is nil, because it leaves for good. What it had before is
// kept with it; to say so again, by another agent too, changes nothing of that. It fails with structs.ErrNodeNotFound.
func (tx *Txn) SetNodeLeaving(id, agent string, drain *structs.DrainStrategy, event *structs.NodeEvent, now int64) error {
	old := tx.node(id)
	if old == nil {
		return structs.ErrNodeNotFound
	}
	leaving := old.Leaving.Copy()
	if leaving == nil {
		leaving = &structs.NodeLeaving{Since: unixTime(now), Eligibility: old.SchedulingEligibility, Before: old.DrainStrategy.Copy()}
	}
	leaving.Agent, leaving.Drain = agent, leaving.Drain || drain != nil
	var err error
	if drain != nil {
		err = tx.SetNodeDrain(NodeDrainChange{NodeID: id, Strategy: drain, Event: event, Now: now})
	} else {
		err = tx.SetNodeEligibility(id, structs.NodeIneligible, event, now)
	}
	if err != nil {
		return err
	}
	return tx.editNode(id, func(row *structs.Node) { row.Leaving = leaving })
}

// EndNodeLeaving gives a node back what it had before it began to leave, and ends the drain that it left by. agent is the
// process that is there now: while that is the one which leaves nothing changes. Empty, it is the end of leaving. It
// fails with structs.ErrNodeNotFound.
func (tx *Txn) EndNodeLeaving(id, agent string, now int64) error {
	node := tx.node(id)
	if node == nil {
		return structs.ErrNodeNotFound
	}
	leaving := node.Leaving
	if leaving == nil || agent != "" && agent == leaving.Agent {
		return nil
	}
	var err error
	switch {
	case node.DrainStrategy == nil:
		err = tx.SetNodeEligibility(id, leaving.Eligibility, nil, now)
	case leaving.Drain && leaving.Before != nil:
		err = tx.SetNodeDrain(NodeDrainChange{NodeID: id, Strategy: leaving.Before, Now: now})
	case leaving.Drain:
		err = tx.SetNodeDrain(NodeDrainChange{NodeID: id, Complete: agent == "",
			MarkEligible: leaving.Eligibility == structs.NodeEligible, Now: now})
	}
	if err != nil {
		return err
	}
	return tx.editNode(id, func(row *structs.Node) { row.Leaving = nil })
}
