package state

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/structs"
)

func ids[T any](seq iter.Seq[T], id func(T) string) []string {
	var out []string
	for row := range seq {
		out = append(out, id(row))
	}
	return out
}

func TestAnEmptyStoreHasWhatEveryClusterHas(t *testing.T) {
	s := New(Config{})
	if got := ids(s.Namespaces(nil), func(n *structs.Namespace) string { return n.Name }); !slices.Equal(got, []string{"default"}) {
		t.Errorf("namespaces are %v", got)
	}
	if got := ids(s.NodePools(nil), func(p *structs.NodePool) string { return p.Name }); !slices.Equal(got, []string{"all", "default"}) {
		t.Errorf("node pools are %v", got)
	}
	if c := s.SchedulerConfig(nil); c.SchedulerAlgorithm != "binpack" || c.ModifyIndex != 1 {
		t.Errorf("the scheduler's configuration is %+v", c)
	}
	if s.Index() != 0 || s.ClusterID(nil) != "" || s.TableIndex(TableJobs) != 0 || s.TableIndex(TableJobs, TableNamespaces) != 1 {
		t.Errorf("indexes are %d, %d", s.Index(), s.TableIndex(TableNamespaces))
	}
}

func TestReadsByNamespaceAndPrefix(t *testing.T) {
	w := newWorld(t)
	w.must(func(tx *Txn) error { tx.UpsertNamespace(&structs.Namespace{Name: "apps"}); return nil })
	for _, key := range [][2]string{{"default", "web"}, {"default", "webhook"}, {"apps", "web"}, {"apps", "db"}} {
		job := testJob(key[1], "service", "g")
		job.Namespace = structs.Ptr(key[0])
		w.must(func(tx *Txn) error { _, err := tx.RegisterJob(JobRegistration{Job: job, Now: w.now()}); return err })
		w.must(func(tx *Txn) error {
			alloc := testAlloc(key[0]+"-"+key[1], "g", "n1", 1)
			alloc.DeploymentID = "d-" + key[1]
			job := tx.job(key[0], key[1])
			return tx.ApplyPlan(&structs.Plan{Namespace: key[0], JobID: key[1], JobModifyIndex: job.JobModifyIndex,
				Places: map[string][]*structs.Allocation{"n1": {alloc}},
				Deployment: &structs.Deployment{ID: fmt.Sprintf("d-%s-%d", key[1], tx.Index()), Namespace: key[0], JobID: key[1],
					JobSpecModifyIndex: job.JobModifyIndex, Status: "running"}}, w.now())
		})
	}
	jobID := func(j *structs.Job) string { return *j.Namespace + "/" + *j.ID }
	allocID := func(a *structs.Allocation) string { return a.ID }
	for name, tc := range map[string]struct{ got, want []string }{
		"all jobs":         {ids(w.store.Jobs(nil, "*"), jobID), []string{"apps/db", "apps/web", "default/web", "default/webhook"}},
		"jobs":             {ids(w.store.Jobs(nil, "apps"), jobID), []string{"apps/db", "apps/web"}},
		"jobs by prefix":   {ids(w.store.JobsByPrefix(nil, "default", "webh"), jobID), []string{"default/webhook"}},
		"all by prefix":    {ids(w.store.JobsByPrefix(nil, "*", "web"), jobID), []string{"apps/web", "default/web", "default/webhook"}},
		"allocs":           {ids(w.store.Allocs(nil, "default"), allocID), []string{"default-web", "default-webhook"}},
		"allocs by prefix": {ids(w.store.AllocsByPrefix(nil, "*", "apps-"), allocID), []string{"apps-db", "apps-web"}},
		"allocs by create": {ids(w.store.AllocsByCreate(nil, "apps", false), allocID), []string{"apps-web", "apps-db"}},
		"newest first":     {ids(w.store.AllocsByCreate(nil, "*", true), allocID), []string{"apps-db", "apps-web", "default-webhook", "default-web"}},
		"of a deployment":  {ids(slices.Values(w.store.AllocsByDeployment(nil, "d-web")), allocID), []string{"default-web", "apps-web"}},
		"first only":       {firstOf(w.store.AllocsByCreate(nil, "*", false), allocID), []string{"default-web"}},
	} {
		if !slices.Equal(tc.got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, tc.got, tc.want)
		}
	}
	if got := w.store.DeploymentsByJob(nil, "apps", "web"); len(got) != 1 || w.store.LatestDeployment(nil, "apps", "web") != got[0] {
		t.Errorf("deployments are %v", got)
	}
	if w.store.LatestDeployment(nil, "apps", "nope") != nil || w.store.AllocsByNode(nil, "nope") != nil {
		t.Error("something was found that is not there")
	}
	if err := w.write(func(tx *Txn) error { return tx.DeleteNamespace("apps") }); structs.ErrorCode(err) != structs.CodeValidation {
		t.Errorf("a namespace with jobs was deleted: %v", err)
	}
}

