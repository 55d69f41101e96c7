package feasible

import (
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func node(edit func(*structs.Node)) *structs.Node {
	n := &structs.Node{
		ID: "id-1", Name: "host-1", Datacenter: "dc1", NodeClass: "big", NodePool: "gpu",
		Status: structs.NodeStatusReady, SchedulingEligibility: structs.NodeEligible,
		Attributes: map[string]string{
			"kernel.name": "linux", "cpu.numcores": "16", "load": "1.5", "os.version": "22.04", "nomad.version": "1.7.0-beta.1",
			"features": "a,b, c", "driver.raw_exec": "1", "unique.hostname": "host-1", "empty": "",
		},
		Meta: map[string]string{"rack": "r1"},
		Drivers: map[string]*structs.DriverInfo{
			"docker": {Detected: true, Healthy: true}, "java": {Detected: true}, "qemu": {},
		},
		HostVolumes: map[string]*structs.HostVolumeInfo{"data": {Path: "/data"}, "certs": {Path: "/certs", ReadOnly: true}},
	}
	if edit != nil {
		edit(n)
	}
	n.ComputeClass()
	return n
}

// TestOperators goes through the operators of the public constraint documentation.
func TestOperators(t *testing.T) {
	for _, tc := range []struct {
		l, op, r string
		want     bool
	}{
		{"${attr.kernel.name}", "=", "linux", true},
		{"${attr.kernel.name}", "==", "linux", true},
		{"${attr.kernel.name}", "is", "linux", true},
		{"${attr.kernel.name}", "", "linux", true},
		{"${attr.kernel.name}", "=", "windows", false},
		{"${attr.missing}", "=", "linux", false},
		{"${attr.missing}", "=", "", false},
		{"${attr.kernel.name}", "!=", "windows", true},
		{"${attr.kernel.name}", "not", "linux", false},
		{"${attr.missing}", "!=", "linux", true},
		{"linux", "=", "${attr.kernel.name}", true},
		{"${node.datacenter}", "=", "dc1", true},
		{"${node.class}", "=", "big", true},
		{"${node.pool}", "=", "gpu", true},
		{"${node.unique.id}", "=", "id-1", true},
		{"${node.unique.name}", "=", "host-1", true},
		{"${meta.rack}", "=", "r1", true},
		{"${unknown.rack}", "=", "r1", false},
		{"${attr.cpu.numcores}", ">", "9", true}, // as numbers, not as texts
		{"${attr.cpu.numcores}", ">=", "16", true},
		{"${attr.cpu.numcores}", "<", "9", false},
		{"${attr.cpu.numcores}", "<=", "16.5", true},
		{"${attr.load}", ">", "1.25", true},
		{"${meta.rack}", ">", "r0", true}, // as texts
		{"${attr.missing}", ">", "0", false},
		{"${attr.kernel.name}", "regexp", "^li.*x$", true},
		{"${attr.kernel.name}", "regexp", "win", false},
		{"${attr.kernel.name}", "regexp", "(", false},
		{"${attr.os.version}", "version", ">= 20.04, < 23", true},
		{"${attr.os.version}", "version", "> 22.04", false},
		{"${attr.os.version}", "version", "~> 22.0", true},
		{"${attr.os.version}", "version", "nonsense", false},
		{"${attr.nomad.version}", "version", ">= 1.6", false}, // a pre-release is not meant unless it is named
		{"${attr.nomad.version}", "semver", ">= 1.6.0", true}, // it is ordered like any other
		{"${attr.nomad.version}", "semver", ">= 1.7.0", false},
		{"${attr.nomad.version}", "semver", "< 1.7.0, != 1.6.0", true},
		{"${attr.nomad.version}", "semver", "~> 1.7.0", false},
		{"${attr.os.version}", "semver", ">= 20.0.0", true},
		{"${attr.kernel.name}", "semver", ">= 20.0.0", false},
		{"${attr.features}", "set_contains", "a,c", true},
		{"${attr.features}", "set_contains", "a,d", false},
		{"${attr.features}", "set_contains_all", "b", true},
		{"${attr.features}", "set_contains_any", "d, b", true},
		{"${attr.features}", "set_contains_any", "d,e", false},
		{"${attr.empty}", "is_set", "", true},
		{"${attr.missing}", "is_set", "", false},
		{"${attr.missing}", "is_not_set", "", true},
		{"${attr.kernel.name}", "is_not_set", "", false},
		{"${attr.kernel.name}", "~", "linux", false},
	} {
		f := newConstraintFilter(&structs.Constraint{LTarget: tc.l, Operand: tc.op, RTarget: tc.r})
		for range 2 { // the second time from what it remembers
			if got := f.Check(node(nil)); got != tc.want {
				t.Errorf("%s %s %s: %v, want %v", tc.l, tc.op, tc.r, got, tc.want)
			}
		}
	}
}

func group(edit func(*structs.Job, *structs.TaskGroup)) *Group {
	tg := &structs.TaskGroup{Tasks: []*structs.Task{{Driver: "docker"}}}
	job := &structs.Job{TaskGroups: []*structs.TaskGroup{tg}}
	if edit != nil {
		edit(job, tg)
	}
	return NewGroup(job, tg)
}

// TestExplain says for each filter why a node is refused.
func TestExplain(t *testing.T) {
	for name, tc := range map[string]struct {
		job  func(*structs.Job, *structs.TaskGroup)
		node func(*structs.Node)
		want string
	}{
		"fits":              {},
		"driver unhealthy":  {job: func(_ *structs.Job, tg *structs.TaskGroup) { tg.Tasks[0].Driver = "java" }, want: "missing drivers"},
		"driver undetected": {job: func(_ *structs.Job, tg *structs.TaskGroup) { tg.Tasks[0].Driver = "qemu" }, want: "missing drivers"},
		"driver missing":    {job: func(_ *structs.Job, tg *structs.TaskGroup) { tg.Tasks[0].Driver = "exec" }, want: "missing drivers"},
		"driver attribute":  {job: func(_ *structs.Job, tg *structs.TaskGroup) { tg.Tasks[0].Driver = "raw_exec" }},
		"job constraint": {job: func(j *structs.Job, _ *structs.TaskGroup) {
			j.Constraints = []*structs.Constraint{{LTarget: "${attr.kernel.name}", RTarget: "windows", Operand: "="}}
		}, want: "${attr.kernel.name} = windows"},
		"task constraint": {job: func(_ *structs.Job, tg *structs.TaskGroup) {
			tg.Tasks[0].Constraints = []*structs.Constraint{{LTarget: "${attr.gpu}", Operand: "is_set"}}
		}, want: "${attr.gpu} is_set"},
		"volume": {job: func(_ *structs.Job, tg *structs.TaskGroup) {
			tg.Volumes = map[string]*structs.VolumeRequest{"v": {Type: "host", Source: "data"}}
		}},
		"volume missing": {job: func(_ *structs.Job, tg *structs.TaskGroup) {
			tg.Volumes = map[string]*structs.VolumeRequest{"v": {Type: "host", Source: "logs"}}
		}, want: "missing compatible host volumes"},
		"volume only readable": {job: func(_ *structs.Job, tg *structs.TaskGroup) {
			tg.Volumes = map[string]*structs.VolumeRequest{"v": {Type: "host", Source: "certs"}}
		}, want: "missing compatible host volumes"},
		"volume readable is enough": {job: func(_ *structs.Job, tg *structs.TaskGroup) {
			tg.Volumes = map[string]*structs.VolumeRequest{"v": {Type: "host", Source: "certs", ReadOnly: true}}
		}},
		"csi": {job: func(_ *structs.Job, tg *structs.TaskGroup) {
			tg.Volumes = map[string]*structs.VolumeRequest{"v": {Type: "csi", Source: "x"}}
		}, want: "missing csi volumes"},
		"host network": {job: func(_ *structs.Job, tg *structs.TaskGroup) {
			tg.Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "http", HostNetwork: "public"}}}}
		}, want: `missing host network "public" for port`},
		"host network there": {job: func(_ *structs.Job, tg *structs.TaskGroup) {
			tg.Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "http", HostNetwork: "public"}}}}
		}, node: func(n *structs.Node) {
			n.HostNetworks = map[string]*structs.HostNetworkInfo{"public": {CIDR: "10.0.0.1/32"}}
		}},
		"devices": {job: func(_ *structs.Job, tg *structs.TaskGroup) {
			tg.Tasks[0].Resources = &structs.Resources{Devices: []*structs.RequestedDevice{{Name: "gpu"}}}
		}, want: "missing devices"},
	} {
		ok, reason := group(tc.job).Check(node(tc.node))
		if ok != (tc.want == "") || reason != tc.want {
			t.Errorf("%s: %v %q, want %q", name, ok, reason, tc.want)
		}
	}
}

