package state

import (
	"fmt"
	"iter"
	"slices"
	"testing"

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
	for id, usage := range view.(scheduler.UsagesState).NodeUsages() {
		if id != "n1" || usage != snap.NodeUsage("n1") {
			t.Errorf("usages tell of %s: %+v", id, usage)
		}
	}
}

// TestSchedulersWalkOverNodesOfTheirSnapshot: the slice of nodes is made once for many snapshots, and never serves one
// that it is not of.
func TestSchedulersWalkOverNodesOfTheirSnapshot(t *testing.T) {
	w := newWorld(t)
	var snaps []*Snapshot
	for i := range 3 {
		snaps = append(snaps, w.store.Snapshot())
		w.must(func(tx *Txn) error { return tx.RegisterNode(testNode(fmt.Sprint("n", i)), w.now()) })
	}
	w.must(func(tx *Txn) error { tx.DeregisterNode("n0", "", w.now()); return nil })
	snaps = append(snaps, w.store.Snapshot())
	want := []string{"[]", "[n0]", "[n0 n1]", "[n1 n2]"}
	for _, i := range []int{3, 1, 0, 2, 2, 3, 3} {
		if got := fmt.Sprint(ids(snaps[i].Scheduler().Nodes(), func(n *structs.Node) string { return n.ID })); got != want[i] {
			t.Errorf("snapshot %d has nodes %s, want %s", i, got, want[i])
		}
	}
	if view := snaps[3].at(); &view.nodes()[0] != &w.store.Snapshot().at().nodes()[0] {
		t.Error("two snapshots of the same nodes made two slices")
	}
	if got := ids(w.restored().Snapshot().Scheduler().Nodes(), func(n *structs.Node) string { return n.ID }); fmt.Sprint(got) != want[3] {
		t.Errorf("a restored state has nodes %v", got)
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
