package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/e2e/proc"
	"github.com/nomadlite/nomadlite/structs"
)

// awaitService waits by blocking queries until done agrees with the instances of a service, and says when it did.
func awaitService(t testing.TB, c *api.Client, name, what string, done func([]*structs.ServiceRegistration) bool) (
	[]*structs.ServiceRegistration, time.Time,
) {
	t.Helper()
	list, at, err := serviceWhen(limited(t), c, name, done)
	if err != nil {
		t.Fatalf("wait for service %q to have %s: %v; it has %+v", name, what, err, list)
	}
	return list, at
}

// serviceWhen is awaitService for goroutines, which must not end a test.
func serviceWhen(ctx context.Context, c *api.Client, name string, done func([]*structs.ServiceRegistration) bool) (
	[]*structs.ServiceRegistration, time.Time, error,
) {
	q := &api.QueryOptions{WaitTime: 5 * time.Second}
	var list []*structs.ServiceRegistration
	for {
		next, meta, err := c.Services().Get(ctx, name, q)
		if err != nil {
			return list, time.Now(), err
		}
		if list = next; done(list) {
			return list, time.Now(), nil
		}
		q.WaitIndex = meta.LastIndex
	}
}

// gone says when the last instance of a service left.
type gone struct {
	name string
	at   time.Time
	err  error
}

// leaving watches services from now on. Each call of what it gives waits for the next one that has no instances any more; the
// test ends when that cannot be learnt.
func leaving(t *testing.T, c *api.Client, names ...string) (next func() gone) {
	ctx := limited(t)
	left := make(chan gone, len(names))
	for _, name := range names {
		go func() {
			_, at, err := serviceWhen(ctx, c, name, func(l []*structs.ServiceRegistration) bool { return len(l) == 0 })
			left <- gone{name, at, err}
		}()
	}
	return func() gone {
		t.Helper()
		g := <-left
		if g.err != nil {
			t.Fatalf("wait for service %q to have no instances: %v", g.name, g.err)
		}
		return g
	}
}

func awaitInstances(t testing.TB, c *api.Client, name string, n int) []*structs.ServiceRegistration {
	t.Helper()
	list, _ := awaitService(t, c, name, fmt.Sprint(n, " instances"), func(l []*structs.ServiceRegistration) bool { return len(l) == n })
	return list
}

func nomadService(name, port string, tags ...string) *structs.Service {
	return &structs.Service{Name: name, Provider: "nomad", PortLabel: port, Tags: tags}
}

// stoppable is a job with a service of its group and one of its task. When the task gets its signal it asks the registry
// for both and writes down what it heard and the time.
func stoppable(t *testing.T, a *agent, id string, change func(*structs.TaskGroup, *structs.Task)) (j *structs.Job, noted string) {
	noted = filepath.Join(a.Dir, id+"-signalled")
	ask := fmt.Sprintf("NOMAD_ADDR=%s %s service info -json", a.Addr(), proc.Binary(t))
	script := fmt.Sprintf(`trap 'at=$(date +%%s%%N); { echo $at; %s %s-group; %s %s-task; } >%s.part; mv %s.part %s; exit 0' TERM
		echo up; sleep 600 & wait`, ask, id, ask, id, noted, noted, noted)
	j = job(id, script, func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		g.Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "http"}}}}
		g.Services = []*structs.Service{nomadService(id+"-group", "http", "v1", "${NOMAD_GROUP_NAME}")}
		task.Services = []*structs.Service{nomadService(id+"-task", "8500")}
		task.KillSignal = "SIGTERM"
		task.KillTimeout = structs.Ptr(20 * time.Second)
		change(g, task)
	})
	return j, noted
}

