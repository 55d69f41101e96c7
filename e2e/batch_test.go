package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// batch makes a job one of type batch.
func batch(change func(*structs.Job, *structs.TaskGroup, *structs.Task)) func(*structs.Job, *structs.TaskGroup, *structs.Task) {
	return func(j *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		j.Type = structs.Ptr("batch")
		change(j, g, task)
	}
}

// TestDispatchBringsItsInputToTheProcess dispatches a job by the command line: its process reads payload and metadata.
func TestDispatchBringsItsInputToTheProcess(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.Start()
	register(t, a.Client, job("print", `echo "order $(cat local/in/order.txt) of $NOMAD_META_customer, $NOMAD_META_tone, $NOMAD_JOB_PARENT_ID"`,
		batch(func(j *structs.Job, _ *structs.TaskGroup, task *structs.Task) {
			j.Meta = map[string]string{"tone": "polite"}
			j.ParameterizedJob = &structs.ParameterizedJobConfig{Payload: "required", MetaRequired: []string{"customer"}}
			task.DispatchPayload = &structs.DispatchPayloadConfig{File: "in/order.txt"}
		})))
	dispatch := []string{"job", "dispatch", "-wait", "-meta", "customer=acme", "-idempotency-token=4711", "print", "-"}
	out, errs, code := a.cli("two teapots", dispatch...)
	if code != 0 || !strings.HasPrefix(out, "Dispatched Job ID = print/dispatch-") || !strings.Contains(out, "Monitoring evaluation") ||
		!strings.HasSuffix(out, "has ended\n") {
		t.Fatalf("job dispatch: exit %d\n%s\n%s", code, out, errs)
	}
	child := strings.Fields(out)[4]
	alloc := awaitStatus(t, a.Client, child, structs.AllocClientStatusComplete)
	out, errs, code = a.cli("", "alloc", "logs", alloc.ID)
	if code != 0 || out != "order two teapots of acme, polite, print\n" {
		t.Errorf("alloc logs: exit %d\n%s\n%s", code, out, errs)
	}
	if out, errs, code = a.cli("two teapots", dispatch...); code != 0 ||
		!strings.HasPrefix(out, fmt.Sprintf("Job %q already dispatched with idempotency token \"4711\".\n", child)) {
		t.Errorf("the same token: exit %d\n%s\n%s", code, out, errs)
	}
	if out, errs, code = a.cli("", "job", "dispatch", "-meta", "customer=acme", "print"); code != 1 || !strings.Contains(errs, "ayload is not provided") {
		t.Errorf("without a payload: exit %d\n%s\n%s", code, out, errs)
	}
	out, _, code = a.cli("", "job", "status", "print")
	if want := fmt.Sprintf("Parameterized Job Summary\nPending  Running  Dead\n0        0        1\n\nDispatched Jobs\n%-*s  Status\n%s  dead\n",
		len(child), "ID", child); code != 0 || !strings.HasSuffix(out, want) {
		t.Errorf("job status: exit %d\n%s\nwant\n%s", code, out, want)
	}
}

// everySecond is a job that is launched each second.
func everySecond(id, script string) *structs.Job {
	return job(id, script, batch(func(j *structs.Job, _ *structs.TaskGroup, _ *structs.Task) {
		j.Periodic = &structs.PeriodicConfig{Specs: []string{"* * * * * * *"}}
	}))
}

