package plan_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/broker"
	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/plan"
	"github.com/nomadlite/nomadlite/nomadlite/worker"
	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/structs"
)

// firstTries counts how many evaluations' first plans were kept whole.
type firstTries struct {
	worker.Leader
	mu    sync.Mutex
	seen  map[string]bool
	whole int
}

func (f *firstTries) SubmitPlan(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
	result, err := f.Leader.SubmitPlan(ctx, p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.seen[p.EvalID] {
		f.seen[p.EvalID] = true
		if err == nil && result.RefreshIndex == 0 {
			f.whole++
		}
	}
	return result, err
}

// BenchmarkContention lets six workers decide 1,000 evaluations, one a job of five, on 5,000 nodes: how many of the first
// plans are kept whole, and how long it takes. Plans collide where nodes become full.
func BenchmarkContention(b *testing.B) {
	for _, size := range []int{10, 100} {
		b.Run(fmt.Sprint("MHz=", size), func(b *testing.B) { benchmarkContention(b, size) })
	}
}

func benchmarkContention(b *testing.B, size int) {
	const workers, jobs, count, nodes = 6, 1000, 5, 5000
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		log := clustertest.New()
		evals := broker.New(broker.Config{}, hclog.NewNullLogger(), uuid.New)
		local := &worker.Local{Evals: evals, Plans: plan.NewQueue(), Raft: log, Store: log.Store}
		applier := plan.NewApplier(plan.Config{Logger: hclog.NewNullLogger(), Queue: local.Plans, Raft: log, Token: evals.Token,
			Snapshot: func() plan.State { return log.Store.Snapshot().Scheduler() },
			Alloc:    func(id string) *structs.Allocation { return log.Store.Alloc(nil, id) }, NewID: uuid.New, Now: time.Now})
		tries := &firstTries{Leader: local, seen: map[string]bool{}}
		pool := worker.New(worker.Config{Logger: hclog.NewNullLogger(), Store: log.Store, Broker: local, Leader: tries, Count: workers,
			Types: []string{structs.JobTypeService}, NewID: uuid.New, Factory: scheduler.New})
		apply := func(kind fsm.Kind, req any) {
			if _, _, err := log.Apply(ctx, kind, req); err != nil {
				b.Fatal(err)
			}
		}
		for i := range nodes {
			id := fmt.Sprintf("%08x-node-%d", uint32(i)*2654435761, i)
			apply(fsm.KindNodeRegister, &fsm.NodeRegister{Now: 1, Node: &structs.Node{ID: id, Name: id, SecretID: id, Datacenter: "dc1",
				Status: structs.NodeStatusReady, SchedulingEligibility: structs.NodeEligible, Attributes: map[string]string{"driver.mock_driver": "1"},
				NodeResources: &structs.NodeResources{Cpu: structs.NodeCpuResources{CpuShares: 14_000},
					Memory: structs.NodeMemoryResources{MemoryMB: 32_000}, Disk: structs.NodeDiskResources{DiskMB: 100 * 1024}}}})
		}
		for i := range jobs {
			job := &structs.Job{ID: structs.Ptr(fmt.Sprint("job-", i)), Type: structs.Ptr("service"), TaskGroups: []*structs.TaskGroup{{
				Name: structs.Ptr("g"), Count: structs.Ptr(count), Update: &structs.UpdateStrategy{MaxParallel: structs.Ptr(0)},
				Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver",
					Resources: &structs.Resources{CPU: &size, MemoryMB: &size}}}}}}
			job.Canonicalize()
			apply(fsm.KindJobRegister, &fsm.JobRegister{Job: job, Now: 1, Eval: &structs.Evaluation{ID: fmt.Sprint("eval-", i),
				Namespace: "default", JobID: *job.ID, Type: "service", Priority: 50, Status: structs.EvalStatusPending}})
		}
		sub := log.Store.Subscribe(1 << 16)
		var wg sync.WaitGroup
		began := time.Now()
		wg.Go(func() { _ = applier.Run(ctx, func() {}) }) // ends with ctx
		wg.Go(func() { _ = evals.Run(ctx, log.Store, log, func() {}) })
		wg.Go(func() { _ = pool.Run(ctx) })
		for done := 0; done < jobs; {
			change, err := sub.Next(ctx)
			if err != nil {
				b.Fatal(err)
			}
			for _, item := range change.Items {
				if e, ok := item.After.(*structs.Evaluation); ok && e.TerminalStatus() {
					done++
				}
			}
		}
		took := time.Since(began)
		cancel()
		wg.Wait()
		sub.Close()
		b.ReportMetric(100*float64(tries.whole)/jobs, "%whole")
		b.ReportMetric(jobs/took.Seconds(), "evals/s")
	}
	b.ReportMetric(0, "ns/op")
}