// signalled reads what the task wrote down: when it was signalled, and that its services could not be found any more.
func signalled(t *testing.T, noted string) time.Time {
	t.Helper()
	raw, err := os.ReadFile(noted)
	if err != nil {
		t.Fatalf("the task was not signalled: %v", err)
	}
	first, answers, _ := strings.Cut(string(raw), "\n")
	if strings.Join(strings.Fields(answers), "") != "[][]" {
		t.Errorf("when the task was signalled, its services still were to be found:\n%s", answers)
	}
	nanos, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, nanos)
}

// TestServicesLeaveThenTheDelayThenTheSignal shows the order of a stop by times: the look-up that waits hears that the
// service is gone, shutdown_delay passes, then the task gets its signal.
func TestServicesLeaveThenTheDelayThenTheSignal(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	j, noted := stoppable(t, a, "web", func(g *structs.TaskGroup, task *structs.Task) {
		g.ShutdownDelay, task.ShutdownDelay = structs.Ptr(3*time.Second), 2*time.Second
	})
	register(t, a.Client, j)
	alloc := awaitRunning(t, a.Client, "web", 1)[0]
	a.followLog(alloc.ID, "up")
	group := awaitInstances(t, a.Client, "web-group", 1)[0]
	task := awaitInstances(t, a.Client, "web-task", 1)[0]
	whole, _, err := a.Client.Allocations().Info(limited(t), alloc.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	port := whole.AllocatedResources.Shared.Ports[0]
	if group.ID != "_nomad-task-"+alloc.ID+"-group-g-web-group-http" || group.Port != port.Value || group.Address != port.HostIP ||
		!slices.Equal(group.Tags, []string{"v1", "g"}) || group.NodeID != alloc.NodeID || group.JobID != "web" || group.Datacenter != "dc1" {
		t.Errorf("group's service is %+v, its port %+v", group, port)
	}
	if task.ID != "_nomad-task-"+alloc.ID+"-t-web-task-8500" || task.Port != 8500 || task.Address == "" {
		t.Errorf("task's service is %+v", task)
	}

	left := leaving(t, a.Client, "web-group", "web-task")
	asked := time.Now()
	if _, _, err := a.Client.Jobs().Deregister(limited(t), "web", nil, nil); err != nil {
		t.Fatal(err)
	}
	first, second := left(), left()
	awaitStatus(t, a.Client, "web", structs.AllocClientStatusComplete)
	signal := signalled(t, noted)
	t.Logf("after the stop was asked for: %s left at %s, %s at %s, signal at %s", first.name, first.at.Sub(asked), second.name,
		second.at.Sub(asked), signal.Sub(asked))
	if first.name != "web-group" || second.name != "web-task" {
		t.Errorf("%s left before %s", first.name, second.name)
	}
	// Who waits hears later than the registry changes, on a busy machine much later: the bounds leave room for that.
	if d := signal.Sub(asked); d < 5*time.Second {
		t.Errorf("the signal came %s after the stop was asked for, the delays are 3s and 2s", d)
	}
	if d := signal.Sub(first.at); d < 3*time.Second {
		t.Errorf("the group's service was heard to leave only %s before the signal, the delays are 3s and 2s", d)
	}
	if d := signal.Sub(second.at); d < 500*time.Millisecond {
		t.Errorf("the task's service was heard to leave only %s before the signal, the task's delay is 2s", d)
	}
	if d := second.at.Sub(asked); d < 3*time.Second {
		t.Errorf("the task's service left %s after the stop was asked for, before the group's delay of 3s was over", d)
	}
}

// TestNoShutdownDelaySkipsTheWaitAndNotTheLeaving stops with -no-shutdown-delay, at once and into a wait under way.
func TestNoShutdownDelaySkipsTheWaitAndNotTheLeaving(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	for _, tc := range []struct {
		id      string
		waiting bool // an ordinary stop was asked for before
	}{{"atonce", false}, {"underway", true}} {
		t.Run(tc.id, func(t *testing.T) {
			j, noted := stoppable(t, a, tc.id, func(g *structs.TaskGroup, task *structs.Task) {
				g.ShutdownDelay, task.ShutdownDelay = structs.Ptr(10*time.Minute), 10*time.Minute
			})
			register(t, a.Client, j)
			alloc := awaitRunning(t, a.Client, tc.id, 1)[0]
			a.followLog(alloc.ID, "up")
			awaitInstances(t, a.Client, tc.id+"-group", 1)
			awaitInstances(t, a.Client, tc.id+"-task", 1)
			if tc.waiting {
				if out, errs, code := a.cli("", "job", "stop", "-detach", tc.id); code != 0 {
					t.Fatalf("job stop: exit %d\n%s%s", code, out, errs)
				}
				awaitInstances(t, a.Client, tc.id+"-group", 0)
				if _, err := os.Stat(noted); err == nil {
					t.Fatal("the task was signalled in its shutdown_delay")
				}
			}
			asked := time.Now()
			if out, errs, code := a.cli("", "job", "stop", "-detach", "-no-shutdown-delay", tc.id); code != 0 {
				t.Fatalf("job stop: exit %d\n%s%s", code, out, errs)
			}
			awaitStatus(t, a.Client, tc.id, structs.AllocClientStatusComplete)
			if d := signalled(t, noted).Sub(asked); d > 5*time.Second {
				t.Errorf("the signal came %s after the stop without delay was asked for", d)
			}
		})
	}
}

// TestServicesSurviveTheKillOfAnAgent kills an agent (-9) that is server and client: the registrations are as they were,
// and they leave when the job is stopped.
func TestServicesSurviveTheKillOfAnAgent(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	j, noted := stoppable(t, a, "web", func(*structs.TaskGroup, *structs.Task) {})
	register(t, a.Client, j)
	a.followLog(awaitRunning(t, a.Client, "web", 1)[0].ID, "up")
	group, task := awaitInstances(t, a.Client, "web-group", 1)[0], awaitInstances(t, a.Client, "web-task", 1)[0]
	a.Kill()
	a.Start()
	// A job that runs on the node shows that the new agent has told the servers everything.
	register(t, a.Client, job("after", "exec sleep 600", nil))
	awaitRunning(t, a.Client, "after", 1)
	for _, was := range []*structs.ServiceRegistration{group, task} {
		is := awaitInstances(t, a.Client, was.ServiceName, 1)[0]
		if is.ID != was.ID || is.CreateIndex != was.CreateIndex || is.ModifyIndex != was.ModifyIndex {
			t.Errorf("service was %+v, is %+v", was, is)
		}
	}
	if _, _, err := a.Client.Jobs().Deregister(limited(t), "web", nil, nil); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, a.Client, "web", structs.AllocClientStatusComplete)
	signalled(t, noted)
	awaitInstances(t, a.Client, "web-group", 0)
	awaitInstances(t, a.Client, "web-task", 0)
}

