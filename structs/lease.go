package structs

import "time"

// LeaseOn gives the lease which an allocation of the group has on a node: lease is the time after which the node stops
// it when no heartbeat is confirmed any more, kill what ending it may take then at most. Both are 0 when it has none,
// and then it outlives any partition. A node may give everything that runs on it a lease; the shorter one counts. n may
// be nil.
func (tg *TaskGroup) LeaseOn(n *Node) (lease, kill time.Duration) {
	if tg == nil {
		return 0, 0
	}
	lease = Val(tg.StopAfterClientDisconnect)
	if d := tg.Disconnect; d != nil && d.StopOnClientAfter != nil {
		lease = *d.StopOnClientAfter
	}
	if n != nil && n.Lease > 0 && (lease <= 0 || n.Lease < lease) {
		lease = n.Lease
	}
	if lease <= 0 {
		return 0, 0
	}
	for _, t := range tg.Tasks {
		timeout := DefaultKillTimeout
		if t.KillTimeout != nil {
			timeout = *t.KillTimeout
		}
		if n != nil && n.MaxKillTimeout > 0 {
			timeout = min(timeout, n.MaxKillTimeout)
		}
		kill = max(kill, timeout)
	}
	return lease, kill
}

// fenceSlack is for what is on its way when contact ends.
const fenceSlack = 2 * time.Second

// FenceOn is how long after the last heartbeat that was received from a node nothing of the group runs there any more: its
// lease, what ending it takes, 2 % for clocks that run apart, and 2 s. It is 0 without a lease: then nobody can say.
func (tg *TaskGroup) FenceOn(n *Node) time.Duration {
	lease, kill := tg.LeaseOn(n)
	if lease <= 0 {
		return 0
	}
	return (lease+kill)*102/100 + fenceSlack
}
