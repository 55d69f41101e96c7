package endpoint

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/worker"
	"github.com/nomadlite/nomadlite/structs"
)

func newRequest(t *testing.T, path string) *http.Request {
	t.Helper()
	return httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
}

func TestNamespaces(t *testing.T) {
	s := newServer(t)
	s.call("PUT", "/v1/namespace", structs.Namespace{Name: "team-a", Description: "a"}).want(200, nil)
	s.call("POST", "/v1/namespace/team-b", structs.Namespace{}).want(200, nil)
	var got []*structs.Namespace
	s.get("/v1/namespaces").want(200, &got)
	if len(got) != 3 || got[0].Name != "default" || got[2].Name != "team-b" {
		t.Errorf("namespaces are %+v", got)
	}
	s.get("/v1/namespaces?prefix=team").want(200, &got)
	if len(got) != 2 {
		t.Errorf("with the prefix there are %d", len(got))
	}
	s.call("PUT", "/v1/namespace", structs.Namespace{Name: "*"}).says(400, `invalid name "*". Must match`)
	s.call("PUT", "/v1/namespace", structs.Namespace{}).says(400, "missing namespace name")
	s.call("PUT", "/v1/namespace/x", structs.Namespace{Name: "y"}).says(400, "does not match")
	s.call("PUT", "/v1/namespace", structs.Namespace{Name: "q", Quota: "big"}).says(501, "not supported")
	s.call("PUT", "/v1/namespace", structs.Namespace{Name: "q", Description: strings.Repeat("x", 257)}).says(400, "256")
	s.call("PUT", "/v1/jobs?namespace=team-a", structs.JobRegisterRequest{Job: job("web")}).want(200, nil)
	s.call("DELETE", "/v1/namespace/team-a", nil).says(500, "non-terminal jobs")
	s.call("DELETE", "/v1/namespace/team-b", nil).want(200, nil)
	s.call("DELETE", "/v1/namespace/default", nil).says(500, "can not be deleted")
}

func TestNodePools(t *testing.T) {
	s := newServer(t)
	s.call("PUT", "/v1/node/pools", `{"Name":"dev","NodeIdentityTTL":"720h"}`).want(200, nil)
	if a := s.get("/v1/node/pool/dev").want(200, nil); !strings.Contains(a.body, `"NodeIdentityTTL":"720h0m0s"`) {
		t.Errorf("pool is %s", a.body)
	}
	var got []*structs.NodePool
	s.get("/v1/node/pools").want(200, &got)
	if len(got) != 3 || got[0].Name != "all" {
		t.Errorf("pools are %+v", got)
	}
	s.get("/v1/node/pools?prefix=d&per_page=1").want(200, &got)
	if len(got) != 1 || got[0].Name != "default" {
		t.Errorf("pools are %+v", got)
	}
	node := s.addNode()
	s.register(job("web"))
	var nodes []*structs.NodeListStub
	s.get("/v1/node/pool/default/nodes").want(200, &nodes)
	if len(nodes) != 1 || nodes[0].ID != node.ID {
		t.Errorf("nodes are %+v", nodes)
	}
	s.get("/v1/node/pool/dev/nodes").want(200, &nodes)
	if len(nodes) != 0 {
		t.Errorf("nodes are %+v", nodes)
	}
	var jobs []*structs.JobListStub
	s.get("/v1/node/pool/default/jobs").want(200, &jobs)
	if len(jobs) != 1 {
		t.Errorf("jobs are %+v", jobs)
	}
	s.call("PUT", "/v1/node/pools", `{"Name":"default"}`).says(400, "not allowed")
	s.call("PUT", "/v1/node/pools", `{"Name":"a b"}`).says(400, "invalid name")
	s.call("PUT", "/v1/node/pools", `{"Name":"x","NodeIdentityTTL":"soon"}`).says(400, "no duration")
	s.call("PUT", "/v1/node/pools", `{"Name":"x","SchedulerConfiguration":{"SchedulerAlgorithm":"best"}}`).says(400, "invalid scheduler algorithm")
	s.call("DELETE", "/v1/node/pool/default", nil).says(400, "can not be deleted")
	s.call("DELETE", "/v1/node/pool/dev", nil).want(200, nil)
	s.get("/v1/node/pool/dev").says(404, "not found")
}

