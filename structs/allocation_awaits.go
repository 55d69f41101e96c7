package structs

import "slices"

// AwaitedAlloc names an allocation whose end another one waits for, and the node that it ends on.
type AwaitedAlloc struct {
	ID       string
	NodeID   string
	NodeName string
}

// HoldsBack says that what takes the allocation's place must not begin yet: it was told to stop, its end was not
// observed, and it was not given up. One that was not told to stop holds nothing back: a replacement beside it is what
// its job asked for. Nor does one that cannot be heard, when its group wants a replacement to run meanwhile. With a lease it
// does until it is lost, which is when it surely has ended. node is its node, and may be nil.
func (a *Allocation) HoldsBack(node *Node) bool {
	switch {
	case !a.ServerTerminal() || a.ClientTerminal():
		return false
	case a.Condition.Status == ConditionUnknown:
		tg := a.Group()
		return tg.FenceOn(node) > 0 || !tg.ReplacedUnheard()
	}
	return true
}

// ReplacedUnheard says that the group wants a replacement while one of its allocations cannot be heard.
func (tg *TaskGroup) ReplacedUnheard() bool {
	switch {
	case tg == nil:
		return true
	case tg.Disconnect != nil && tg.Disconnect.Replace != nil:
		return *tg.Disconnect.Replace
	}
	return !Val(tg.PreventRescheduleOnLost)
}

// AwaitsAlloc says whether the allocation waits for the one with that id.
func (a *Allocation) AwaitsAlloc(id string) bool {
	return slices.ContainsFunc(a.Awaits, func(w AwaitedAlloc) bool { return w.ID == id })
}
