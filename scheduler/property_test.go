package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/scheduler/schedtest"
	"github.com/nomadlite/nomadlite/structs"
)

// machine lets a random cluster live: nodes come and go, jobs change, allocations report. After each evaluation the
// invariants of semantics hold.
type machine struct {
	c     *schedtest.Cluster
	p     *schedtest.Planner
	nodes int
	kind  string
}

func TestClusterInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := schedtest.New()
		m := &machine{c: c, p: &schedtest.Planner{Cluster: c}, kind: rapid.SampledFrom([]string{"service", "batch", "system", "sysbatch"}).Draw(t, "kind")}
		m.addNode(t)
		m.addNode(t)
		m.register(t)
		t.Repeat(map[string]func(*rapid.T){
			"add node":    m.addNode,
			"change node": m.changeNode,
			"register":    m.register,
			"stop job":    m.stopJob,
			"report":      m.report,
			"ask to move": m.askToMove,
			"wait":        m.wait,
			"evaluate":    m.evaluate,
		})
	})
}

func (m *machine) addNode(t *rapid.T) {
	if m.nodes >= 6 {
		return
	}
	m.nodes++
	n := schedtest.Node(fmt.Sprintf("n%d", m.nodes))
	n.NodeResources.Cpu.CpuShares = int64(rapid.IntRange(1, 4).Draw(t, "cpu") * 500)
	m.c.PutNode(n)
}

func (m *machine) changeNode(t *rapid.T) {
	id := fmt.Sprintf("n%d", rapid.IntRange(1, m.nodes).Draw(t, "node"))
	if m.c.Node(id) == nil {
		return
	}
	status := rapid.SampledFrom([]string{"ready", "ready", "down", "disconnected", "drain", "ineligible"}).Draw(t, "status")
	m.c.EditNode(id, func(n *structs.Node) {
		n.Status, n.SchedulingEligibility, n.DrainStrategy = structs.NodeStatusReady, structs.NodeEligible, nil
		n.StatusUpdatedAt = m.c.Now.Unix()
		switch status {
		case "drain":
			n.DrainStrategy, n.SchedulingEligibility = &structs.DrainStrategy{}, structs.NodeIneligible
		case "ineligible":
			n.SchedulingEligibility = structs.NodeIneligible
		default:
			n.Status = status
		}
	})
	if m.c.Node(id).Status != structs.NodeStatusReady {
		return
	}
	// Heard again: what was unknown is as the node says.
	for _, a := range m.c.AllocsByNode(id) {
		if a.Condition.Status == structs.ConditionUnknown {
			m.c.EditAlloc(a.ID, func(a *structs.Allocation) { a.Condition = structs.Condition{Status: structs.ConditionOK} })
		}
	}
}

func (m *machine) register(t *rapid.T) {
	j := schedtest.Job("a", m.kind, rapid.IntRange(0, 5).Draw(t, "count"))
	tg := j.TaskGroups[0]
	tg.Tasks[0].Env = map[string]string{"v": rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version")}
	if rapid.Bool().Draw(t, "port") {
		tg.Networks = []*structs.NetworkResource{{ReservedPorts: []structs.Port{{Label: "http", Value: 8080}}}}
	}
	if m.kind == "service" {
		tg.Update = &structs.UpdateStrategy{MaxParallel: structs.Ptr(rapid.IntRange(0, 2).Draw(t, "parallel"))}
	}
	if rapid.Bool().Draw(t, "disconnect") {
		tg.Disconnect = &structs.DisconnectStrategy{
			LostAfter: structs.Ptr(time.Duration(rapid.IntRange(0, 2).Draw(t, "lost after")) * time.Minute),
			Replace:   structs.Ptr(rapid.Bool().Draw(t, "replace")),
			Reconcile: structs.Ptr(rapid.SampledFrom([]string{
				"best_score", "keep_original", "keep_replacement", "longest_running"}).Draw(t, "reconcile")),
		}
	}
	if rapid.Bool().Draw(t, "distinct") {
		tg.Constraints = []*structs.Constraint{{Operand: "distinct_hosts", RTarget: "true"}}
	}
	m.c.PutJob(j)
}

func (m *machine) stopJob(t *rapid.T) {
	j := m.c.Job("", "a").Copy()
	j.Stop = true
	m.c.PutJob(j)
}

// pick gives an allocation whose node is there to report.
func (m *machine) pick(t *rapid.T) *structs.Allocation {
	var heard []string
	for _, a := range m.c.Allocs() {
		if n := m.c.Node(a.NodeID); n != nil && n.Status == structs.NodeStatusReady && !a.ObservedTerminal() {
			heard = append(heard, a.ID)
		}
	}
	if len(heard) == 0 {
		t.Skip("nothing runs")
	}
	return m.find(rapid.SampledFrom(heard).Draw(t, "alloc"))
}

func (m *machine) report(t *rapid.T) {
	a := m.pick(t)
	// A node starts a replacement only after the end of the one before.
	if prev := m.find(a.PreviousAllocation); prev != nil && prev.ServerTerminal() && !prev.ClientTerminal() {
		a = prev
		if n := m.c.Node(a.NodeID); n == nil || n.Status != structs.NodeStatusReady {
			t.Skip("its predecessor cannot be heard")
		}
	}
	choices := []string{"running", "running", "complete", "failed"}
	if a.ServerTerminal() {
		choices = []string{"complete", "failed"}
	}
	status := rapid.SampledFrom(choices).Draw(t, "observed")
	m.c.EditAlloc(a.ID, func(a *structs.Allocation) {
		a.ObservedStatus = status
		if a.DeploymentID != "" && status == "running" {
			a.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: structs.Ptr(rapid.Bool().Draw(t, "healthy"))}
		}
	})
}