func firstOf[T any](seq iter.Seq[T], id func(T) string) []string {
	for row := range seq {
		return []string{id(row)}
	}
	return nil
}

func TestNodesByPrefix(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"b1", "a1", "a2"} {
		w.must(func(tx *Txn) error { return tx.RegisterNode(testNode(id), w.now()) })
	}
	nodeID := func(n *structs.Node) string { return n.ID }
	if got := ids(w.store.Nodes(nil), nodeID); !slices.Equal(got, []string{"a1", "a2", "b1"}) {
		t.Errorf("nodes are %v", got)
	}
	if got := ids(w.store.NodesByPrefix(nil, "a"), nodeID); !slices.Equal(got, []string{"a1", "a2"}) {
		t.Errorf("nodes are %v", got)
	}
}

func TestPoolsAndNamespacesGo(t *testing.T) {
	w := newWorld(t)
	w.must(func(tx *Txn) error {
		tx.UpsertNamespace(&structs.Namespace{Name: "apps"})
		return tx.UpsertNodePool(&structs.NodePool{Name: "gpu"})
	})
	job := testJob("web", "service", "g")
	job.NodePool = structs.Ptr("gpu")
	w.register(job, nil)
	if err := w.write(func(tx *Txn) error { return tx.DeleteNodePool("gpu") }); structs.ErrorCode(err) != structs.CodeValidation {
		t.Errorf("a pool with jobs was deleted: %v", err)
	}
	w.must(func(tx *Txn) error {
		tx.StopJob(JobStop{Namespace: "default", JobID: "web", Now: w.now()})
		return nil
	})
	w.must(func(tx *Txn) error { return tx.DeleteNodePool("gpu") })
	w.must(func(tx *Txn) error { return tx.DeleteNamespace("apps") })
	if w.store.NodePool(nil, "gpu") != nil || w.store.Namespace(nil, "apps") != nil {
		t.Error("they are still there")
	}
	if got := ids(w.store.NodePoolsByPrefix(nil, "d"), func(p *structs.NodePool) string { return p.Name }); !slices.Equal(got, []string{"default"}) {
		t.Errorf("node pools are %v", got)
	}
}

func TestOneRootKeyIsActive(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"k1", "k2"} {
		w.must(func(tx *Txn) error {
			tx.UpsertRootKey(&structs.RootKey{RootKeyMeta: structs.RootKeyMeta{KeyID: id, State: keyActive}}, w.now())
			return nil
		})
	}
	keys := w.store.RootKeys(nil)
	if len(keys) != 2 || keys[0].State != keyInactive || keys[1].State != keyActive || keys[1].CreateTime != w.now() {
		t.Errorf("keys are %+v %+v", keys[0], keys[1])
	}
	if err := w.write(func(tx *Txn) error { return tx.DeleteRootKey("k2") }); structs.ErrorCode(err) != structs.CodeValidation {
		t.Errorf("the active key was deleted: %v", err)
	}
	w.must(func(tx *Txn) error { return tx.DeleteRootKey("k1") })
	if w.store.RootKey(nil, "k1") != nil || w.store.RootKey(nil, "k2") == nil {
		t.Error("the wrong key was deleted")
	}
}

