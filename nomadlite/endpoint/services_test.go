package endpoint

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// offer registers a service of an allocation, as its node does.
func (s *server) offer(alloc *structs.Allocation, name string, port int, tags ...string) *structs.ServiceRegistration {
	s.t.Helper()
	reg := &structs.ServiceRegistration{ID: structs.ServiceID(alloc.ID, "group", "", &structs.Service{Name: name, PortLabel: "http"}),
		ServiceName: name, NodeID: alloc.NodeID, AllocID: alloc.ID, Tags: tags, Address: "10.0.0.1", Port: port}
	s.apply(fsm.KindServiceUpsert, &fsm.ServiceUpsert{Services: []*structs.ServiceRegistration{reg}})
	return s.backend.Store.Service(nil, structs.DefaultNamespace, reg.ID)
}

func TestServicesAreListed(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	if a := s.get("/v1/services").want(200, nil); a.body != "[]" || a.header.Get("X-Nomad-Index") != "1" {
		t.Errorf("at first %s at %s", a.body, a.header.Get("X-Nomad-Index"))
	}
	a := s.place("a", s.register(job("a")).EvalID, node)
	b := s.place("b", s.register(job("b")).EvalID, node)
	one := s.offer(a, "web", 1, "x", "y")
	s.offer(b, "web", 2, "x")
	s.offer(a, "db", 3)

	for path, want := range map[string]string{
		"/v1/services":                 `[{"Namespace":"default","Services":[{"ServiceName":"db","Tags":[]},{"ServiceName":"web","Tags":["x","y"]}]}]`,
		"/v1/services?namespace=*":     `[{"Namespace":"default","Services":[{"ServiceName":"db","Tags":[]},{"ServiceName":"web","Tags":["x","y"]}]}]`,
		"/v1/services?namespace=other": `[]`,
		"/v1/service/nope":             `[]`,
	} {
		if a := s.get(path).want(200, nil); a.body != want {
			t.Errorf("%s gave %s", path, a.body)
		}
	}
	ports := func(path string) string {
		t.Helper()
		var list []structs.ServiceRegistration
		s.get(path).want(200, &list)
		var out []string
		for _, r := range list {
			out = append(out, fmt.Sprint(r.Port))
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	for path, want := range map[string]string{
		"/v1/service/web":                                                "1 2",
		"/v1/service/web?namespace=*":                                    "1 2",
		"/v1/service/db":                                                 "3",
		"/v1/job/a/services":                                             "1 3",
		"/v1/job/b/services":                                             "2",
		"/v1/allocation/" + a.ID + "/services":                           "1 3",
		"/v1/service/web?choose=" + url.QueryEscape("9|k"):               "1 2",
		"/v1/service/web?filter=" + url.QueryEscape("Port == 2"):         "2",
		"/v1/service/web?filter=" + url.QueryEscape(`Tags contains "y"`): "1",
		"/v1/service/web?choose=" + url.QueryEscape("1|k") + "&filter=" + url.QueryEscape("Port == 2"): "2",
	} {
		if got := ports(path); got != want {
			t.Errorf("%s gave %q, want %q", path, got, want)
		}
	}
	page := s.get("/v1/service/web?per_page=1").want(200, nil)
	next := page.header.Get("X-Nomad-NextToken")
	if next == "" || strings.Count(page.body, "ServiceName") != 1 {
		t.Fatalf("page is %s, next %q", page.body, next)
	}
	if rest := s.get("/v1/service/web?per_page=1&next_token="+url.QueryEscape(next)).want(200, nil); rest.body == page.body ||
		strings.Count(rest.body, "ServiceName") != 1 || rest.header.Get("X-Nomad-NextToken") != "" {
		t.Errorf("second page is %s", rest.body)
	}
	var whole []map[string]any
	s.get("/v1/allocation/"+b.ID+"/services").want(200, &whole)
	if len(whole) != 1 || len(whole[0]) != 12 {
		t.Errorf("registration is %v", whole)
	}
	s.get("/v1/job/nope/services").says(404, "job not found")
	s.get("/v1/allocation/nope/services").says(404, "alloc not found")
	for _, choose := range []string{"1", "x|k", "0|k", "-1|k", "|k", "1001|k"} {
		s.get("/v1/service/web?choose="+url.QueryEscape(choose)).says(400, "choose")
	}
	s.get("/v1/service/web?filter=("+url.QueryEscape(`Port`)).says(400, "filter")

	s.call("DELETE", "/v1/service/db/"+one.ID, nil).says(404, "service registration not found")
	s.call("DELETE", "/v1/service/web/"+one.ID+"?namespace=other", nil).says(404, "service registration not found")
	s.call("DELETE", "/v1/service/web/"+one.ID+"?namespace=*", nil).says(400, "namespace")
	if a := s.call("DELETE", "/v1/service/web/"+one.ID, nil).want(200, nil); a.body != "" || a.header.Get("X-Nomad-Index") == "" {
		t.Errorf("delete answered %q", a.body)
	}
	if got := ports("/v1/service/web"); got != "2" {
		t.Errorf("then %q", got)
	}
}

// TestWaitersHearThatAServiceLeaves asks with the public client, which also reads all the fields.
func TestWaitersHearThatAServiceLeaves(t *testing.T) {
	s := newServer(t)
	alloc := s.place("a", s.register(job("a")).EvalID, s.addNode())
	reg := s.offer(alloc, "web", 8080, "x")
	client := officialClient(t, s)
	list, meta, err := client.Services().Get("web", nil)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if got := *list[0]; got.ID != reg.ID || got.JobID != "a" || got.AllocID != alloc.ID || got.NodeID != alloc.NodeID ||
		got.Datacenter != "dc1" || got.Namespace != "default" || got.Port != 8080 || got.Address != "10.0.0.1" || got.CreateIndex == 0 {
		t.Errorf("got %+v", got)
	}
	if list, _, err := client.Jobs().Services("a", nil); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if list, _, err := client.Allocations().Services(alloc.ID, nil); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if list, _, err := client.Services().List(nil); err != nil || len(list) != 1 || list[0].Services[0].Tags[0] != "x" {
		t.Errorf("%v, %v", list, err)
	}
	type answer struct {
		list []*nomad.ServiceRegistration
		meta *nomad.QueryMeta
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		list, meta, err := client.Services().Get("web", &nomad.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: time.Minute})
		done <- answer{list, meta, err}
	}()
	s.observe(alloc, structs.AllocClientStatusComplete)
	if a := <-done; a.err != nil || len(a.list) != 0 || a.meta.LastIndex <= meta.LastIndex {
		t.Errorf("got %+v", a)
	}
	if _, err := client.Services().Delete("web", reg.ID, nil); err == nil {
		t.Error("a registration that is gone was deleted")
	}
}

// TestChooseIsStable: an instance that goes moves only the keys that had it.
func TestChooseIsStable(t *testing.T) {
	var list []*structs.ServiceRegistration
	for i := range 10 {
		list = append(list, &structs.ServiceRegistration{ID: fmt.Sprint("id", i)})
	}
	had := map[string]int{}
	for i := range 1000 {
		key := fmt.Sprint("key", i)
		before := choose(list, 2, key)
		had[before[0].ID]++
		after := choose(list[1:], 2, key)
		if slices.Contains(before, list[0]) {
			continue
		}
		if !slices.Equal(before, after) {
			t.Fatalf("key %s moved from %v to %v", key, before, after)
		}
	}
	for id, n := range had {
		if n < 50 || n > 200 {
			t.Errorf("%s is first for %d of 1000 keys", id, n)
		}
	}
}