func (m *machine) find(id string) *structs.Allocation {
	for _, a := range m.c.Allocs() {
		if a.ID == id {
			return a
		}
	}
	return nil
}

func (m *machine) askToMove(t *rapid.T) {
	m.c.EditAlloc(m.pick(t).ID, func(a *structs.Allocation) { a.DesiredTransition.Migrate = structs.Ptr(true) })
}

func (m *machine) wait(t *rapid.T) {
	m.c.Now = m.c.Now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
}

func (m *machine) evaluate(t *rapid.T) {
	eval, err := m.p.Evaluate("a", m.kind, structs.EvalTriggerJobRegister, nil)
	if err != nil {
		t.Fatal(err)
	}
	if eval.Status != structs.EvalStatusComplete {
		t.Fatalf("evaluation: %+v", eval)
	}
	m.checkNames(t)
	m.checkNodes(t)
	if m.system() {
		m.checkEachNode(t, eval)
	} else {
		m.checkCount(t, eval)
	}
	if len(eval.FailedTGAllocs) > 0 {
		return // what could not be placed may be, under another name or beside others, when it is asked again
	}
	// The same once more changes nothing.
	plans, allocs := len(m.p.Plans), len(m.c.Allocs())
	if _, err := m.p.Evaluate("a", m.kind, structs.EvalTriggerJobRegister, nil); err != nil {
		t.Fatal(err)
	}
	if len(m.c.Allocs()) != allocs {
		t.Fatalf("run again it placed more; first%s\nthen%s", m.describe(m.p.Plans[plans-1]), m.describe(m.p.Plans[len(m.p.Plans)-1]))
	}
	if len(m.p.Plans) != plans {
		t.Fatalf("run again it planned%s", m.describe(m.p.Plans[len(m.p.Plans)-1]))
	}
}

// describe tells what a plan does, and what there was before it.
func (m *machine) describe(p *structs.Plan) string {
	out := fmt.Sprintf(" deployment=%v updates=%d", p.Deployment != nil, len(p.DeploymentUpdates))
	for _, stops := range p.Stops {
		for _, s := range stops {
			out += fmt.Sprintf("\n  stop %+v", *s)
		}
	}
	for _, places := range p.Places {
		for _, a := range places {
			out += fmt.Sprintf("\n  place %s %s after %s", a.ID, a.Name, a.PreviousAllocation)
		}
	}
	for _, a := range m.c.Allocs() {
		out += fmt.Sprintf("\n  there is %s %s v%d on %s (%s): %s %s %s after %q: %s", a.ID, a.Name, a.JobVersion, a.NodeID,
			m.c.Node(a.NodeID).Status, a.DesiredStatus, a.ClientStatus, a.Condition.Status, a.PreviousAllocation, a.DesiredDescription)
	}
	return out
}