// TestClasses looks at what is remembered by class, and at what escapes it.
func TestClasses(t *testing.T) {
	g := group(func(j *structs.Job, _ *structs.TaskGroup) {
		j.Constraints = []*structs.Constraint{{LTarget: "${meta.rack}", RTarget: "r1", Operand: "="}}
	})
	good, bad := node(nil), node(func(n *structs.Node) { n.Meta["rack"] = "r2" })
	same := node(func(n *structs.Node) { n.ID, n.Attributes["unique.hostname"] = "id-2", "host-2" })
	if good.ComputedClass != same.ComputedClass || good.ComputedClass == bad.ComputedClass {
		t.Fatal("classes are not as this test needs them")
	}
	for n, want := range map[*structs.Node]bool{good: true, bad: false, same: true} {
		if ok, _ := g.Check(n); ok != want {
			t.Errorf("%s: %v", n.ID, ok)
		}
	}
	if c := g.Classes(); len(c) != 2 || !c[good.ComputedClass] || c[bad.ComputedClass] || g.Escaped() {
		t.Errorf("classes %v, escaped %v", c, g.Escaped())
	}
	g = group(func(j *structs.Job, _ *structs.TaskGroup) {
		j.Constraints = []*structs.Constraint{{LTarget: "${attr.unique.hostname}", RTarget: "host-2", Operand: "="}}
	})
	if ok, reason := g.Check(good); ok || reason != "${attr.unique.hostname} = host-2" {
		t.Errorf("host-1: %v %q", ok, reason)
	}
	if ok, _ := g.Check(same); !ok || !g.Escaped() {
		t.Errorf("host-2 refused, escaped %v", g.Escaped())
	}
	if c := g.Classes(); !c[good.ComputedClass] {
		t.Errorf("a class is not ineligible because of one node: %v", c)
	}
}