func TestClusterIDIsMadeOnce(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"first", "second"} {
		w.must(func(tx *Txn) error {
			if got := tx.SetClusterMeta(id, w.now()); got != "first" {
				t.Errorf("the cluster's id is %s", got)
			}
			return nil
		})
	}
	if w.store.ClusterID(nil) != "first" {
		t.Error("a later id took")
	}
}

// TestSchedulersSeeASnapshot: what is committed later is not in it.
func TestSchedulersSeeASnapshot(t *testing.T) {
	w := oneAlloc(t)
	snap := w.store.Snapshot()
	view := snap.Scheduler()
	w.place("web", testAlloc("a2", "g", "n1", 1))
	usage := view.(interface {
		NodeUsage(string) *structs.NodeUsage
	})
	if len(view.AllocsByJob("default", "web")) != 1 || len(view.AllocsByNode("n1")) != 1 || view.Index() != snap.Index() ||
		usage.NodeUsage("n1").Allocs != 1 || w.store.NodeUsage("n1").Allocs != 2 {
		t.Error("a scheduler sees what came after its snapshot, or not what came before")
	}
	if view.Job("default", "web") == nil || view.Node("n1") == nil || len(ids(view.Nodes(), func(n *structs.Node) string { return n.ID })) != 1 ||
		view.LatestDeployment("default", "web") != nil || view.SchedulerConfig().SchedulerAlgorithm != "binpack" {
		t.Error("a scheduler does not see what is there")
	}
}

// TestFleetIsThatOfItsSnapshot: what was worked out for one snapshot serves others, and is always what a look at each node
// of the snapshot gives.
func TestFleetIsThatOfItsSnapshot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.register(testJob("web", "service", "g"), nil)
		snaps, placed := []*Snapshot{w.store.Snapshot()}, 0
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			node := fmt.Sprint("n", rapid.IntRange(0, 5).Draw(rt, "node"))
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0:
				w.must(func(tx *Txn) error { return tx.RegisterNode(testNode(node), w.now()) })
			case 1:
				w.must(func(tx *Txn) error { tx.DeregisterNode(node, "", w.now()); return nil })
			case 2, 3:
				placed++
				w.place("web", testAlloc(fmt.Sprint("a", placed), "g", node, 20000+placed))
			case 4:
				if placed > 0 {
					w.observe(fmt.Sprint("a", rapid.IntRange(1, placed).Draw(rt, "which")), "complete")
				}
			case 5:
				requireFleet(rt, rapid.SampledFrom(snaps).Draw(rt, "snapshot"))
			}
			snaps = append(snaps, w.store.Snapshot())
		}
		for _, snap := range snaps {
			requireFleet(rt, snap)
		}
		if newest := w.store.Snapshot().at(); newest.fleet() != w.store.Snapshot().at().fleet() {
			rt.Error("two snapshots of the same state made two fleets")
		}
		requireFleet(rt, w.restored().Snapshot())
	})
}

func requireFleet(t rapid.TB, snap *Snapshot) {
	t.Helper()
	fleet, usages := snap.Scheduler().(scheduler.FleetState).Fleet()
	want := slices.Collect(snap.Nodes(nil))
	if len(fleet.Sites) != len(want) || len(usages) != len(want) {
		t.Fatalf("the fleet has %d nodes and %d usages, the snapshot %d nodes", len(fleet.Sites), len(usages), len(want))
	}
	for i, n := range want {
		held := usages[i]
		if held == nil {
			held = noUsage
		}
		if fleet.Sites[i].Node != n || fleet.Sites[i].At() != i || held != snap.NodeUsage(n.ID) {
			t.Fatalf("place %d of the fleet is %s, which holds %+v; node %s holds %+v", i, fleet.Sites[i].Node.ID, held, n.ID, snap.NodeUsage(n.ID))
		}
	}
}

func TestAReadOfNoTableIsAFaultOfTheProgram(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it went unnoticed")
		}
	}()
	get[*structs.Job](New(Config{}).head(), nil, "no such table", indexID, "x")
}
