package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func policyServer(t *testing.T) string {
	var policies []*structs.ScalingPolicy
	for i, id := range []string{"aaaa1111-0000-8000-8000-000000000000", "bbbb2222-0000-8000-8000-000000000000"} {
		policies = append(policies, &structs.ScalingPolicy{ID: id, Enabled: structs.Ptr(i == 0), Type: "horizontal", Max: structs.Ptr[int64](9),
			Policy: map[string]any{"cooldown": "1m"}, CreateIndex: 7, ModifyIndex: 8,
			Target: map[string]string{"Job": fmt.Sprint("job", i), "Group": "api", "Namespace": "default"}})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/scaling/policies", func(w http.ResponseWriter, r *http.Request) {
		out := []*structs.ScalingPolicyListStub{}
		for _, p := range policies {
			if job := r.URL.Query().Get("job"); (job == "" || p.Target["Job"] == job) && strings.HasPrefix(p.ID, r.URL.Query().Get("prefix")) {
				out = append(out, p.Stub())
			}
		}
		_ = json.NewEncoder(w).Encode(out)
	})
	mux.HandleFunc("GET /v1/scaling/policy/{id}", func(w http.ResponseWriter, r *http.Request) {
		for _, p := range policies {
			if p.ID == r.PathValue("id") {
				_ = json.NewEncoder(w).Encode(p)
			}
		}
	})
	ts := httptest.NewServer(mux)
	t.Cleanup(ts.Close)
	return ts.URL
}

func TestScalingPolicyCommands(t *testing.T) {
	url := policyServer(t)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"list", 0, "ID        Enabled  Type        Target\naaaa1111  true     horizontal  Namespace:default,Job:job0,Group:api\n" +
			"bbbb2222  false    horizontal  Namespace:default,Job:job1,Group:api\n"},
		{"list -job job1 -verbose", 0, "ID                                    Enabled  Type        Target\n" +
			"bbbb2222-0000-8000-8000-000000000000  false    horizontal  Namespace:default,Job:job1,Group:api\n"},
		{"list -job none", 0, "No policies found\n"},
		{"list -t {{range.}}{{.CreateIndex}},{{end}}", 0, "7,7,\n"},
		{"info bbbb", 0, "ID           = bbbb2222\nEnabled      = false\nType         = horizontal\nTarget       = Namespace:default,Job:job1,Group:api\n" +
			"Min          = none\nMax          = 9\nCreate Index = 7\nModify Index = 8\nPolicy:\n{\n  \"cooldown\": \"1m\"\n}\n"},
		{"info cccc", 1, "No scaling policy with id or prefix \"cccc\" found\n"},
	} {
		s, out, errs := testStreams()
		args := strings.Fields(c.args)
		args = append([]string{"scaling", "policy", args[0], "-address=" + url}, args[1:]...)
		code := run("nomadlite", args, s)
		if got := out.String() + errs.String(); code != c.code || got != c.want {
			t.Errorf("%s: exit %d\n%swant\n%s", c.args, code, got, c.want)
		}
	}
}