func TestScope(t *testing.T) {
	nodes := []*structs.Node{
		node(func(n *structs.Node) { n.Datacenter = "eu-1" }),
		node(func(n *structs.Node) { n.Datacenter = "eu-2" }),
		node(func(n *structs.Node) { n.Datacenter = "us-1" }),
		node(func(n *structs.Node) { n.Datacenter, n.NodePool = "eu-1", "default" }),
		node(func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible }),
		node(func(n *structs.Node) { n.Status = structs.NodeStatusDown }),
		node(func(n *structs.Node) { n.DrainStrategy = &structs.DrainStrategy{} }),
	}
	for _, tc := range []struct {
		dcs           []string
		pool          string
		nodes, inPool int
	}{
		{[]string{"eu-*"}, "gpu", 2, 3},
		{[]string{"eu-1", "us-1"}, "gpu", 2, 3},
		{[]string{"*"}, "all", 4, 4},
		{nil, "default", 1, 1},
		{[]string{"dc1"}, "gpu", 0, 3},
		{[]string{"eu-1"}, "nowhere", 0, 0},
	} {
		job := &structs.Job{Datacenters: tc.dcs, NodePool: structs.Ptr(tc.pool)}
		s := NewScope(func(yield func(*structs.Node) bool) {
			for _, n := range nodes {
				if !yield(n) {
					return
				}
			}
		}, job)
		sum := 0
		for _, n := range s.Available {
			sum += n
		}
		if len(s.Nodes) != tc.nodes || s.InPool != tc.inPool || sum != tc.nodes {
			t.Errorf("%v %s: %d nodes, %d in the pool, available %v", tc.dcs, tc.pool, len(s.Nodes), s.InPool, s.Available)
		}
	}
	job := &structs.Job{Datacenters: []string{"eu-*"}, NodePool: structs.Ptr("gpu")}
	if !Contains(job, nodes[0]) || Contains(job, nodes[2]) || Contains(job, nodes[3]) {
		t.Error("Contains does not agree with the scope")
	}
}

func TestDistinct(t *testing.T) {
	g := group(func(j *structs.Job, tg *structs.TaskGroup) {
		j.Constraints = []*structs.Constraint{{Operand: "distinct_hosts", RTarget: "false"}, {Operand: "distinct_hosts"}}
		tg.Constraints = []*structs.Constraint{
			{Operand: "distinct_property", LTarget: "${meta.rack}", RTarget: "3"},
			{Operand: "distinct_property", LTarget: "${node.unique.name}"},
		}
	})
	if !g.DistinctHostsJob || g.DistinctHostsGroup || len(g.DistinctProperties) != 2 || !g.Escaped() {
		t.Fatalf("%+v", g)
	}
	if g.DistinctProperties[0].Limit != 3 || g.DistinctProperties[1].Limit != 1 || g.DistinctProperties[0].WholeJob {
		t.Fatalf("%+v", g.DistinctProperties)
	}
}

func TestAffinities(t *testing.T) {
	job := &structs.Job{Affinities: []*structs.Affinity{
		{LTarget: "${meta.rack}", RTarget: "r1", Operand: "=", Weight: structs.Ptr(int8(60))},
		{LTarget: "${node.class}", RTarget: "big", Operand: "=", Weight: structs.Ptr(int8(-20))},
	}}
	tg := &structs.TaskGroup{Affinities: []*structs.Affinity{{LTarget: "${attr.kernel.name}", RTarget: "windows", Operand: "="}}}
	a := NewAffinities(job, tg)
	if got, want := a.Score(node(nil)), (60.0-20)/(60+20+50); got != want {
		t.Errorf("score %v, want %v", got, want)
	}
	if got := NewAffinities(&structs.Job{}, &structs.TaskGroup{}).Score(node(nil)); got != 0 {
		t.Errorf("no affinity scores %v", got)
	}
}