// TestServicesStayAwayWhenAnAgentIsKilledInTheWait kills an agent (-9) while shutdown_delay runs: the next one waits the
// rest, and what has left is not registered again.
func TestServicesStayAwayWhenAnAgentIsKilledInTheWait(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	j, noted := stoppable(t, a, "web", func(g *structs.TaskGroup, _ *structs.Task) { g.ShutdownDelay = structs.Ptr(4 * time.Second) })
	register(t, a.Client, j)
	a.followLog(awaitRunning(t, a.Client, "web", 1)[0].ID, "up")
	awaitInstances(t, a.Client, "web-task", 1)
	awaitInstances(t, a.Client, "web-group", 1)
	if _, _, err := a.Client.Jobs().Deregister(limited(t), "web", nil, nil); err != nil {
		t.Fatal(err)
	}
	_, left := awaitService(t, a.Client, "web-group", "no instances", func(l []*structs.ServiceRegistration) bool { return len(l) == 0 })
	a.Kill()
	a.Start()
	awaitStatus(t, a.Client, "web", structs.AllocClientStatusComplete)
	d := signalled(t, noted).Sub(left)
	if d < 3500*time.Millisecond || d > 10*time.Second {
		t.Errorf("the signal came %s after the service had left, shutdown_delay is 4s", d)
	}
	awaitInstances(t, a.Client, "web-group", 0)
	awaitInstances(t, a.Client, "web-task", 0)
}

