package drain

import "github.com/nomadlite/nomadlite/structs"

// choose says which allocations of a group are to leave now. allocs are all those of the group, leaving tells those that
// have to leave their node.
//
// An allocation that runs and whose health was judged is settled: whether it is well or its healthy_deadline has
// passed, nobody waits for it any more. count - max_parallel settled ones stay in their place at any time.
func choose(group *structs.TaskGroup, allocs []*structs.Allocation, leaving func(*structs.Allocation) bool) []*structs.Allocation {
	settled := 0
	var out, unsettled, ready []*structs.Allocation
	for _, a := range allocs {
		if a.TerminalStatus() || a.DesiredTransition.ShouldMigrate() {
			continue
		}
		ok := isSettled(a)
		switch canary := a.DeploymentStatus != nil && a.DeploymentStatus.Canary; {
		case canary && leaving(a):
			out = append(out, a) // it runs beside the group's count
		case canary:
		case leaving(a) && ok:
			ready = append(ready, a)
			settled++
		case leaving(a):
			unsettled = append(unsettled, a)
		case ok:
			settled++
		}
	}
	may := settled - (structs.Val(group.Count) - maxParallel(group))
	// Who is not settled is missing already; that he is missing elsewhere costs nothing.
	out = append(out, first(unsettled, may+len(unsettled))...)
	return append(out, first(ready, may)...)
}

func isSettled(a *structs.Allocation) bool {
	return a.ClientStatus == structs.AllocClientStatusRunning && a.DeploymentStatus != nil && a.DeploymentStatus.Healthy != nil
}

func maxParallel(group *structs.TaskGroup) int {
	if group.Migrate == nil {
		return 1
	}
	return max(1, structs.Val(group.Migrate.MaxParallel))
}

func first(allocs []*structs.Allocation, n int) []*structs.Allocation {
	return allocs[:max(0, min(n, len(allocs)))]
}