func TestStatusAndAgent(t *testing.T) {
	s := newServer(t)
	for path, want := range map[string]string{
		"/v1/status/leader":               `"127.0.0.1:4747"`,
		"/v1/status/peers":                `["127.0.0.1:4747"]`,
		"/v1/regions":                     `["global"]`,
		"/v1/agent/servers":               `["127.0.0.1:4747"]`,
		"/.well-known/jwks.json":          `{"keys":[{"kid":"k"}]}`,
		"/v1/agent/schedulers":            `{"server_id":"id-1","schedulers":[]}`,
		"/v1/operator/raft/configuration": `{"Servers":[{"ID":"id-1","Node":"server-1.global","Address":"127.0.0.1:4747","Leader":true,"Voter":true,"RaftProtocol":"3"}],"Index":0}`,
	} {
		if a := s.get(path).want(200, nil); a.body != want {
			t.Errorf("%s answered %s, want %s", path, a.body, want)
		}
	}
	var members structs.ServerMembers
	s.get("/v1/agent/members").want(200, &members)
	if members.ServerName != "server-1.global" || members.ServerRegion != "global" || members.ServerDC != "dc1" || len(members.Members) != 1 {
		t.Errorf("members are %+v", members)
	}
	s.get("/v1/operator/license").want(204, nil)
	s.call("PUT", "/v1/system/gc", nil).want(200, nil)
	if s.cluster.collected != 1 {
		t.Error("nothing was collected")
	}
	s.call("PUT", "/v1/system/reconcile/summaries", nil).want(200, nil)
	s.call("POST", "/v1/system/gc", nil).says(405, "Invalid method")
}

func TestSchedulingWorkers(t *testing.T) {
	pool := worker.New(worker.Config{Types: []string{"service", "_core"}, Count: 1, NewID: func() string { return "w-1" }})
	s := newServer(t, func(b *Backend) { b.Workers = pool })
	path := "/v1/agent/schedulers/config"
	if a := s.get(path).want(200, nil); a.body != `{"server_id":"id-1","num_schedulers":1,"enabled_schedulers":["service","_core"]}` {
		t.Errorf("configuration is %s", a.body)
	}
	var list struct{ Schedulers []map[string]any }
	s.get("/v1/agent/schedulers").want(200, &list)
	if len(list.Schedulers) != 1 || list.Schedulers[0]["id"] != "w-1" || list.Schedulers[0]["workload_status"] != "WaitingToDequeue" {
		t.Errorf("workers are %v", list.Schedulers)
	}
	s.call("PUT", path, `{"num_schedulers":-1,"enabled_schedulers":["_core"]}`).says(400, "Invalid request")
	s.call("PUT", path, `{"num_schedulers":1,"enabled_schedulers":["service"]}`).says(400, "Invalid request")
	s.call("PUT", path, `{"num_schedulers":5000,"enabled_schedulers":["_core"]}`).says(400, "must not be greater than")
	s.call("PUT", path, `{"num_schedulers":1,"enabled_schedulers":["_core","best"]}`).says(400, "unknown scheduler")
	a := s.call("PUT", path, `{"num_schedulers":4,"enabled_schedulers":["_core","system"]}`).want(200, nil)
	if a.body != `{"server_id":"id-1","num_schedulers":4,"enabled_schedulers":["_core","system"]}` {
		t.Errorf("configuration became %s", a.body)
	}
}

func TestSchedulerConfiguration(t *testing.T) {
	s := newServer(t)
	var got structs.SchedulerConfigurationResponse
	s.get("/v1/operator/scheduler/configuration").want(200, &got)
	if got.SchedulerConfig.SchedulerAlgorithm != "binpack" {
		t.Fatalf("configuration is %+v", got.SchedulerConfig)
	}
	var set structs.SchedulerSetConfigurationResponse
	s.call("PUT", "/v1/operator/scheduler/configuration?cas=99", structs.SchedulerConfiguration{SchedulerAlgorithm: "spread"}).want(200, &set)
	if set.Updated {
		t.Error("a stale write was accepted")
	}
	s.call("PUT", "/v1/operator/scheduler/configuration?cas=1", structs.SchedulerConfiguration{SchedulerAlgorithm: "spread"}).want(200, &set)
	s.get("/v1/operator/scheduler/configuration").want(200, &got)
	if !set.Updated || got.SchedulerConfig.SchedulerAlgorithm != "spread" {
		t.Errorf("updated %t, configuration is %+v", set.Updated, got.SchedulerConfig)
	}
	s.call("PUT", "/v1/operator/scheduler/configuration?cas=one", structs.SchedulerConfiguration{}).says(400, "parameter cas")
	s.call("PUT", "/v1/operator/scheduler/configuration", structs.SchedulerConfiguration{SchedulerAlgorithm: "best"}).says(400, "invalid scheduler algorithm")
}