// TestServicesOfASilentNodeAreNotFound kills a node's agent for longer than its heartbeats may be missing. What waits for
// the node is hidden and shown again as it was; what does not is gone for good and offered by a replacement.
func TestServicesOfASilentNodeAreNotFound(t *testing.T) {
	server := newAgent(t, func(c map[string]any) {
		c["client"] = map[string]any{"enabled": false}
		c["server"] = map[string]any{"enabled": true, "bootstrap_expect": 1, "min_heartbeat_ttl": "1s", "heartbeat_grace": "1s"}
	})
	server.Start()
	node := newAgent(t, func(c map[string]any) {
		c["server"] = map[string]any{"enabled": false}
		c["client"] = map[string]any{"enabled": true, "servers": []string{fmt.Sprintf("127.0.0.1:%d", server.RPC)}}
	})
	node.Start()
	for _, id := range []string{"patient", "lost"} {
		register(t, server.Client, job(id, "exec sleep 600", func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
			g.Services = []*structs.Service{nomadService(id, "")}
			if id == "patient" {
				g.Disconnect = &structs.DisconnectStrategy{LostAfter: structs.Ptr(time.Hour), Replace: structs.Ptr(false)}
			}
		}))
	}
	patient, lost := awaitInstances(t, server.Client, "patient", 1)[0], awaitInstances(t, server.Client, "lost", 1)[0]
	awaitRunning(t, server.Client, "patient", 1)
	awaitRunning(t, server.Client, "lost", 1)
	node.Kill()
	awaitInstances(t, server.Client, "patient", 0)
	awaitInstances(t, server.Client, "lost", 0)
	node.Start()
	if again := awaitInstances(t, server.Client, "patient", 1)[0]; again.ID != patient.ID || again.CreateIndex != patient.CreateIndex {
		t.Errorf("service was %+v, is %+v", patient, again)
	}
	if again := awaitInstances(t, server.Client, "lost", 1)[0]; again.AllocID == lost.AllocID {
		t.Errorf("the service of a lost allocation is there again: %+v", again)
	}
}

// TestServicesThroughTheLossOfALeader: a node of three servers offers services through any of them, and goes on to do so
// when the leader is killed (-9). Its services are found all the while.
func TestServicesThroughTheLossOfALeader(t *testing.T) {
	servers := threeServers(t)
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", s.RPC))
	}
	node := newAgent(t, func(c map[string]any) {
		c["name"], c["server"] = "node", map[string]any{"enabled": false}
		c["client"] = map[string]any{"enabled": true, "servers": addrs}
	})
	node.Start()
	offering := func(id string) *structs.Job {
		return job(id, "exec sleep 600", func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
			g.Count = structs.Ptr(3)
			task.Services = []*structs.Service{nomadService(id, "80")}
		})
	}
	register(t, node.Client, offering("before"))
	before := awaitInstances(t, node.Client, "before", 3)
	lead := leader(t, servers)
	servers[lead].Kill()
	rest := servers[(lead+1)%3]
	// The others elect one of them; until then they say that there is no leader.
	deadline := time.Now().Add(waitLimit)
	for {
		if _, _, err := rest.Client.Jobs().Register(limited(t), offering("after"), nil, nil); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("no leader: %v", err)
		}
	}
	awaitInstances(t, rest.Client, "after", 3)
	for i, s := range awaitInstances(t, rest.Client, "before", 3) {
		if s.ID != before[i].ID || s.ModifyIndex != before[i].ModifyIndex {
			t.Errorf("service was %+v, is %+v", before[i], s)
		}
	}
	if _, _, err := rest.Client.Jobs().Deregister(limited(t), "before", nil, nil); err != nil {
		t.Fatal(err)
	}
	awaitInstances(t, rest.Client, "before", 0)
	servers[lead].Start()
}

