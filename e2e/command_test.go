package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// prints checks that a command ends with 0 and prints each text.
func (a *agent) prints(args []string, texts ...string) {
	a.t.Helper()
	out := a.ok(args...)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			a.t.Errorf("%v: no %q in\n%s", args, text, out)
		}
	}
}

func TestNodePoolsByTheCommandLine(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	path := filepath.Join(t.TempDir(), "pool.hcl")
	a.ok("node", "pool", "init", "-quiet", path)
	a.prints([]string{"node", "pool", "apply", path}, `Successfully applied node pool "example"!`)
	out, errs, code := a.cli(`{"Name": "other", "Description": "one more"}`, "node", "pool", "apply", "-json", "-")
	if code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	a.prints([]string{"node", "pool", "list"}, "all ", "default ", "example  Example node pool", "other    one more")
	a.prints([]string{"node", "pool", "list", "-per-page=1"}, "To get the next page run", "-page-token default")
	a.prints([]string{"node", "pool", "list", "-filter", `Name == "other"`, "-t", "{{range .}}{{.Name}}{{end}}"}, "other")
	a.prints([]string{"node", "pool", "info", "exa"}, "Name        = example", "owner       = sre", "No scheduler configuration")
	a.prints([]string{"node", "pool", "nodes", "default"}, "e2e", "ready")
	a.prints([]string{"node", "pool", "nodes", "example"}, "No nodes")
	register(t, a.Client, sleeper("web", structs.JobTypeService, 1, func(*structs.TaskGroup, *structs.Task) {}))
	a.prints([]string{"node", "pool", "jobs", "default"}, "web", "service")
	a.prints([]string{"node", "pool", "jobs", "other"}, "No jobs")
	a.refused("No node pool", "node", "pool", "info", "nope")
	a.refused("", "node", "pool", "info", "")
	a.refused("can not be deleted", "node", "pool", "delete", "default")
	if err := os.WriteFile(path, []byte("node_pool \"a\" {\n  nope = 1\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.refused("pool.hcl:2", "node", "pool", "apply", path)
	a.prints([]string{"node", "pool", "delete", "other"}, `Successfully deleted node pool "other"!`)
	a.refused("not found", "node", "pool", "delete", "other")
}

func TestDeploymentsOfAJobByTheCommandLine(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	job := func(version string) *structs.Job {
		return sleeper("web", structs.JobTypeService, 2, func(g *structs.TaskGroup, task *structs.Task) {
			g.Update = &structs.UpdateStrategy{Canary: structs.Ptr(1), MaxParallel: structs.Ptr(2), MinHealthyTime: structs.Ptr(time.Duration(0))}
			task.Env = map[string]string{"VERSION": version}
		})
	}
	a.refused("No job", "job", "deployments", "web")
	register(t, a.Client, job("1"))
	awaitDeployment(t, a.Client, "web", 0, structs.DeploymentStatusSuccessful)
	register(t, a.Client, job("2"))
	awaitAllocs(t, a.Client, "web", "a healthy canary", func(l []*structs.AllocationListStub) bool {
		for _, s := range l {
			if d := s.DeploymentStatus; d != nil && d.Canary && structs.Val(d.Healthy) {
				return true
			}
		}
		return false
	})
	a.prints([]string{"job", "deployments", "web"}, "Job Version", "running", "successful")
	a.prints([]string{"job", "deployments", "-latest", "we"}, "Job Version = 1", "Canaries", "Promoted")
	a.refused("deployment", "job", "promote", "-detach", "-group=nope", "web")
	a.prints([]string{"job", "promote", "web"}, `finished with status "complete"`)
	a.prints([]string{"job", "deployments", "-t", "{{range .}}{{.Status}} {{end}}", "web"}, "successful successful")

	a.prints([]string{"job", "scaling-events", "web"}, "No events found")
	a.ok("job", "scale", "-detach", "web", "3")
	a.prints([]string{"job", "scaling-events", "web"}, "Task Group  Count  PrevCount  Date", "g           3      2 ")
	a.prints([]string{"job", "scaling-events", "-verbose", "web"}, "false", "command line")
	a.ok("system", "reconcile", "summaries")
}

func TestEvalDeleteByTheCommandLine(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	// It can never be placed: its evaluations wait.
	register(t, a.Client, sleeper("stuck", structs.JobTypeService, 1, func(_ *structs.TaskGroup, task *structs.Task) {
		task.Resources = &structs.Resources{CPU: structs.Ptr(10_000_000)}
	}))
	a.refused("either an evaluation or -filter", "eval", "delete")
	a.refused("filter expression", "eval", "delete", "-filter=nonsense")
	a.prints([]string{"eval", "delete", "-filter", `JobID == "nope"`}, "No evaluations match")
	a.refused("must be paused", "eval", "delete", "-yes", "-filter", `JobID == "stuck"`)
	a.ok("operator", "scheduler", "set-config", "-pause-eval-broker=true")
	if out, _, code := a.cli("n\n", "eval", "delete", "-filter", `JobID == "stuck"`); code != 0 || !strings.Contains(out, "Cancelling") {
		t.Errorf("exit %d: %s", code, out)
	}
	a.prints([]string{"eval", "delete", "-yes", "-filter", `JobID == "stuck"`}, "Successfully deleted")
	a.prints([]string{"eval", "list", "-job=stuck"}, "No evals found")
	a.ok("operator", "scheduler", "set-config", "-pause-eval-broker=false")
}

// TestMetadataOfANodeThatRuns sets metadata by the command line: work that waited for it is placed, it outlives the agent,
// and any server brings the request to the node that it names.
func TestMetadataOfANodeThatRuns(t *testing.T) {
	p := preparePair(t, nil)
	node := p.nodes[0]
	node.Start()
	self, err := node.Client.Agent().Self(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	id := self.Stats["client"]["node_id"]
	awaitNode(t, p.server.Client, id, "readiness", func(n *structs.Node) bool { return n.Ready() })
	for _, kind := range []string{structs.JobTypeService, structs.JobTypeSystem} {
		register(t, p.server.Client, sleeper(kind, kind, 1, func(g *structs.TaskGroup, _ *structs.Task) {
			g.Constraints = []*structs.Constraint{{LTarget: "${meta.role}", RTarget: "db", Operand: "="}}
		}))
	}
	p.server.prints([]string{"node", "meta", "read", "-node-id", id[:8]}, "Dynamic Meta\n<none>")
	p.server.refused("", "node", "meta", "read") // the server has no node
	p.server.refused("KEY=VALUE", "node", "meta", "apply", "-node-id", id, "role")
	p.server.refused("invalid", "node", "meta", "apply", "-node-id", id, "a b=1")
	p.server.ok("node", "meta", "apply", "-node-id", id, "role=db", "spare=x")
	awaitRunning(t, p.server.Client, structs.JobTypeService, 1)
	awaitRunning(t, p.server.Client, structs.JobTypeSystem, 1)
	p.server.ok("node", "meta", "apply", "-node-id", id[:8], "-unset=spare")
	node.ok("node", "meta", "apply", "own=1")
	node.Kill()
	node.Start()
	p.server.prints([]string{"node", "meta", "read", "-node-id", id, "-t", "{{.Meta}}"}, "map[own:1 role:db]")
}

func TestWhatAnAgentKnowsOfItself(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	a.refused("Say what to show", "node", "config")
	a.prints([]string{"node", "config", "-servers"}, "127.0.0.1:")
	a.prints([]string{"check"}, "known peers: 0", "known servers: 1", "last heartbeat")
	if out, errs, code := a.cli("", "check", "-min-peers=2"); code != 2 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
