package state

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/structs"
)

// TestWhatIsDerivedIsAlwaysWhatItIsMadeOf drives random entries and after each compares all that is kept up to date
// step by step with the same computed from nothing. Failures leave their seed in testdata/rapid, which is kept.
func TestWhatIsDerivedIsAlwaysWhatItIsMadeOf(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{world: newWorld(t), rt: rt}
		for range rapid.IntRange(1, 40).Draw(rt, "entries") {
			m.step()
			m.check()
		}
		requireSameState(rt, m.store, m.restored())
	})
}

type machine struct {
	*world
	rt   *rapid.T
	made int
}

func (m *machine) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(m.rt, label)
}

func (m *machine) allocID() string {
	if m.made == 0 {
		return "none"
	}
	return fmt.Sprintf("alloc-%03d", rapid.IntRange(1, m.made).Draw(m.rt, "alloc"))
}

func (m *machine) step() {
	job, node := m.pick("job", "web", "db", "batch"), m.pick("node", "n1", "n2")
	now := m.now()
	_ = m.write(func(tx *Txn) error {
		switch m.pick("command", "register", "stop", "purge", "place", "place", "place", "inplace", "plan-stop", "observe", "observe",
			"observe", "condition", "offer", "offer", "withdraw", "eval", "node", "node-gone", "reap", "transition", "drain-off", "reconcile") {
		case "register":
			m.registerRandom(tx, job, now)
		case "stop":
			tx.StopJob(JobStop{Namespace: "default", JobID: job, NoShutdownDelay: true, Eval: testEval("e-"+job, job), Now: now})
		case "purge":
			tx.StopJob(JobStop{Namespace: "default", JobID: job, Purge: true, Now: now})
		case "place", "inplace":
			return m.placeRandom(tx, job, node, now)
		case "plan-stop":
			return m.stopRandom(tx, job, now)
		case "observe":
			tx.ObserveAlloc(&structs.AllocObservation{AllocID: m.allocID(),
				ObservedStatus:   m.pick("observed", "pending", "running", "running", "complete", "failed"),
				DeploymentStatus: &structs.AllocDeploymentStatus{Healthy: structs.Ptr(rapid.Bool().Draw(m.rt, "healthy"))}}, now)
		case "condition":
			condition := structs.Condition{Status: m.pick("condition", "ok", "away", "unknown", "lost")}
			return tx.SetNodeStatus(node, m.pick("status", "ready", "down"), nil,
				map[string]structs.Condition{m.allocID(): condition, m.allocID(): condition}, now)
		case "offer":
			s := testService(m.allocID(), m.pick("service", "web", "db"), m.pick("tag", "a", "b"))
			s.NodeID = node
			tx.UpsertServices([]*structs.ServiceRegistration{s})
		case "withdraw":
			tx.DeleteService("default", testService(m.allocID(), "web").ID, m.pick("by", "", node))
		case "eval":
			eval := testEval("e-"+job, job)
			eval.Status = m.pick("eval status", "pending", "complete", "blocked", "failed")
			eval.QueuedAllocations = map[string]int{"g": rapid.IntRange(0, 3).Draw(m.rt, "queued")}
			tx.UpsertEval(eval, now)
		case "node":
			return tx.RegisterNode(testNode(node), now)
		case "node-gone":
			tx.DeregisterNode(node, "left", now)
		case "reap":
			tx.ReapAlloc(m.allocID())
			tx.ReapEval("e-" + job)
			tx.ReapJob("default", job)
			tx.ReapDeployment("d-" + job)
			tx.ReapNode(node, "gc", now)
		case "transition":
			tx.TransitionAlloc(m.allocID(), &structs.DesiredTransition{NoShutdownDelay: structs.Ptr(true)}, now)
		case "drain-off":
			return tx.SetNodeDrain(NodeDrainChange{NodeID: node, Now: now})
		case "reconcile":
			tx.ReconcileSummaries()
		}
		return nil
	})
}

func (m *machine) registerRandom(tx *Txn, id string, now int64) {
	kind := "service"
	if id == "batch" {
		kind = "batch"
	}
	job := testJob(id, kind, "g", m.pick("second group", "h", "i"))
	job.Meta = map[string]string{"rev": m.pick("rev", "1", "2")}
	if _, err := tx.RegisterJob(JobRegistration{Job: job, Eval: testEval("e-"+id, id), Now: now}); err != nil {
		m.rt.Fatal(err)
	}
}

