package heartbeat

import (
	"maps"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// Outcome is what one node's status change means.
type Outcome struct {
	Update fsm.NodeStatusUpdate
	Evals  []*structs.Evaluation
	// Until is when the node is to be looked at again: the first of its conditions runs out then. Zero is never.
	Until time.Time
}

// Judge makes evaluations and node events with the ids and times of its driver.
type Judge struct {
	NewID func() string
	Now   time.Time
	// Spare is until when what has no lease is not given up: a new leader has not heard of the node yet, and waits for
	// it. What has a lease has ended by itself before. Zero for a node that was heard by this leader.
	Spare time.Time
}

// patience is how long an allocation of a silent node may stay unknown. Nothing set means that it is given up at once.
type patience struct {
	lostAfter time.Duration // from the missed heartbeat
	fence     time.Duration // from the last heartbeat that came
	forever   bool          // its group wants no replacement, so that nothing is gained by giving it up
}

// patienceOf reads the terms of an allocation's group on its node. One that was told to stop is waited for no longer
// than its fence needs.
func patienceOf(a *structs.Allocation, node *structs.Node) patience {
	var p patience
	tg := a.Group()
	if tg == nil {
		return p
	}
	p.forever = structs.Val(tg.PreventRescheduleOnLost)
	if d := tg.Disconnect; d != nil {
		p.lostAfter = structs.Val(d.LostAfter)
		if d.Replace != nil {
			p.forever = !*d.Replace
		}
	}
	if a.DesiredStatus != structs.AllocDesiredStatusRun {
		p.forever = false
	}
	if p.lostAfter == 0 {
		p.lostAfter = structs.Val(tg.MaxClientDisconnect)
	}
	if p.fence = tg.FenceOn(node); p.fence > 0 {
		p.lostAfter = 0 // nothing of it is left by then that could come back
	}
	return p
}

// Missed decides about a node whose heartbeat did not come. lastBeat is when this leader last heard of it, or began
// to lead, whichever is later.
func (j Judge) Missed(node *structs.Node, allocs []*structs.Allocation, lastBeat time.Time) Outcome {
	o := Outcome{Update: fsm.NodeStatusUpdate{NodeID: node.ID, Status: structs.NodeStatusDown,
		Conditions: map[string]structs.Condition{}}}
	away := node.Maintenance.Covers(j.Now)
	if away {
		o.Update.Status = structs.NodeStatusDisconnected
	}
	for _, a := range allocs {
		if a.ClientTerminal() {
			continue
		}
		p := patienceOf(a, node)
		if m := node.Maintenance; away && (p.fence == 0 || lastBeat.Add(p.fence).After(m.Until)) {
			o.Update.Conditions[a.ID] = structs.Condition{Status: structs.ConditionAway, Since: j.Now, Until: m.Until, Reason: m.Reason}
			continue
		}
		if p.fence == 0 && j.Spare.After(j.Now) {
			o.Update.Status = structs.NodeStatusDisconnected
			o.Update.Conditions[a.ID] = structs.Condition{Status: structs.ConditionAway, Since: j.Now, Until: j.Spare,
				Reason: reasonSpared, Grace: true}
			o.soonest(j.Spare)
			continue
		}
		until := j.Now.Add(p.lostAfter)
		if p.lostAfter > 0 {
			o.Update.Status = structs.NodeStatusDisconnected
		}
		if p.forever {
			o.Update.Conditions[a.ID] = structs.Condition{Status: structs.ConditionUnknown, Since: j.Now,
				Reason: "node missed its heartbeat"}
			o.soonest(j.Now.Add(lookAgain))
			continue
		}
		if fenced := lastBeat.Add(p.fence); p.fence > 0 && fenced.After(until) {
			until = fenced
		}
		if !until.After(j.Now) {
			o.Update.Conditions[a.ID] = j.lost("node is down")
			continue
		}
		o.Update.Conditions[a.ID] = structs.Condition{Status: structs.ConditionUnknown, Since: j.Now, Until: until,
			Reason: "node missed its heartbeat"}
		o.soonest(until)
	}
	message := "Node heartbeat missed"
	if away {
		message = "Node is away for its maintenance"
	} else if o.Update.Status == structs.NodeStatusDisconnected {
		message = "Node disconnected"
	}
	o.Update.Event = j.event(message)
	o.Evals = j.evals(node, allocs)
	return o
}

// Expired decides about a silent node whose allocations have been unknown, or spared, for some time: those whose time is
// up are lost, or judged as if their node had been missed now; so are those of which nothing was said yet (overlooked). It
// changes nothing (no conditions) when none is. lastBeat is as for Missed.
func (j Judge) Expired(node *structs.Node, allocs []*structs.Allocation, lastBeat time.Time) Outcome {
	o := Outcome{Update: fsm.NodeStatusUpdate{NodeID: node.ID, Status: structs.NodeStatusDown,
		Conditions: map[string]structs.Condition{}}}
	var lost, spared []*structs.Allocation
	for _, a := range allocs {
		if overlooked(a) {
			spared = append(spared, a)
			continue
		}
		if a.ClientTerminal() {
			continue
		}
		if a.Condition.Status == structs.ConditionAway && node.Maintenance == nil {
			if a.Condition.Until.After(j.Now) {
				o.soonest(a.Condition.Until)
				o.Update.Status = structs.NodeStatusDisconnected
			} else {
				spared = append(spared, a)
			}
			continue
		}
		if a.Condition.Status != structs.ConditionUnknown {
			continue
		}
		p, until := patienceOf(a, node), a.Condition.Until
		if endless(a.Condition) {
			if p.forever {
				o.soonest(j.Now.Add(lookAgain))
				continue
			}
			until = a.Condition.Since.Add(p.lostAfter) // it was told to stop since
		}
		if fenced := lastBeat.Add(p.fence); p.fence > 0 && fenced.After(until) {
			until = fenced // of a leader that has begun since, or has heard of the node once more
		}
		if until.After(j.Now) {
			o.soonest(until)
			if p.lostAfter > 0 {
				o.Update.Status = structs.NodeStatusDisconnected
			}
			continue
		}
		lost = append(lost, a)
		o.Update.Conditions[a.ID] = j.lost("node did not come back in time")
	}
	if len(spared) > 0 {
		j.Spare = time.Time{}
		missed := j.Missed(node, spared, lastBeat)
		maps.Copy(o.Update.Conditions, missed.Update.Conditions)
		if missed.Update.Status == structs.NodeStatusDisconnected {
			o.Update.Status = structs.NodeStatusDisconnected
		}
		if !missed.Until.IsZero() {
			o.soonest(missed.Until)
		}
		lost = append(lost, spared...)
	}
	if len(lost) == 0 {
		return o
	}
	if node.Maintenance.Covers(j.Now) {
		o.Update.Status = structs.NodeStatusDisconnected
	}
	if o.Update.Status == structs.NodeStatusDown {
		o.Update.Event = j.event("Node is down: no allocation waits for its return any more")
	} else {
		o.Update.Event = j.event("Node stays disconnected: allocations were given up")
	}
	o.Evals = j.evals(node, lost)
	for _, e := range o.Evals {
		e.TriggeredBy = structs.EvalTriggerMaxDisconnect
	}
	return o
}

// Announced decides about a node whose maintenance is over. One that is absent has missed its heartbeat as of now; what
// was unknown before, because its lease ran out earlier, keeps its time.
func (j Judge) Announced(node *structs.Node, allocs []*structs.Allocation, lastBeat time.Time) Outcome {
	if !node.Down() {
		return Outcome{Update: fsm.NodeStatusUpdate{NodeID: node.ID, Status: node.Status, EndMaintenance: true,
			Event: j.event("Node maintenance is over")}}
	}
	var waiting []*structs.Allocation
	var until time.Time
	for _, a := range allocs {
		c := a.Condition
		if endless(c) {
			c.Until = j.Now.Add(lookAgain)
		}
		if c.Status != structs.ConditionUnknown || a.ClientTerminal() {
			waiting = append(waiting, a)
		} else if until.IsZero() || c.Until.Before(until) {
			until = c.Until
		}
	}
	unannounced := *node
	unannounced.Maintenance = nil
	o := j.Missed(&unannounced, waiting, lastBeat)
	if !until.IsZero() {
		o.soonest(until)
	}
	o.Update.EndMaintenance = true
	o.Update.Event = j.event("Node did not come back by the end of its maintenance")
	return o
}

// Returned decides about a node that is heard again (or for the first time). Unknown allocations are as the node says
// again; lost stays lost until the node has reported an end.
func (j Judge) Returned(node *structs.Node, allocs []*structs.Allocation, status string) Outcome {
	o := Outcome{Update: fsm.NodeStatusUpdate{NodeID: node.ID, Status: status,
		Conditions: map[string]structs.Condition{}}}
	for _, a := range allocs {
		if a.Condition.Status == structs.ConditionUnknown || a.Condition.Status == structs.ConditionAway {
			o.Update.Conditions[a.ID] = structs.Condition{Status: structs.ConditionOK, Since: j.Now}
		}
	}
	switch {
	case node.Down():
		o.Update.Event = j.event("Node reregistered by heartbeat")
	case status == structs.NodeStatusReady:
		o.Update.Event = j.event("Node is ready")
	}
	o.Evals = j.evals(node, allocs)
	for _, e := range o.Evals {
		if len(o.Update.Conditions) > 0 {
			e.TriggeredBy = structs.EvalTriggerReconnect
		}
	}
	return o
}

// reasonSpared is why an allocation is away whose node a new leader has not heard of yet.
const reasonSpared = "the servers have a new leader, which waits for the node"

// overlooked says of an allocation on a silent node that nobody said so of it: it was placed while the node's silence was
// judged and written down. Nobody would hear of its end, nor give it up.
func overlooked(a *structs.Allocation) bool {
	return !a.ClientTerminal() && (a.Condition.Status == "" || a.Condition.Status == structs.ConditionOK)
}

// lookAgain is how often a silent node is looked at for what is waited for without end. Once that was told to stop somebody
// may wait for its end, and it has its group's lost_after only.
const lookAgain = time.Minute

// endless says that a condition ends only when the node is heard again, or somebody stops the allocation.
func endless(c structs.Condition) bool { return c.Until.IsZero() }

func (o *Outcome) soonest(until time.Time) {
	if o.Until.IsZero() || until.Before(o.Until) {
		o.Until = until
	}
}

func (j Judge) lost(reason string) structs.Condition {
	return structs.Condition{Status: structs.ConditionLost, Since: j.Now, Reason: reason}
}

func (j Judge) event(message string) *structs.NodeEvent {
	return &structs.NodeEvent{Message: message, Subsystem: "Cluster", Timestamp: j.Now}
}

// evals makes one evaluation for each job with live allocations among allocs.
func (j Judge) evals(node *structs.Node, allocs []*structs.Allocation) []*structs.Evaluation {
	var out []*structs.Evaluation
	seen := map[structs.NamespacedID]bool{}
	for _, a := range allocs {
		id := structs.NamespacedID{Namespace: a.Namespace, ID: a.JobID}
		if a.Job == nil || seen[id] || (a.TerminalStatus() && !a.Orphaned()) {
			continue
		}
		seen[id] = true
		out = append(out, &structs.Evaluation{
			ID: j.NewID(), Namespace: a.Namespace, JobID: a.JobID, NodeID: node.ID, NodeModifyIndex: node.ModifyIndex,
			Type: structs.Val(a.Job.Type), Priority: structs.Val(a.Job.Priority),
			TriggeredBy: structs.EvalTriggerNodeUpdate, Status: structs.EvalStatusPending,
			CreateTime: j.Now.UnixNano(), ModifyTime: j.Now.UnixNano(),
		})
	}
	return out
}

// Ready makes an evaluation for each system job of the nodes that have just become ready and that has none among made:
// it may have no allocation there yet. One is enough for all nodes, since it looks at all of them.
func (j Judge) Ready(jobs []*structs.Job, made []*structs.Evaluation) []*structs.Evaluation {
	has := map[structs.NamespacedID]bool{}
	for _, e := range made {
		has[structs.NamespacedID{Namespace: e.Namespace, ID: e.JobID}] = true
	}
	var out []*structs.Evaluation
	for _, job := range jobs {
		id := structs.NamespacedID{Namespace: structs.Val(job.Namespace), ID: structs.Val(job.ID)}
		if has[id] {
			continue
		}
		out = append(out, &structs.Evaluation{
			ID: j.NewID(), Namespace: id.Namespace, JobID: id.ID, Type: structs.Val(job.Type),
			Priority: structs.Val(job.Priority), TriggeredBy: structs.EvalTriggerNodeUpdate,
			Status: structs.EvalStatusPending, CreateTime: j.Now.UnixNano(), ModifyTime: j.Now.UnixNano(),
		})
	}
	return out
}