// epochs gives the times of a periodic job's children.
func epochs(t *testing.T, list []*structs.JobListStub, parent string) []int {
	t.Helper()
	var out []int
	for _, j := range list {
		if j.ParentID != parent {
			continue
		}
		n, err := strconv.Atoi(strings.TrimPrefix(j.ID, parent+"/periodic-"))
		if err != nil {
			t.Fatalf("a child is called %s", j.ID)
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// awaitChildren waits until a periodic job has so many children.
func awaitChildren(t *testing.T, c *api.Client, parent string, n int) []int {
	t.Helper()
	q := &api.QueryOptions{Prefix: parent + "/", WaitTime: 5 * time.Second}
	ctx := limited(t)
	for {
		list, meta, err := c.Jobs().List(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if have := epochs(t, list, parent); len(have) >= n {
			return have
		}
		q.WaitIndex = meta.LastIndex
	}
}

// checkEpochs wants each second launched, but for those of one outage, of which one was caught up.
func checkEpochs(t *testing.T, all []int, lastBefore int) {
	t.Helper()
	gaps := 0
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			t.Errorf("%d was launched twice", all[i])
		}
		if all[i] > all[i-1]+1 {
			gaps++
			if all[i-1] < lastBefore {
				t.Errorf("between %d and %d a second is missing, before the outage", all[i-1], all[i])
			}
		}
	}
	if gaps > 1 {
		t.Errorf("more than the seconds of one outage are missing: %v", all)
	}
}

// TestEachSecondIsLaunchedOnceAcrossAKill kills (-9) the only server under a job that is launched each second, whose real
// processes write down what they are.
func TestEachSecondIsLaunchedOnceAcrossAKill(t *testing.T) {
	t.Parallel()
	server := newAgent(t, func(c map[string]any) { c["client"] = map[string]any{"enabled": false} })
	server.Start()
	node := newAgent(t, func(c map[string]any) {
		c["server"] = map[string]any{"enabled": false}
		c["client"] = map[string]any{"enabled": true, "servers": []string{fmt.Sprintf("127.0.0.1:%d", server.RPC)}}
	})
	node.Start()
	file := filepath.Join(server.Dir, "runs")
	register(t, server.Client, everySecond("tick", fmt.Sprintf(`echo "$NOMAD_JOB_ID" >> %s`, file)))
	before := awaitChildren(t, server.Client, "tick", 4)
	awaitJobStatus(t, server.Client, fmt.Sprint("tick/periodic-", before[1]), structs.JobStatusDead)
	server.Kill()
	server.Start()
	after := awaitChildren(t, server.Client, "tick", len(before)+5)
	checkEpochs(t, after, before[len(before)-1])
	if _, _, err := server.Client.Jobs().Deregister(limited(t), "tick", nil, nil); err != nil {
		t.Fatal(err)
	}
	after = awaitChildren(t, server.Client, "tick", len(after)) // none is launched after the stop
	for _, epoch := range after {
		awaitJobStatus(t, server.Client, fmt.Sprint("tick/periodic-", epoch), structs.JobStatusDead)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for _, line := range strings.Fields(string(raw)) {
		ran[line]++
	}
	for _, epoch := range after {
		if n := ran[fmt.Sprint("tick/periodic-", epoch)]; n != 1 {
			t.Errorf("the launch of %d ran %d times", epoch, n)
		}
	}
	if len(ran) != len(after) {
		t.Errorf("%d launches, %d ran", len(after), len(ran))
	}
	out, _, code := server.cli("", "job", "status", "tick")
	if code != 0 || !strings.Contains(out, "Next Periodic Launch = none (job is stopped)") || !strings.Contains(out, "Previously Launched Jobs") {
		t.Errorf("job status: exit %d\n%s", code, out)
	}
}

// TestEachSecondIsLaunchedOnceAcrossLeaders kills (-9) leaders of three servers.
func TestEachSecondIsLaunchedOnceAcrossLeaders(t *testing.T) {
	t.Parallel()
	servers := threeServers(t)
	register(t, servers[0].Client, everySecond("tick", "true"))
	before := awaitChildren(t, servers[0].Client, "tick", 3)
	l := leader(t, servers)
	servers[l].Kill()
	other := servers[(l+1)%3]
	var restart sync.WaitGroup
	restart.Go(func() { servers[l].Start() })
	after := awaitChildren(t, other.Client, "tick", len(before)+6)
	restart.Wait()
	checkEpochs(t, after, before[len(before)-1])
	for _, epoch := range after {
		evals, _, err := other.Client.Jobs().Evaluations(limited(t), fmt.Sprint("tick/periodic-", epoch), nil)
		if err != nil {
			t.Fatal(err)
		}
		launches := 0
		for _, e := range evals {
			if e.TriggeredBy == structs.EvalTriggerPeriodicJob {
				launches++
			}
		}
		if launches != 1 {
			t.Errorf("the launch of %d has %d evaluations", epoch, launches)
		}
	}
}

// TestMaxRunDurationEndsARealProcess: the allocation is complete, its job dead, and nothing runs any more.
func TestMaxRunDurationEndsARealProcess(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.Start()
	register(t, a.Client, job("long", "exec sleep 600", batch(func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		g.MaxRunDuration, task.KillTimeout = structs.Ptr(2*time.Second), structs.Ptr(time.Second)
	})))
	alloc := awaitStatus(t, a.Client, "long", structs.AllocClientStatusComplete)
	if alloc.ClientDescription != "allocation exceeded max_run_duration" {
		t.Errorf("the allocation says %q", alloc.ClientDescription)
	}
	awaitJobStatus(t, a.Client, "long", structs.JobStatusDead)
	list, _, err := a.Client.Jobs().Allocations(limited(t), "long", false, nil)
	if err != nil || len(list) != 1 {
		t.Errorf("allocations %s, error %v", describe(list), err)
	}
}

// TestPeriodicJobByTheCommandLine runs, forces, shows and stops a periodic job on all nodes.
func TestPeriodicJobByTheCommandLine(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.Start()
	spec := `job "tidy" {
  type = "sysbatch"
  periodic {
    crons            = ["@yearly", "0 3 24 12 *"]
    time_zone        = "Europe/Berlin"
    prohibit_overlap = true
  }
  task "t" {
    driver = "raw_exec"
    config {
      command = "/bin/true"
    }
    resources {
      cpu    = 10
      memory = 16
    }
  }
}`
	if out, errs, code := a.cli(spec, "job", "run", "-"); code != 0 || !strings.HasPrefix(out, "Job registration successful\nApproximate next launch time: ") {
		t.Fatalf("job run: exit %d\n%s\n%s", code, out, errs)
	}
	for range 2 { // although they may overlap
		if out, errs, code := a.cli("", "job", "periodic", "force", "tid"); code != 0 || !strings.Contains(out, `finished with status "complete"`) {
			t.Fatalf("job periodic force: exit %d\n%s\n%s", code, out, errs)
		}
	}
	for _, epoch := range awaitChildren(t, a.Client, "tidy", 2) {
		awaitStatus(t, a.Client, fmt.Sprint("tidy/periodic-", epoch), structs.AllocClientStatusComplete)
	}
	if out, errs, code := a.cli("", "job", "stop", "tidy"); code != 0 {
		t.Errorf("job stop: exit %d\n%s\n%s", code, out, errs)
	}
	if out, errs, code := a.cli("", "job", "periodic", "force", "tidy"); code != 1 || !strings.Contains(errs, "stopped") {
		t.Errorf("a forced launch of a stopped job: exit %d\n%s\n%s", code, out, errs)
	}
}
