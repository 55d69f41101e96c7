package session

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func offered(allocID, name string, tags ...string) *structs.ServiceRegistration {
	return &structs.ServiceRegistration{ID: structs.ServiceID(allocID, "g", "", &structs.Service{Name: name}),
		ServiceName: name, Namespace: "default", AllocID: allocID, Tags: tags, Address: "10.0.0.1", Port: 80}
}

func keyOf(s *structs.ServiceRegistration) structs.ServiceKey {
	return structs.ServiceKey{Namespace: s.Namespace, ID: s.ID}
}

// offer sends what a node offers and wants the answer code.
func (n *node) offer(code int, req structs.NodeServicesRequest) {
	n.t.Helper()
	req.NodeID, req.SecretID = n.id, n.secret
	if got := n.call("services", &req, nil); got != code {
		n.t.Errorf("services: %d, want %d", got, code)
	}
}

func (c *cluster) services() string {
	var out []string
	for s := range c.store.Services(nil, "*") {
		out = append(out, s.AllocID+"/"+s.ServiceName+fmt.Sprint(s.Tags))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestANodeRegistersAndDeregisters(t *testing.T) {
	c := newCluster(t, 1)
	n1, n2 := connect(t, c.ports[0], "n1", nil), connect(t, c.ports[0], "n2", nil)
	job := c.job("web", "service")
	c.place(job, "n1", "a")
	c.place(job, "n2", "b")
	want := func(services string, entries int) {
		t.Helper()
		if got := c.services(); got != services {
			t.Errorf("registered are %q, want %q", got, services)
		}
		if got := c.log.count(fsm.KindServiceUpsert) + c.log.count(fsm.KindServiceDelete); got != entries {
			t.Errorf("%d entries, want %d", got, entries)
		}
	}
	web, db := offered("a", "web", "x"), offered("a", "db")
	n1.offer(204, structs.NodeServicesRequest{Upsert: []*structs.ServiceRegistration{web, db}})
	want("a/db[] a/web[x]", 1)
	n1.offer(204, structs.NodeServicesRequest{Complete: true, Upsert: []*structs.ServiceRegistration{db, web}})
	want("a/db[] a/web[x]", 1) // nothing new costs no entry
	n1.offer(204, structs.NodeServicesRequest{Delete: []structs.ServiceKey{keyOf(db)}})
	want("a/web[x]", 2)
	n1.offer(204, structs.NodeServicesRequest{Delete: []structs.ServiceKey{keyOf(db)}})
	want("a/web[x]", 2)

	// Neither another node's registration nor one in the name of another node's allocation.
	n2.offer(204, structs.NodeServicesRequest{Delete: []structs.ServiceKey{keyOf(web)}})
	want("a/web[x]", 2)
	n2.offer(204, structs.NodeServicesRequest{Upsert: []*structs.ServiceRegistration{offered("a", "false"), offered("b", "web")}})
	want("a/web[x] b/web[]", 3)
	forged := offered("b", "web")
	forged.ID = web.ID
	n2.offer(400, structs.NodeServicesRequest{Upsert: []*structs.ServiceRegistration{forged}})
	n2.offer(204, structs.NodeServicesRequest{Complete: true})
	want("a/web[x]", 4)
	n1.offer(204, structs.NodeServicesRequest{Complete: true, Upsert: []*structs.ServiceRegistration{offered("a", "other")}})
	want("a/other[]", 6)
}

func TestTheLastWordOfANodeCounts(t *testing.T) {
	c := newCluster(t, 1)
	connect(t, c.ports[0], "n1", nil)
	c.place(c.job("web", "service"), "n1", "a")
	c.apply(fsm.KindServiceUpsert, &fsm.ServiceUpsert{Services: []*structs.ServiceRegistration{
		{ID: offered("a", "old").ID, ServiceName: "old", NodeID: "n1", AllocID: "a"}}})
	web, db := offered("a", "web"), offered("a", "db")
	up := func(s ...*structs.ServiceRegistration) *structs.NodeServicesRequest {
		return &structs.NodeServicesRequest{NodeID: "n1", Upsert: s}
	}
	down := func(s *structs.ServiceRegistration) *structs.NodeServicesRequest {
		return &structs.NodeServicesRequest{NodeID: "n1", Delete: []structs.ServiceKey{keyOf(s)}}
	}
	all := func(s ...*structs.ServiceRegistration) *structs.NodeServicesRequest {
		o := up(s...)
		o.Complete = true
		return o
	}
	for _, tc := range []struct {
		name  string
		batch []*structs.NodeServicesRequest
		want  string
	}{
		{"up", []*structs.NodeServicesRequest{up(web)}, "+web"},
		{"up and down", []*structs.NodeServicesRequest{up(web), down(web)}, ""},
		{"down and up", []*structs.NodeServicesRequest{down(web), up(web)}, "+web"},
		{"all drops the rest", []*structs.NodeServicesRequest{up(web), all(db)}, "+db -old"},
		{"all and more", []*structs.NodeServicesRequest{all(db), up(web), down(db)}, "+web -old"},
		{"all with what is there", []*structs.NodeServicesRequest{down(offered("a", "old")), all(offered("a", "old"))}, "+old"},
	} {
		gone, more := fold(tc.batch, c.store)
		var got []string
		for _, s := range more {
			got = append(got, "+"+s.ServiceName)
		}
		for _, ref := range gone {
			got = append(got, "-"+strings.TrimSuffix(strings.TrimPrefix(ref.ID, "_nomad-task-a-group-g-"), "-"))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestRegistrationsOfManyNodesAreFolded(t *testing.T) {
	c := newCluster(t, 1)
	m := c.ports[0]
	job := c.job("web", "service")
	const n = 10
	var nodes []*node
	for i := range n {
		nd := connect(t, m, fmt.Sprintf("n%d", i), nil)
		c.place(job, nd.id, "a"+nd.id)
		nodes = append(nodes, nd)
	}
	c.log.gate, c.log.began = make(chan struct{}), make(chan struct{}, 1)
	var wg sync.WaitGroup
	offer := func(nd *node) {
		defer wg.Done()
		nd.offer(204, structs.NodeServicesRequest{Upsert: []*structs.ServiceRegistration{offered("a"+nd.id, "web")}})
	}
	wg.Add(n)
	go offer(nodes[0])
	<-c.log.began // the first goes out at once
	for _, nd := range nodes[1:] {
		go offer(nd)
	}
	eventually(t, "the others wait", func() bool {
		m.nodes.registrar.mu.Lock()
		defer m.nodes.registrar.mu.Unlock()
		return len(m.nodes.registrar.waiting) == n-1
	})
	c.log.gate <- struct{}{}
	<-c.log.began
	c.log.gate <- struct{}{}
	wg.Wait()
	if got := c.log.count(fsm.KindServiceUpsert); got != 2 {
		t.Errorf("%d entries", got)
	}
	if got := len(slices.Collect(c.store.ServicesByName(nil, "default", "web"))); got != n {
		t.Errorf("%d are registered", got)
	}
}