func TestKeyring(t *testing.T) {
	s := newServer(t)
	var rotated struct{ Key structs.RootKeyMeta }
	a := s.call("PUT", "/v1/operator/keyring/rotate", nil).want(200, &rotated)
	if rotated.Key.KeyID == "" || a.header.Get("X-Nomad-Index") != "1" {
		t.Fatalf("rotated %s", a.body)
	}
	old := rotated.Key.KeyID
	s.call("PUT", "/v1/operator/keyring/rotate?full=true", nil).want(200, &rotated)
	var keys []structs.RootKeyMeta
	b := s.get("/v1/operator/keyring/keys").want(200, &keys)
	if len(keys) != 2 || strings.Contains(b.body, "Wrapped") || strings.Contains(b.body, "PublicKey") {
		t.Errorf("keys are %s", b.body)
	}
	s.call("DELETE", "/v1/operator/keyring/key/"+rotated.Key.KeyID+"?force=true", nil).says(500, "active root key cannot be deleted")
	s.call("DELETE", "/v1/operator/keyring/key/"+old+"?force=true", nil).want(200, nil)
	s.call("PUT", "/v1/operator/keyring/rotate?algo=rot13", nil).says(400, "invalid algorithm")
	s.call("PUT", "/v1/operator/keyring/rotate?publish_time=1", nil).says(501, "not supported")
}

func TestSearch(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	for _, id := range []string{"web-1", "web-2", "db"} {
		s.register(job(id))
	}
	var got structs.SearchResponse
	s.call("PUT", "/v1/search", map[string]string{"Prefix": "web", "Context": "jobs"}).want(200, &got)
	if strings.Join(got.Matches["jobs"], " ") != "web-1 web-2" || len(got.Matches) != 1 {
		t.Errorf("found %+v", got)
	}
	s.call("POST", "/v1/search", map[string]string{"Prefix": node.ID[:8], "Context": "all"}).want(200, &got)
	if len(got.Matches["nodes"]) != 1 || got.Truncations["nodes"] {
		t.Errorf("found %+v", got)
	}
	for i := range 30 {
		s.register(job("many-" + string(rune('a'+i%26)) + string(rune('a'+i/26))))
	}
	s.call("PUT", "/v1/search", map[string]string{"Prefix": "many", "Context": "jobs"}).want(200, &got)
	if len(got.Matches["jobs"]) != searchLimit || !got.Truncations["jobs"] {
		t.Errorf("found %d", len(got.Matches["jobs"]))
	}
	s.call("PUT", "/v1/search", map[string]string{"Context": "cats"}).says(400, "invalid context")
}

func TestFuzzySearch(t *testing.T) {
	s := newServer(t, func(b *Backend) { b.Limits.Search = SearchLimits{Results: 3} })
	node := s.addNode()
	for _, id := range []string{"my-web", "web", "db"} {
		j := job(id)
		j.TaskGroups[0].Tasks[0].Config = map[string]any{"command": "/usr/bin/Webby"}
		s.register(j)
	}
	var got structs.FuzzySearchResponse
	find := func(text, context string) {
		t.Helper()
		got = structs.FuzzySearchResponse{}
		s.call("PUT", "/v1/search/fuzzy", map[string]string{"Text": text, "Context": context}).want(200, &got)
	}
	find("WEB", "jobs")
	if m := got.Matches["jobs"]; len(m) != 2 || m[0].ID != "web" || m[1].ID != "my-web" || m[1].Scope[1] != "my-web" {
		t.Errorf("jobs found are %+v", m)
	}
	if m := got.Matches["commands"]; len(m) != 3 || m[0].ID != "/usr/bin/Webby" || len(m[0].Scope) != 4 || got.Truncations["commands"] {
		t.Errorf("commands found are %+v", got)
	}
	find(node.ID[:8], "all")
	if m := got.Matches["nodes"]; len(m) != 0 {
		t.Errorf("a node was found by its id: %+v", m)
	}
	find(node.Name[1:], "nodes")
	if m := got.Matches["nodes"]; len(m) != 1 || m[0].Scope[0] != node.ID {
		t.Errorf("nodes found are %+v", m)
	}
	find("ault", "all")
	if len(got.Matches["namespaces"]) != 1 || len(got.Matches["node_pools"]) != 1 || got.Matches["evals"] == nil {
		t.Errorf("found %+v", got)
	}
	s.register(job("web-2"))
	s.register(job("web-3"))
	find("web", "jobs")
	if len(got.Matches["jobs"]) != 3 || !got.Truncations["jobs"] {
		t.Errorf("%d of 4 jobs found, truncated %t", len(got.Matches["jobs"]), got.Truncations["jobs"])
	}
	path := "/v1/search/fuzzy"
	s.call("PUT", path, map[string]string{"Text": "x"}).says(400, "at least 2 characters")
	s.call("PUT", path, map[string]string{"Text": "xy", "Context": "cats"}).says(400, "invalid context")
	s.backend.Limits.Search.Disabled = true
	s.call("PUT", path, map[string]string{"Text": "web"}).says(400, "not enabled")
}