func (m *machine) placeRandom(tx *Txn, job, node string, now int64) error {
	row := tx.job("default", job)
	if row == nil {
		return nil
	}
	plan := &structs.Plan{EvalID: "e-" + job, Namespace: "default", JobID: job, JobModifyIndex: row.JobModifyIndex,
		Places: map[string][]*structs.Allocation{}}
	for range rapid.IntRange(1, 3).Draw(m.rt, "places") {
		var alloc *structs.Allocation
		if old := tx.alloc(m.allocID()); old != nil && old.JobID == job && rapid.Bool().Draw(m.rt, "in place") {
			alloc = testAlloc(old.ID, old.TaskGroup, old.NodeID, 20000+m.made)
		} else {
			m.made++
			alloc = testAlloc(fmt.Sprintf("alloc-%03d", m.made), m.pick("group", "g", "h"), node, 20000+m.made%5)
			alloc.PreviousAllocation = m.allocID()
			if rapid.Bool().Draw(m.rt, "names another") {
				alloc.Awaits = []structs.AwaitedAlloc{{ID: m.allocID()}}
			}
		}
		if rapid.Bool().Draw(m.rt, "in deployment") {
			alloc.DeploymentID = "d-" + job
			alloc.DeploymentStatus = &structs.AllocDeploymentStatus{Canary: rapid.Bool().Draw(m.rt, "canary")}
		}
		plan.Places[alloc.NodeID] = append(plan.Places[alloc.NodeID], alloc)
	}
	plan.Deployment = &structs.Deployment{ID: "d-" + job, Namespace: "default", JobID: job, JobSpecModifyIndex: row.JobModifyIndex,
		Status:     m.pick("deployment", "running", "successful"),
		TaskGroups: map[string]*structs.DeploymentState{"g": {DesiredTotal: 3}, "h": {}}}
	return tx.ApplyPlan(plan, now)
}

func (m *machine) stopRandom(tx *Txn, job string, now int64) error {
	stop := &structs.AllocStop{ID: m.allocID(), DesiredStatus: m.pick("desired", "stop", "evict", "")}
	if rapid.Bool().Draw(m.rt, "gives up") {
		stop.Condition = &structs.Condition{Status: m.pick("gives up as", "lost", "unknown")}
	}
	return tx.ApplyPlan(&structs.Plan{Namespace: "default", JobID: job, Stops: map[string][]*structs.AllocStop{"": {stop}}}, now)
}

