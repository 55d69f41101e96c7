package endpoint

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// The public Go client speaks to the handlers as it does to the system it was made for.
func officialClient(t *testing.T, s *server) *nomad.Client {
	t.Helper()
	client, err := nomad.NewClient(&nomad.Config{Address: s.url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func officialJob() *nomad.Job {
	task := nomad.NewTask("task1", "raw_exec").SetConfig("command", "/bin/sleep").
		Require(&nomad.Resources{CPU: structs.Ptr(100), MemoryMB: structs.Ptr(256)}).
		SetLogConfig(&nomad.LogConfig{MaxFiles: structs.Ptr(1), MaxFileSizeMB: structs.Ptr(2)})
	group := nomad.NewTaskGroup("group1", 1).AddTask(task).RequireDisk(&nomad.EphemeralDisk{SizeMB: structs.Ptr(25)})
	return nomad.NewBatchJob("job1", "redis", "global", 1).AddDatacenter("dc1").AddTaskGroup(group)
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestOfficialClientJobs(t *testing.T) {
	s := newServer(t)
	jobs := officialClient(t, s).Jobs()

	allocs, meta, err := jobs.Allocations("job1", true, nil)
	if err != nil || len(allocs) != 0 || meta.LastIndex != 0 || !meta.KnownLeader {
		t.Fatalf("allocations of nothing: %v, %+v, %v", allocs, meta, err)
	}
	if _, _, err := jobs.EnforceRegister(officialJob(), 10, nil); err == nil || !contains(err, nomad.RegisterEnforceIndexErrPrefix) {
		t.Fatalf("enforced: %v", err)
	}
	registered, wrote, err := jobs.RegisterOpts(officialJob(), &nomad.RegisterOptions{
		EvalPriority: 99, Submission: &nomad.JobSubmission{Source: "text", Format: "hcl2", VariableFlags: map[string]string{"X": "x"}},
	}, nil)
	if err != nil || registered.EvalID == "" || wrote.LastIndex == 0 {
		t.Fatalf("registered %+v at %+v, %v", registered, wrote, err)
	}
	stubs, read, err := jobs.List(nil)
	if err != nil || len(stubs) != 1 || stubs[0].ID != "job1" || read.LastIndex == 0 {
		t.Fatalf("listed %+v, %v", stubs, err)
	}
	info, _, err := jobs.Info("job1", nil)
	if err != nil || *info.ID != "job1" || *info.TaskGroups[0].Tasks[0].Resources.CPU != 100 || *info.Status != "pending" {
		t.Fatalf("info %+v, %v", info, err)
	}
	submission, _, err := jobs.Submission("job1", 0, nil)
	if err != nil || submission.Source != "text" || submission.VariableFlags["X"] != "x" {
		t.Fatalf("submission %+v, %v", submission, err)
	}
	versions, diffs, _, err := jobs.Versions("job1", false, nil)
	if err != nil || len(versions) != 1 || len(diffs) != 0 {
		t.Fatalf("versions %+v, %v", versions, err)
	}
	summary, _, err := jobs.Summary("job1", nil)
	if _, ok := summary.Summary["group1"]; err != nil || !ok {
		t.Fatalf("summary %+v, %v", summary, err)
	}
	scale, _, err := jobs.ScaleStatus("job1", nil)
	if err != nil || scale.TaskGroups["group1"].Desired != 1 {
		t.Fatalf("scale %+v, %v", scale, err)
	}
	deployment, _, err := jobs.LatestDeployment("job1", nil)
	if err != nil || deployment != nil {
		t.Fatalf("deployment %+v, %v", deployment, err)
	}
	evalID, wrote, err := jobs.ForceEvaluate("job1", nil)
	if err != nil || evalID == "" || wrote.LastIndex == 0 {
		t.Fatalf("evaluated %q, %v", evalID, err)
	}
	valid, _, err := jobs.Validate(officialJob(), nil)
	if err != nil || len(valid.ValidationErrors) != 0 {
		t.Fatalf("validated %+v, %v", valid, err)
	}
	parsed := must[*nomad.Job](t)(jobs.ParseHCL("job \"web\" {\n group \"g\" {\n task \"t\" {\n driver = \"raw_exec\"\n}\n}\n}\n", true))
	if *parsed.ID != "web" {
		t.Fatalf("parsed %+v", parsed)
	}
	evalID, _, err = jobs.DeregisterOpts("job1", &nomad.DeregisterOptions{EvalPriority: 97, NoShutdownDelay: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	eval, _, err := officialClient(t, s).Evaluations().Info(evalID, nil)
	if err != nil || eval.Priority != 97 {
		t.Fatalf("evaluation %+v, %v", eval, err)
	}
	if _, _, err := jobs.Deregister("job1", true, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := jobs.Deregister("nope", false, nil); err != nil {
		t.Fatalf("stopping what is not there: %v", err)
	}
	_, _, err = jobs.Info("job1", nil)
	var answer nomad.UnexpectedResponseError
	if !errors.As(err, &answer) || answer.StatusCode() != http.StatusNotFound || answer.Body() != "job not found" {
		t.Fatalf("info of a purged job: %v", err)
	}
}

func TestOfficialClientAllocationsEvaluationsAndNodes(t *testing.T) {
	s := newServer(t)
	client := officialClient(t, s)
	node := s.addNode()
	registered, wrote, err := client.Jobs().Register(officialJob(), nil)
	if err != nil {
		t.Fatal(err)
	}

	// A blocking list answers once the allocation is there.
	type listed struct {
		allocs []*nomad.AllocationListStub
		err    error
	}
	answer := make(chan listed, 1)
	go func() {
		allocs, _, err := client.Allocations().List(&nomad.QueryOptions{WaitIndex: wrote.LastIndex, WaitTime: 10 * time.Second})
		answer <- listed{allocs, err}
	}()
	alloc := s.place("job1", registered.EvalID, node)
	if got := <-answer; got.err != nil || len(got.allocs) != 1 || got.allocs[0].EvalID != registered.EvalID || got.allocs[0].AllocatedResources != nil {
		t.Fatalf("listed %+v, %v", got.allocs, got.err)
	}
	s.observe(alloc, structs.AllocClientStatusRunning)
	info, _, err := client.Allocations().Info(alloc.ID, nil)
	if err != nil || info.ClientStatus != "running" || *info.Job.ID != "job1" || info.TaskStates["task"].State != "running" {
		t.Fatalf("info %+v, %v", info, err)
	}
	stopped, err := client.Allocations().Stop(&nomad.Allocation{ID: alloc.ID}, &nomad.QueryOptions{Params: map[string]string{"no_shutdown_delay": "true"}})
	if err != nil || stopped.EvalID == "" || stopped.LastIndex == 0 {
		t.Fatalf("stopped %+v, %v", stopped, err)
	}
	info, _, err = client.Allocations().Info(alloc.ID, nil)
	if err != nil || !info.DesiredTransition.ShouldIgnoreShutdownDelay() {
		t.Fatalf("transition %+v, %v", info.DesiredTransition, err)
	}

	evals, _, err := client.Evaluations().List(nil)
	if err != nil || len(evals) != 2 || evals[len(evals)-1].ID != registered.EvalID { // the client sorts the newest first
		t.Fatalf("evaluations %+v, %v", evals, err)
	}
	if _, err := client.Evaluations().Delete([]string{registered.EvalID}, nil); err == nil || !contains(err, "eval broker is enabled") {
		t.Fatalf("deleted: %v", err)
	}
	count, _, err := client.Evaluations().Count(nil)
	if err != nil || count.Count != 2 {
		t.Fatalf("counted %+v, %v", count, err)
	}

	nodes, _, err := client.Nodes().PrefixList(node.ID[:4])
	if err != nil || len(nodes) != 1 || nodes[0].Status != "ready" {
		t.Fatalf("nodes %+v, %v", nodes, err)
	}
	read, _, err := client.Nodes().Info(node.ID, nil)
	if err != nil || read.NodeResources.MinDynamicPort != 20000 {
		t.Fatalf("node %+v, %v", read, err)
	}
	if _, err := client.Nodes().ToggleEligibility(node.ID, false, nil); err != nil {
		t.Fatal(err)
	}
	onNode, _, err := client.Nodes().Allocations(node.ID, nil)
	if err != nil || len(onNode) != 1 {
		t.Fatalf("allocations on the node %+v, %v", onNode, err)
	}
	if _, _, err := client.Nodes().ForceEvaluate(node.ID, nil); err != nil {
		t.Fatal(err)
	}
	purged, meta, err := client.Nodes().Purge(node.ID, nil)
	if err != nil || purged == nil || meta.LastIndex == 0 {
		t.Fatalf("purged %+v, %v", purged, err)
	}
}

func TestOfficialClientIsToldOfUnknownAllocations(t *testing.T) {
	client := officialClient(t, newServer(t))
	id := "8e231cf4-ca48-43ff-b694-5801e69e22fa"
	code, err := client.Allocations().Exec(t.Context(), &nomad.Allocation{ID: id, NodeID: id}, "t", false, []string{"true"}, strings.NewReader(""), io.Discard, io.Discard, nil, nil)
	if code != -2 || err == nil || err.Error() != `Unknown allocation "`+id+`"` {
		t.Errorf("exec: %d, %v", code, err)
	}
}

func TestOfficialClientCluster(t *testing.T) {
	s := newServer(t)
	client := officialClient(t, s)
	if leader := must[string](t)(client.Status().Leader()); leader == "" {
		t.Error("no leader")
	}
	if err := client.System().GarbageCollect(); err != nil {
		t.Error(err)
	}
	if members := must[*nomad.ServerMembers](t)(client.Agent().Members()); len(members.Members) != 1 {
		t.Errorf("members %+v", members)
	}
	if raft := must[*nomad.RaftConfiguration](t)(client.Operator().RaftGetConfiguration(nil)); len(raft.Servers) != 1 || !raft.Servers[0].Leader || !raft.Servers[0].Voter {
		t.Errorf("raft %+v", raft)
	}
	metrics, _, err := client.Operator().MetricsSummary(nil)
	if err != nil || len(metrics.Gauges) == 0 || len(metrics.Counters) == 0 || len(metrics.Samples) == 0 || len(metrics.Points) != 0 {
		t.Errorf("metrics %+v, %v", metrics, err)
	}
	s.apply(fsm.KindKeyringUpsert, &fsm.KeyringUpsert{Key: &structs.RootKey{RootKeyMeta: structs.RootKeyMeta{KeyID: "first", State: "active"}}, Now: 1})
	key, _, err := client.Keyring().Rotate(nil, nil)
	if err != nil || key.KeyID == "" {
		t.Fatalf("rotated %+v, %v", key, err)
	}
	if keys, _, err := client.Keyring().List(&nomad.QueryOptions{WaitIndex: key.CreateIndex}); err != nil || len(keys) != 2 {
		t.Fatalf("keys %+v, %v", keys, err)
	}
	if _, err := client.Keyring().Delete(&nomad.KeyringDeleteOptions{KeyID: "first", Force: true}, nil); err != nil {
		t.Error(err)
	}
	if _, err := client.Namespaces().Register(&nomad.Namespace{Name: "team"}, nil); err != nil {
		t.Error(err)
	}
	if _, err := client.NodePools().Register(&nomad.NodePool{Name: "dev", NodeIdentityTTL: 720 * time.Hour}, nil); err != nil {
		t.Error(err)
	}
	pool, _, err := client.NodePools().Info("dev", nil)
	if err != nil || pool.NodeIdentityTTL != 720*time.Hour {
		t.Errorf("pool %+v, %v", pool, err)
	}
	if _, _, err := client.NodePools().Info("node/pool", nil); err == nil || !contains(err, "not found") {
		t.Errorf("pool with a slash: %v", err)
	}
	if _, err := client.NodePools().Delete("dev", nil); err != nil {
		t.Error(err)
	}
	found, _, err := client.Search().PrefixSearch("te", "namespaces", nil)
	if err != nil || len(found.Matches["namespaces"]) != 1 {
		t.Errorf("found %+v, %v", found, err)
	}
	cfg, _, err := client.Operator().SchedulerGetConfiguration(nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.SchedulerConfig.PauseEvalBroker = true
	updated, _, err := client.Operator().SchedulerCASConfiguration(cfg.SchedulerConfig, nil)
	if err != nil || !updated.Updated {
		t.Errorf("updated %+v, %v", updated, err)
	}
}

func contains(err error, text string) bool {
	var answer nomad.UnexpectedResponseError
	return errors.As(err, &answer) && strings.Contains(answer.Error(), text)
}
