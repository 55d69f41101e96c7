package endpoint

import (
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// Our own client and the handlers mean the same paths, parameters and shapes.
func ownClient(t *testing.T, s *server) (*api.Client, func(what string, ok bool, err error)) {
	t.Helper()
	client, err := api.NewClient(api.Config{Address: s.url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client, func(what string, ok bool, err error) {
		t.Helper()
		if err != nil || !ok {
			t.Errorf("%s: %t, %v", what, ok, err)
		}
	}
}

func TestOwnClientJobs(t *testing.T) {
	s := newServer(t)
	ctx := t.Context()
	client, check := ownClient(t, s)
	node := s.addNode()

	registered, wrote, err := client.Jobs().Register(ctx, job("web"), &api.RegisterOptions{EvalPriority: 80,
		Submission: &structs.JobSubmission{Source: "text"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	check("register", registered.EvalID != "" && wrote.LastIndex == registered.JobModifyIndex, nil)
	s.place("web", registered.EvalID, node)

	jobs, meta, err := client.Jobs().List(ctx, nil)
	check("jobs", len(jobs) == 1 && meta.LastIndex > 0 && meta.KnownLeader, err)
	info, _, err := client.Jobs().Info(ctx, "web", nil)
	check("job", structs.Val(info.ID) == "web", err)
	summary, _, err := client.Jobs().Summary(ctx, "web", nil)
	check("summary", summary.Summary["group"].Starting == 1, err)
	versions, _, err := client.Jobs().Versions(ctx, "web", nil)
	check("versions", len(versions.Versions) == 1, err)
	submission, _, err := client.Jobs().Submission(ctx, "web", 0, nil)
	check("submission", submission.Source == "text", err)
	scale, _, err := client.Jobs().ScaleStatus(ctx, "web", nil)
	check("scale", scale.TaskGroups["group"].Placed == 1, err)
	deployments, _, err := client.Jobs().Deployments(ctx, "web", true, nil)
	check("deployments", len(deployments) == 0, err)
	latest, _, err := client.Jobs().LatestDeployment(ctx, "web", nil)
	check("latest deployment", latest == nil, err)
	stable, _, err := client.Jobs().SetStable(ctx, "web", 0, true, nil)
	check("stable", stable.JobModifyIndex > 0, err)
	valid, _, err := client.Jobs().Validate(ctx, job("web"), nil)
	check("validate", len(valid.ValidationErrors) == 0, err)
	parsed, err := client.Jobs().Parse(ctx, &structs.JobsParseRequest{JobHCL: "job \"x\" {\n group \"g\" {\n task \"t\" {\n driver = \"mock\"\n}\n}\n}\n"})
	check("parse", structs.Val(parsed.ID) == "x" && parsed.Priority == nil, err)
	again, _, err := client.Jobs().Evaluate(ctx, "web", structs.EvalOptions{ForceReschedule: true}, nil)
	check("evaluate", again.EvalID != "", err)

	down, _, err := client.Jobs().Deregister(ctx, "web", &api.DeregisterOptions{Purge: true, NoShutdownDelay: true}, nil)
	check("deregister", down.EvalID != "", err)
	_, _, err = client.Jobs().Info(ctx, "web", nil)
	check("not found", api.IsNotFound(err) && api.Text(err) == "job not found", nil)
}

func TestOwnClientAllocationsAndNodes(t *testing.T) {
	s := newServer(t)
	ctx := t.Context()
	client, check := ownClient(t, s)
	node := s.addNode()
	registered := s.register(job("web"))
	alloc := s.place("web", registered.EvalID, node)

	for name, list := range map[string]func() ([]*structs.AllocationListStub, *api.QueryMeta, error){
		"allocations": func() ([]*structs.AllocationListStub, *api.QueryMeta, error) {
			return client.Allocations().List(ctx, nil)
		},
		"job's allocations": func() ([]*structs.AllocationListStub, *api.QueryMeta, error) {
			return client.Jobs().Allocations(ctx, "web", true, nil)
		},
		"evaluation allocations": func() ([]*structs.AllocationListStub, *api.QueryMeta, error) {
			return client.Evaluations().Allocations(ctx, registered.EvalID, nil)
		},
	} {
		stubs, _, err := list()
		check(name, len(stubs) == 1 && stubs[0].ID == alloc.ID, err)
	}
	whole, _, err := client.Allocations().Info(ctx, alloc.ID, nil)
	check("allocation", whole.Job != nil && structs.Val(whole.Job.ID) == "web", err)
	evals, _, err := client.Evaluations().List(ctx, &api.QueryOptions{Filter: `JobID == "web"`})
	check("evaluations", len(evals) == 1, err)
	eval, _, err := client.Evaluations().Info(ctx, registered.EvalID, nil)
	check("evaluation", eval.Priority == 50 && eval.RelatedEvals != nil, err)
	count, _, err := client.Evaluations().Count(ctx, nil)
	check("count", count == 1, err)

	nodes, _, err := client.Nodes().List(ctx, &api.QueryOptions{Params: map[string]string{"resources": "true"}})
	check("nodes", len(nodes) == 1 && nodes[0].NodeResources != nil, err)
	read, _, err := client.Nodes().Info(ctx, node.ID, nil)
	check("node", read.ID == node.ID && read.SecretID == "", err)
	onNode, _, err := client.Nodes().Allocations(ctx, node.ID, nil)
	check("node's allocations", len(onNode) == 1, err)
	_, _, err = client.Nodes().SetEligibility(ctx, node.ID, false, nil)
	check("eligibility", s.backend.Store.Node(nil, node.ID).SchedulingEligibility == structs.NodeIneligible, err)
	_, _, err = client.Nodes().Evaluate(ctx, node.ID, nil)
	check("node evaluate", true, err)

	stopped, _, err := client.Allocations().Stop(ctx, alloc.ID, &api.StopOptions{NoShutdownDelay: true, KillTimeout: structs.Ptr(time.Second)}, nil)
	check("stop", stopped.EvalID != "" && s.backend.Store.Alloc(nil, alloc.ID).DesiredTransition.ShouldMigrate(), err)
	_, _, err = client.Nodes().Purge(ctx, node.ID, nil)
	check("purge", s.backend.Store.Node(nil, node.ID) == nil, err)
}

func TestOwnClientCluster(t *testing.T) {
	ctx := t.Context()
	client, check := ownClient(t, newServer(t))
	_, err := client.Namespaces().Register(ctx, &structs.Namespace{Name: "team"}, nil)
	check("register namespace", true, err)
	namespaces, _, err := client.Namespaces().List(ctx, nil)
	check("namespaces", len(namespaces) == 2, err)
	_, err = client.Namespaces().Delete(ctx, "team", nil)
	check("delete namespace", true, err)
	_, err = client.NodePools().Register(ctx, &structs.NodePool{Name: "dev", NodeIdentityTTL: time.Hour}, nil)
	check("register pool", true, err)
	pool, _, err := client.NodePools().Info(ctx, "dev", nil)
	check("pool", pool.NodeIdentityTTL == time.Hour, err)
	_, err = client.NodePools().Delete(ctx, "dev", nil)
	check("delete pool", true, err)

	leader, err := client.Status().Leader(ctx)
	check("leader", leader != "", err)
	regions, err := client.Status().Regions(ctx)
	check("regions", len(regions) == 1, err)
	members, err := client.Agent().Members(ctx, nil)
	check("members", len(members.Members) == 1, err)
	check("gc", true, client.System().GarbageCollect(ctx))
	check("summaries", true, client.System().ReconcileSummaries(ctx))
	raft, err := client.Operator().RaftConfiguration(ctx, nil)
	check("raft", len(raft.Servers) == 1, err)
	cfg, _, err := client.Operator().SchedulerConfiguration(ctx, nil)
	check("scheduler", cfg.SchedulerAlgorithm == "binpack", err)
	updated, _, err := client.Operator().SetSchedulerConfiguration(ctx, cfg, true, nil)
	check("set scheduler", updated, err)
	key, _, err := client.Operator().RotateKey(ctx, true, nil)
	check("rotate", key.KeyID != "", err)
	keys, _, err := client.Operator().Keys(ctx, nil)
	check("keys", len(keys) == 1, err)
	metrics, err := client.Operator().Metrics(ctx)
	check("metrics", len(metrics) > 0, err)
	found, _, err := client.Search().Prefix(ctx, "def", "namespaces", nil)
	check("search", len(found.Matches["namespaces"]) == 1, err)
}