func (m *machine) check() {
	m.checkServices()
	t := m.rt
	s := m.store
	tx := s.begin(s.gen.Load(), m.index+1, 0)
	usage := map[string]*structs.NodeUsage{}
	refs := map[string]int{}
	rows := map[string][]*structs.Allocation{}
	healthy := map[string]int{}
	for alloc := range s.Allocs(nil, "*") {
		if alloc.ClientStatus != alloc.DeriveClientStatus() {
			t.Errorf("%s has client status %s, the facts say %s", alloc.ID, alloc.ClientStatus, alloc.DeriveClientStatus())
		}
		if alloc.Job == nil || alloc.Job != s.JobSpec(alloc.Namespace, alloc.JobID, alloc.JobModifyIndex) {
			t.Errorf("%s is not linked to its specification %d", alloc.ID, alloc.JobModifyIndex)
		}
		if alloc.HoldsResources() {
			if usage[alloc.NodeID] == nil {
				usage[alloc.NodeID] = &structs.NodeUsage{}
			}
			usage[alloc.NodeID].Add(alloc)
		}
		refs[specKey(alloc.Namespace, alloc.JobID, alloc.JobModifyIndex)]++
		for _, key := range []string{allocRowKey(rowByID, shelfOf(alloc.ID)), allocRowKey(rowAll, rowAll), allocRowKey(rowByNode, alloc.NodeID), allocRowKey(rowByEval, alloc.EvalID),
			allocRowKey(rowByJob, joinKey(alloc.Namespace, alloc.JobID)), allocRowKey(rowByDeployment, alloc.DeploymentID)} {
			rows[key] = append(rows[key], alloc)
		}
		if alloc.DeploymentStatus != nil && structs.Val(alloc.DeploymentStatus.Healthy) {
			healthy[alloc.DeploymentID]++
		}
	}
	m.checkAwaits()
	delete(rows, allocRowKey(rowByDeployment, ""))
	m.checkRows(rows)
	m.checkUsage(usage)
	m.checkSpecs(refs)
	for job := range s.Jobs(nil, "*") {
		want := tx.recomputeSummary(job)
		got := s.JobSummary(nil, "default", structs.Val(job.ID))
		if got == nil || !reflect.DeepEqual(counts(want), counts(got)) {
			t.Errorf("summary of %s is %+v, its allocations make %+v", *job.ID, got, want)
		}
		if status := tx.jobStatus(job); status != job.Status {
			t.Errorf("job %s is %s, the rules say %s", *job.ID, job.Status, status)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// counts leaves out of a summary what allocations do not tell.
// checkServices: each registration is of an allocation that is there, on its node, and shown or not as that one's state
// wants it.
func (m *machine) checkServices() {
	for row := range scan[*serviceRow](m.store.head(), nil, TableServices, indexID, "") {
		alloc := m.store.Alloc(nil, row.AllocID)
		if alloc == nil || alloc.NodeID != row.NodeID || serviceFate(alloc) == serviceGone {
			m.rt.Errorf("service %s is left of allocation %+v", row.ID, alloc)
		} else if row.Hidden != (serviceFate(alloc) == serviceHidden) {
			m.rt.Errorf("service %s is hidden: %v, its allocation is %s", row.ID, row.Hidden, alloc.Condition.Status)
		}
	}
}

// checkAwaits: nobody waits for what holds nothing back, and whoever is awaited knows by whom.
func (m *machine) checkAwaits() {
	for alloc := range m.store.Allocs(nil, "*") {
		for _, a := range alloc.Awaits {
			old := m.store.Alloc(nil, a.ID)
			if old == nil || !old.HoldsBack(m.store.Node(nil, old.NodeID)) || !slices.Contains(old.AwaitedBy, alloc.ID) {
				m.rt.Errorf("%s waits for %s, which is %+v", alloc.ID, a.ID, old)
			}
		}
	}
}

func counts(s *structs.JobSummary) map[string]structs.TaskGroupSummary {
	out := map[string]structs.TaskGroupSummary{}
	for name, group := range s.Summary {
		group.Queued = 0
		out[name] = group
	}
	return out
}

func (m *machine) checkRows(want map[string][]*structs.Allocation) {
	seen := 0
	for row := range scan[*allocRow](m.store.head(), nil, tableAllocRows, indexID, "") {
		seen++
		allocs := want[row.key]
		slices.SortFunc(allocs, editRow(row.key[:1], row.key, nil).compare)
		live := 0
		for _, alloc := range allocs {
			if !alloc.TerminalStatus() {
				live++
			}
		}
		if !slices.Equal(allocs, row.list()) || row.count != len(allocs) || row.live != live {
			m.rt.Errorf("row %q has %d allocations, %d live; want %d, %d", row.key, row.count, row.live, len(allocs), live)
		}
	}
	if seen != len(want) {
		m.rt.Errorf("there are %d rows, want %d", seen, len(want))
	}
}

func (m *machine) checkUsage(want map[string]*structs.NodeUsage) {
	for _, node := range []string{"n1", "n2"} {
		expect := want[node]
		if expect == nil {
			expect = noUsage
		}
		got := m.store.NodeUsage(node)
		if got.CPU != expect.CPU || got.MemoryMB != expect.MemoryMB || got.DiskMB != expect.DiskMB ||
			got.Allocs != expect.Allocs || !slices.Equal(got.Ports, expect.Ports) {
			m.rt.Errorf("usage of %s is %+v, its allocations make %+v", node, got, expect)
		}
	}
}

func (m *machine) checkSpecs(refs map[string]int) {
	for _, table := range []string{TableJobs, TableJobVersions} {
		for job := range scan[*structs.Job](m.store.head(), nil, table, indexID, "") {
			refs[specKey(*job.Namespace, *job.ID, job.JobModifyIndex)]++
		}
	}
	for d := range m.store.Deployments(nil, "*") {
		refs[specKey(d.Namespace, d.JobID, d.JobSpecModifyIndex)]++
	}
	seen := 0
	for row := range scan[*specRow](m.store.head(), nil, TableJobSpecs, indexID, "") {
		seen++
		if row.Refs != refs[row.key()] || row.Refs == 0 {
			m.rt.Errorf("specification %q counts %d references, there are %d", row.key(), row.Refs, refs[row.key()])
		}
	}
	if seen != len(refs) {
		m.rt.Errorf("there are %d specifications, want %d", seen, len(refs))
	}
}