// checkNames looks for two of one name that both may run, though nothing makes the newer wait for the older.
func (m *machine) checkNames(t *rapid.T) {
	all := m.c.Allocs()
	for i, a := range all {
		if a.ClientTerminal() || a.Condition.Status == structs.ConditionUnknown {
			continue
		}
		for _, b := range all[i+1:] {
			if b.Name != a.Name || (m.system() && a.NodeID != b.NodeID) || b.ClientTerminal() || b.Condition.Status == structs.ConditionUnknown {
				continue
			}
			if !a.ServerTerminal() && !b.ServerTerminal() {
				t.Fatalf("%s and %s both run as %s", a.ID, b.ID, a.Name)
			}
			// Stopping ones are waited for, unless a disconnect let both run: then one of them ends for the other.
			if a.ServerTerminal() && !b.ServerTerminal() && a.DesiredDescription != "alloc not needed due to disconnected client reconnect" &&
				!m.waits(b, a) {
				t.Fatalf("%s runs as %s while %s stops, and does not wait for it", b.ID, b.Name, a.ID)
			}
		}
	}
}

// waits says that b follows a in a chain of replacements.
func (m *machine) waits(b, a *structs.Allocation) bool {
	for at := b; at != nil && at.PreviousAllocation != ""; at = m.find(at.PreviousAllocation) {
		if at.PreviousAllocation == a.ID {
			return true
		}
	}
	return false
}

// checkNodes adds up what is on each node. Of a chain in which each waits for the one before, the largest counts.
func (m *machine) checkNodes(t *rapid.T) {
	for n := range m.c.Nodes() {
		var cpu int64
		ports := map[uint16]string{}
		heirs := map[string]bool{}
		allocs := m.c.AllocsByNode(n.ID)
		for _, a := range allocs {
			if prev := m.find(a.PreviousAllocation); prev != nil && a.HoldsResources() && prev.NodeID == n.ID && prev.ServerTerminal() {
				heirs[prev.ID] = true
			}
		}
		for _, a := range allocs {
			if !a.HoldsResources() || heirs[a.ID] {
				continue
			}
			c := a.AllocatedResources.Comparable()
			cpu += c.CPU
			for _, port := range c.Ports {
				if other := ports[port]; other != "" {
					t.Fatalf("port %d of %s was given to %s and %s", port, n.ID, other, a.ID)
				}
				ports[port] = a.ID
			}
		}
		if cpu > n.NodeResources.Cpu.CpuShares {
			t.Fatalf("node %s holds %d of %d MHz", n.ID, cpu, n.NodeResources.Cpu.CpuShares)
		}
	}
}

func (m *machine) system() bool { return m.kind == "system" || m.kind == "sysbatch" }

// checkEachNode looks whether each node that is ready has what a system job wants there, but for those that had no room.
func (m *machine) checkEachNode(t *rapid.T, eval *structs.Evaluation) {
	job := m.c.Job("", "a")
	missing := 0
	for n := range m.c.Nodes() {
		want := n.Ready() && !job.Stop && *job.TaskGroups[0].Count > 0
		has := 0
		for _, a := range m.c.AllocsByNode(n.ID) {
			rerun := m.kind == "sysbatch" && a.JobVersion != job.Version || m.kind == "system" && a.ClientStatus == "complete"
			if !a.ServerTerminal() && !(a.ClientTerminal() && (rerun || !want)) {
				has++
			}
		}
		switch {
		case want && has == 0:
			missing++
		case has > 1 || has > 0 && (job.Stop || *job.TaskGroups[0].Count == 0):
			t.Fatalf("node %s has %d", n.ID, has)
		}
	}
	if missing > eval.QueuedAllocations["web"] {
		t.Fatalf("%d nodes have nothing, %d queued", missing, eval.QueuedAllocations["web"])
	}
}

// checkCount looks whether the group has its count: never more, and less only when the evaluation says why.
func (m *machine) checkCount(t *rapid.T, eval *structs.Evaluation) {
	job := m.c.Job("", "a")
	want := *job.TaskGroups[0].Count
	if job.Stop {
		want = 0
	}
	names := map[string]bool{}
	for _, a := range m.c.AllocsByJob("", "a") {
		switch {
		case a.ServerTerminal():
			continue
		case a.ClientTerminal() && a.NextAllocation != "":
			continue // it ended after it was replaced
		case a.ClientTerminal() && (job.Stop || m.kind == "batch" && a.JobVersion != job.Version):
			continue
		}
		names[a.Name] = true
	}
	queued := eval.QueuedAllocations["web"]
	if len(names) > want+queued {
		t.Fatalf("%d places are taken, %d wanted:%s", len(names), want, m.describe(m.p.Plans[len(m.p.Plans)-1]))
	}
	if len(names) < want-queued {
		t.Fatalf("%d places are taken, %d wanted, %d queued", len(names), want, queued)
	}
}
