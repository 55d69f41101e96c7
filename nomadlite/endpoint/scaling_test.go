package endpoint

import (
	"testing"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadlite/nomadlite/structs"
)

func TestScalingPolicies(t *testing.T) {
	s := newServer(t)
	var list []*structs.ScalingPolicyListStub
	s.get("/v1/scaling/policies").want(200, &list)
	if len(list) != 0 {
		t.Fatalf("policies of nothing: %+v", list)
	}
	s.register(job("plain"))
	s.register(job("web", bounded, func(j *structs.Job) {
		j.TaskGroups[0].Tasks[0].ScalingPolicies = []*structs.ScalingPolicy{{Type: "vertical_cpu", Max: structs.Ptr[int64](900)}}
	}))
	s.register(job("api", bounded))
	for path, want := range map[string]int{"": 3, "?job=web": 2, "?job=web&namespace=*": 2, "?type=horizontal": 2, "?type=vertical_cpu&job=api": 0,
		"?job=we": 0, "?namespace=other": 0, "?per_page=2": 2, `?filter=Enabled+==+true`: 3} {
		s.get("/v1/scaling/policies"+path).want(200, &list)
		if len(list) != want {
			t.Errorf("%q lists %d policies, want %d", path, len(list), want)
		}
	}
	s.get("/v1/scaling/policies?job=api").want(200, &list)
	id, made := list[0].ID, list[0].CreateIndex

	// The id stays for as long as the job is there; a new version moves the index of what it changes.
	s.register(job("api", bounded, func(j *structs.Job) {
		j.TaskGroups[0].Scaling.Policy = map[string]any{"cooldown": "1m"}
		j.TaskGroups[0].Scaling.Enabled = structs.Ptr(false)
	}))
	var p structs.ScalingPolicy
	s.get("/v1/scaling/policy/"+id).want(200, &p)
	if p.CreateIndex != made || p.ModifyIndex <= made || *p.Max != 5 || p.Policy["cooldown"] != "1m" || *p.Enabled || p.Namespace != "default" ||
		p.Target["Job"] != "api" || p.Target["Group"] != "group" {
		t.Errorf("policy %+v", p)
	}

	// A stopped job has none, and a purged one neither.
	s.call("DELETE", "/v1/job/api", nil).want(200, nil)
	s.get("/v1/scaling/policy/"+id).want(404, nil)
	s.call("DELETE", "/v1/job/web?purge=true", nil).want(200, nil)
	s.get("/v1/scaling/policies").want(200, &list)
	if len(list) != 0 {
		t.Errorf("policies are left: %+v", list[0])
	}
	s.register(job("api", bounded))
	s.get("/v1/scaling/policy/"+id).want(200, &p)
}

func TestScalingPoliciesAreWaitedFor(t *testing.T) {
	s := newServer(t)
	s.register(job("plain"))
	scaling := officialClient(t, s).Scaling()
	_, meta, err := scaling.ListPolicies(nil)
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan []*nomad.ScalingPolicyListStub)
	go func() {
		list, _, _ := scaling.ListPolicies(&nomad.QueryOptions{WaitIndex: meta.LastIndex, Params: map[string]string{"job": "web"}})
		found <- list
	}()
	s.register(job("web", bounded))
	if list := <-found; len(list) != 1 || list[0].Type != nomad.ScalingPolicyTypeHorizontal {
		t.Errorf("waited for %+v", list)
	}
	for _, id := range []string{"", "i-do-not-exist"} {
		if _, _, err := scaling.GetPolicy(id, nil); err == nil || !contains(err, "404") {
			t.Errorf("policy %q: %v", id, err)
		}
	}
}
