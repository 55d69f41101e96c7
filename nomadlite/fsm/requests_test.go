package fsm

import (
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// sample is one entry of a log that uses each command.
type sample struct {
	kind Kind
	req  any
}

// samples makes a log: each command is in it at least once, in an order that makes sense. The golden files hold the
// bytes of the first of each kind.
func samples() []sample {
	ptr := structs.Ptr[bool]
	at := func(n int64) int64 { return 1_700_000_000_000_000_000 + n }
	job := func(meta string) *structs.Job {
		return &structs.Job{ID: structs.Ptr("web"), Name: structs.Ptr("web"), Namespace: structs.Ptr("default"), Type: structs.Ptr("service"),
			NodePool: structs.Ptr("default"), Priority: structs.Ptr(50), Meta: map[string]string{"m": meta},
			TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g"), Count: structs.Ptr(2), ShutdownDelay: structs.Ptr(3 * time.Second),
				Tasks: []*structs.Task{{Name: "t", Driver: "raw_exec", Config: map[string]any{"command": "sleep", "args": []any{"1"}}}}}}}
	}
	eval := func(id, status string) *structs.Evaluation {
		return &structs.Evaluation{ID: id, Namespace: "default", JobID: "web", Type: "service", Priority: 50, Status: status,
			TriggeredBy: structs.EvalTriggerJobRegister, QueuedAllocations: map[string]int{"g": 1}}
	}
	alloc := func(id string) *structs.Allocation {
		return &structs.Allocation{ID: id, Name: "web.g[0]", TaskGroup: "g", NodeID: "n1", EvalID: "e1", DeploymentID: "d1",
			AllocatedResources: &structs.AllocatedResources{Shared: structs.AllocatedSharedResources{DiskMB: 10,
				Ports: []structs.PortMapping{{Label: "http", Value: 20000}}}}}
	}
	canary := func(id string) *structs.Allocation {
		a := alloc(id)
		a.NodeID, a.DeploymentID, a.DeploymentStatus = "n2", "d2", &structs.AllocDeploymentStatus{Canary: true}
		return a
	}
	node := func(id string) *structs.Node {
		return &structs.Node{ID: id, Name: id, SecretID: "s-" + id, Datacenter: "dc1", NodePool: "default", Status: "ready",
			Attributes: map[string]string{"kernel.name": "linux"}, NodeResources: &structs.NodeResources{}}
	}
	template := func(id string) *structs.Job {
		j := job("1")
		j.ID, j.Name, j.Type = &id, &id, structs.Ptr("batch")
		if id == "cron" {
			j.Periodic = &structs.PeriodicConfig{Enabled: structs.Ptr(true), Spec: structs.Ptr("@hourly"), SpecType: structs.Ptr("cron")}
		} else {
			j.ParameterizedJob = &structs.ParameterizedJobConfig{Payload: "optional", MetaOptional: []string{"k"}}
		}
		return j
	}
	return append([]sample{
		{KindClusterMeta, ClusterMeta{ClusterID: "c1", Now: at(1)}},
		{KindKeyringUpsert, KeyringUpsert{Key: &structs.RootKey{RootKeyMeta: structs.RootKeyMeta{KeyID: "k1", Algorithm: "aes256-gcm", State: "active"},
			WrappedKey: []byte{1, 2, 3}, Nonce: []byte{4}, KEKID: "kek", PublicKey: []byte{5}}, Now: at(2)}},
		{KindSchedulerConfig, SchedulerConfig{Config: &structs.SchedulerConfiguration{SchedulerAlgorithm: "spread"}}},
		{KindNamespaceUpsert, NamespaceUpsert{Namespaces: []*structs.Namespace{{Name: "apps"}, {Name: "gone"}}}},
		{KindNodePoolUpsert, NodePoolUpsert{Pools: []*structs.NodePool{{Name: "gpu", Description: "d"}, {Name: "gone"}}}},
		{KindNodeRegister, NodeRegister{Node: node("n1"), Now: at(3)}},
		{KindNodeRegister, NodeRegister{Node: node("n2"), Now: at(3)}},
		{KindJobRegister, JobRegister{Job: job("1"), Submission: &structs.JobSubmission{Source: "job web {}", Format: "hcl2"},
			Eval: eval("e1", "pending"), Now: at(4)}},
		{KindPlanApply, PlanApply{Plans: []*structs.Plan{{EvalID: "e1", Namespace: "default", JobID: "web", JobModifyIndex: 9,
			Places: map[string][]*structs.Allocation{"n1": {alloc("a1"), alloc("a2")}},
			Deployment: &structs.Deployment{ID: "d1", Namespace: "default", JobID: "web", JobSpecModifyIndex: 9, Status: "running",
				TaskGroups: map[string]*structs.DeploymentState{"g": {DesiredTotal: 2, ProgressDeadline: time.Minute}}}}}, Now: at(5)}},
		{KindEvalUpdate, EvalUpdate{Evals: []*structs.Evaluation{eval("e1", "complete"), eval("e2", "blocked")}, Now: at(6)}},
		{KindAllocObserve, AllocObserve{Observations: []*structs.AllocObservation{{AllocID: "a1", ObservedStatus: "running",
			TaskStates:       map[string]*structs.TaskState{"t": {State: "running", StartedAt: time.Unix(1700000000, 5).UTC()}},
			DeploymentStatus: &structs.AllocDeploymentStatus{Healthy: ptr(true)}}}, Now: at(7)}},
		{KindServiceUpsert, ServiceUpsert{Services: []*structs.ServiceRegistration{
			{ID: "_nomad-task-a1-group-g-web-http", ServiceName: "web", NodeID: "n1", AllocID: "a1", Tags: []string{"x"}, Address: "10.0.0.1", Port: 20000},
			{ID: "_nomad-task-a1-t-db-", ServiceName: "db", NodeID: "n1", AllocID: "a1", Address: "10.0.0.1"}}}},
		{KindServiceDelete, ServiceDelete{Services: []ServiceRef{{Namespace: "default", ID: "_nomad-task-a1-t-db-", NodeID: "n1"}}}},
		{KindAllocTransition, AllocTransition{Transitions: map[string]*structs.DesiredTransition{
			"a1": {NoShutdownDelay: ptr(true), KillTimeout: structs.Ptr(time.Second)}}, Now: at(8)}},
		{KindNodeEvents, NodeEvents{Events: map[string][]*structs.NodeEvent{"n1": {{Message: "m", Timestamp: time.Unix(1700000000, 0).UTC()}}}}},
		{KindNodeEligibility, NodeEligibility{NodeID: "n2", Eligibility: "ineligible", Now: at(9)}},
		{KindNodeMaintenance, NodeMaintenance{NodeID: "n1", Maintenance: &structs.NodeMaintenance{
			Since: time.Unix(1700000000, 0).UTC(), Until: time.Unix(1700001200, 0).UTC(), Reason: "new disk"}, Now: at(9)}},
		{KindNodeDrain, NodeDrain{NodeID: "n2", Strategy: &structs.DrainStrategy{DrainSpec: structs.DrainSpec{Deadline: time.Hour}}, Now: at(10)}},
		{KindNodeStatus, NodeStatus{Updates: []NodeStatusUpdate{{NodeID: "n1", Status: "disconnected",
			Conditions: map[string]structs.Condition{"a2": {Status: "unknown", Since: time.Unix(1700000000, 0).UTC()}}}}, Now: at(11)}},
		{KindPlanApply, PlanApply{Plans: []*structs.Plan{{EvalID: "e1", Namespace: "default", JobID: "web", JobModifyIndex: 9,
			Places: map[string][]*structs.Allocation{"n2": {canary("c1")}},
			Deployment: &structs.Deployment{ID: "d2", Namespace: "default", JobID: "web", JobSpecModifyIndex: 9, Status: "running",
				TaskGroups: map[string]*structs.DeploymentState{"g": {DesiredTotal: 2, DesiredCanaries: 1, ProgressDeadline: time.Minute}}}}}, Now: at(11)}},
		{KindAllocObserve, AllocObserve{Observations: []*structs.AllocObservation{{AllocID: "c1", ObservedStatus: "running",
			DeploymentStatus: &structs.AllocDeploymentStatus{Healthy: ptr(true)}}}, Now: at(11)}},
		{KindDeploymentPromote, DeploymentPromote{DeploymentID: "d2", Groups: []string{"g"}, Eval: eval("e7", "pending"), Now: at(11)}},
		{KindJobScale, JobScale{Namespace: "default", JobID: "web", Group: "g", Count: structs.Ptr[int64](3), JobModifyIndex: 9,
			Event: structs.ScalingEvent{Message: "more", Meta: map[string]any{"by": "hand"}}, Eval: eval("e5", "pending"), Now: at(12)}},
		{KindDeploymentHealth, DeploymentHealth{DeploymentID: "d1", Unhealthy: []string{"a2"}, Eval: eval("e6", "pending"), Now: at(12)}},
		{KindDeploymentStatus, DeploymentStatus{Update: &structs.DeploymentStatusUpdate{DeploymentID: "d1", Status: "successful"}, Now: at(12)}},
		{KindJobRegister, JobRegister{Job: job("2"), Eval: eval("e3", "pending"), Now: at(13)}},
		{KindJobVersionTag, JobVersionTag{Namespace: "default", JobID: "web", Name: "golden", Version: 0, Tag: &structs.JobVersionTag{Name: "golden"}}},
		{KindJobStability, JobStability{Namespace: "default", JobID: "web", Version: 1, Stable: true}},
		{KindJobDeregister, JobDeregister{Namespace: "default", JobID: "web", NoShutdownDelay: true, KillTimeout: structs.Ptr(time.Second),
			Eval: eval("e4", "pending"), Now: at(14)}},
		{KindJobRegister, JobRegister{Job: template("cron"), Now: at(14)}},
		{KindPeriodicLaunch, PeriodicLaunch{Namespace: "default", JobID: "cron", Time: at(20), EvalID: "e8", Now: at(21)}},
		{KindJobRegister, JobRegister{Job: template("form"), Now: at(14)}},
		{KindJobDispatch, JobDispatch{Namespace: "default", JobID: "form", ChildID: "form/dispatch-1-ab", EvalID: "e9", Now: at(14),
			Payload: []byte{1, 2}, Meta: map[string]string{"k": "v"}, Priority: 60, IdempotencyToken: "once"}},
		{KindReconcileSummaries, ReconcileSummaries{}},
		{KindEvalDelete, EvalDelete{IDs: []string{"e2"}}},
		{KindNodeDeregister, NodeDeregister{NodeIDs: []string{"n2"}, Reason: "left", Now: at(15)}},
		{KindReap, Reap{Evals: []string{"e1"}, Allocs: []string{"a9"}, Deployments: []string{"d9"}, Nodes: []string{"n9"},
			Jobs: []structs.NamespacedID{{Namespace: "default", ID: "old"}}, Reason: "gc", Now: at(16)}},
		{KindKeyringDelete, KeyringDelete{KeyID: "k0"}},
		{KindNodePoolDelete, NodePoolDelete{Names: []string{"gone"}}},
		{KindNamespaceDelete, NamespaceDelete{Names: []string{"gone"}}},
	}, leavingSamples(at)...)
}

// leavingSamples are of a node that begins to leave, comes back and begins anew.
func leavingSamples(at func(int64) int64) []sample {
	return []sample{
		{KindNodeLeave, NodeLeave{NodeID: "n1", Agent: "p1", Now: at(10), Drain: &structs.DrainStrategy{
			DrainSpec: structs.DrainSpec{Deadline: time.Hour}}, Event: &structs.NodeEvent{Message: "Node is leaving"}}},
		{KindNodeStatus, NodeStatus{Updates: []NodeStatusUpdate{{NodeID: "n1", EndLeaving: true, Agent: "p2"}}, Now: at(10)}},
		{KindNodeLeave, NodeLeave{NodeID: "n1", Agent: "p2", Now: at(10)}},
	}
}