// TestServicesOnTheCommandLine also changes tags in place, and shows what becomes of services for Consul.
func TestServicesOnTheCommandLine(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	run := func(want int, args ...string) string {
		t.Helper()
		out, errs, code := a.cli("", args...)
		if code != want {
			t.Fatalf("%v: exit %d, want %d\n%s%s", args, code, want, out, errs)
		}
		return out + errs
	}
	if out := run(0, "service", "list"); !strings.Contains(out, "No service registrations found") {
		t.Errorf("service list: %s", out)
	}
	web := func(tags ...string) *structs.Job {
		return job("web", "exec sleep 600", func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
			g.Count = structs.Ptr(2)
			g.Services = []*structs.Service{nomadService("web", "8080", tags...)}
		})
	}
	register(t, a.Client, web("b", "a"))
	before := awaitInstances(t, a.Client, "web", 2)
	if out := run(0, "service", "list"); !strings.Contains(out, "Service Name  Tags\nweb           [a,b]\n") {
		t.Errorf("service list:\n%s", out)
	}
	if out := run(0, "service", "list", "-namespace", "*", "-name", "web"); !strings.Contains(out, "web           default    [a,b]") {
		t.Errorf("service list:\n%s", out)
	}
	out := run(0, "service", "info", "web")
	if !strings.Contains(out, before[0].Address+":8080") || !strings.Contains(out, "[b,a]") || !strings.Contains(out, before[1].AllocID[:8]) {
		t.Errorf("service info:\n%s", out)
	}
	if out := run(0, "service", "info", "-verbose", "-filter", fmt.Sprintf("AllocID == %q", before[1].AllocID), "web"); !strings.Contains(out,
		"ID           = "+before[1].ID) || strings.Contains(out, before[0].ID) {
		t.Errorf("service info -verbose:\n%s", out)
	}
	register(t, a.Client, web("c"))
	after, _ := awaitService(t, a.Client, "web", "new tags", func(l []*structs.ServiceRegistration) bool {
		return len(l) == 2 && slices.Equal(l[0].Tags, []string{"c"}) && slices.Equal(l[1].Tags, []string{"c"})
	})
	for i := range after {
		if after[i].ID != before[i].ID || after[i].CreateIndex != before[i].CreateIndex {
			t.Errorf("new tags made a new registration: %+v from %+v", after[i], before[i])
		}
	}
	run(0, "service", "delete", "web", before[0].ID)
	if left := awaitInstances(t, a.Client, "web", 1)[0]; left.ID != before[1].ID {
		t.Errorf("%s is left", left.ID)
	}
	if out := run(1, "service", "delete", "web", before[0].ID); !strings.Contains(out, "not found") {
		t.Errorf("service delete of nothing: %s", out)
	}

	consul := register(t, a.Client, job("consul", "exec sleep 600", func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
		g.Services = []*structs.Service{{Name: "consul", PortLabel: "80"}}
	}))
	if !strings.Contains(consul.Warnings, "needs a node with a Consul agent") {
		t.Errorf("warnings: %q", consul.Warnings)
	}
	eval := awaitEval(t, a.Client, consul.EvalID)
	if m := eval.FailedTGAllocs["g"]; m == nil || m.ConstraintFiltered["${attr.consul.version} semver >= 1.8.0"] != 1 {
		t.Errorf("the evaluation does not explain why: %+v", m)
	}
	if out := run(0, "job", "status", "consul"); !strings.Contains(out, "attr.consul.version") {
		t.Errorf("job status does not explain why:\n%s", out)
	}
}