func TestMetrics(t *testing.T) {
	s := newServer(t)
	s.register(job("web"))
	s.apply(fsm.KindAllocObserve, &fsm.AllocObserve{Observations: []*structs.AllocObservation{{AllocID: "gone", ObservedStatus: "running"}}})
	var got struct {
		Timestamp string
		Gauges    []gauge
		Counters  []sampled
		Samples   []sampled
		Points    []any
	}
	s.get("/v1/metrics").want(200, &got)
	values := map[string]float64{}
	for _, g := range got.Gauges {
		values[g.Name] = g.Value
	}
	if values["nomad.nomad.job_status.pending"] != 1 || values["nomad.runtime.num_goroutines"] < 1 {
		t.Errorf("gauges are %v", values)
	}
	if refused, ok := values["nomad.nomad.state.refused_observations"]; !ok || refused != 0 || values["nomad.nomad.state.unknown_observations"] != 1 {
		t.Errorf("gauges of what was refused: %v", values)
	}
	if got.Counters[0].Count != 1 || got.Samples[0].Count != 1 || got.Samples[0].Mean <= 0 || got.Points == nil {
		t.Errorf("metrics are %+v", got)
	}
	a := s.get("/v1/metrics?format=prometheus").want(200, nil)
	if !strings.Contains(a.body, "# HELP nomad_nomad_job_status_pending") || !strings.Contains(a.body, "\nnomad_nomad_job_status_pending 1\n") {
		t.Errorf("text is %s", a.body)
	}
}

func TestWhatIsNotSupportedSaysSo(t *testing.T) {
	s := newServer(t)
	s.register(job("web"))
	s.call("PUT", "/v1/job/nope/periodic/force", nil).says(404, "job not found")
	s.call("PUT", "/v1/deployment/fail/nope", nil).says(404, "deployment not found")
	s.call("DELETE", "/v1/operator/raft/peer?id=nope", nil).says(404, `id "nope" was not found in the Raft configuration`)
	fill := strings.NewReplacer("{job_id}", "web", "{name}", "x", "{id}", "x", "{deployment_id}", "x", "{service_id}", "x", "{path...}", "a/b", "{profile}", "heap")
	for _, row := range unsupportedPaths {
		if strings.Contains(row.path, "{deployment_id}") {
			continue // there are no deployments yet
		}
		for _, method := range strings.Fields(row.methods) {
			s.call(method, fill.Replace(row.path), nil).says(501, "not supported by this version of nomadlite")
		}
	}
	for _, row := range enterprisePaths {
		for _, method := range strings.Fields(row.methods) {
			s.call(method, fill.Replace(row.path), nil).says(501, "Enterprise only")
		}
	}
	for _, path := range []string{"/v1/acl/policies", "/v1/acl/token/self", "/v1/acl/policy/x"} {
		s.get(path).says(400, "ACL support disabled")
	}
}

func TestEveryRowIsComplete(t *testing.T) {
	for _, row := range Routes(&Backend{}) {
		if row.Callers != route.Public || row.Handle == nil || row.ServedBy == route.Local ||
			(row.ServedBy == route.Node) != (row.NodeOf != nil) {
			t.Errorf("row %v %s is served by %d for %d", row.Methods, row.Path, row.ServedBy, row.Callers)
		}
	}
}
