package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

// schedulerServer keeps the configuration of a scheduler at index 7.
type schedulerServer struct {
	cfg structs.SchedulerConfiguration
	cas string
}

func (s *schedulerServer) set(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	s.cfg = structs.SchedulerConfiguration{SchedulerAlgorithm: "spread", PreemptionConfig: structs.PreemptionConfig{SystemSchedulerEnabled: true},
		RejectJobRegistration: true, ModifyIndex: 7}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/operator/scheduler/configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(structs.SchedulerConfigurationResponse{SchedulerConfig: &s.cfg})
	})
	mux.HandleFunc("PUT /v1/operator/scheduler/configuration", func(w http.ResponseWriter, r *http.Request) {
		s.cas = r.URL.Query().Get("cas")
		if s.cas == "7" {
			_ = json.NewDecoder(r.Body).Decode(&s.cfg)
		}
		_ = json.NewEncoder(w).Encode(structs.SchedulerSetConfigurationResponse{Updated: s.cas == "7"})
	})
	ts := httptest.NewServer(mux)
	defer ts.Close()
	streams, o, e := testStreams()
	code = run("nomadlite", append([]string{"operator", "scheduler", "set-config", "-address=" + ts.URL}, args...), streams)
	return code, o.String() + e.String()
}

func TestSchedulerSettings(t *testing.T) {
	s := &schedulerServer{}
	before := structs.SchedulerConfiguration{SchedulerAlgorithm: "spread", PreemptionConfig: structs.PreemptionConfig{SystemSchedulerEnabled: true},
		RejectJobRegistration: true, ModifyIndex: 7}
	for _, c := range []struct {
		flag string
		want func(*structs.SchedulerConfiguration)
	}{
		{"-check-index=7", func(*structs.SchedulerConfiguration) {}},
		{"-scheduler-algorithm=binpack", func(c *structs.SchedulerConfiguration) { c.SchedulerAlgorithm = "binpack" }},
		{"-memory-oversubscription=true", func(c *structs.SchedulerConfiguration) { c.MemoryOversubscriptionEnabled = true }},
		{"-reject-job-registration=false", func(c *structs.SchedulerConfiguration) { c.RejectJobRegistration = false }},
		{"-pause-eval-broker=1", func(c *structs.SchedulerConfiguration) { c.PauseEvalBroker = true }},
		{"-preempt-batch-scheduler=true", func(c *structs.SchedulerConfiguration) { c.PreemptionConfig.BatchSchedulerEnabled = true }},
		{"-preempt-service-scheduler=true", func(c *structs.SchedulerConfiguration) { c.PreemptionConfig.ServiceSchedulerEnabled = true }},
		{"-preempt-sysbatch-scheduler=true", func(c *structs.SchedulerConfiguration) { c.PreemptionConfig.SysBatchSchedulerEnabled = true }},
		{"-preempt-system-scheduler=false", func(c *structs.SchedulerConfiguration) { c.PreemptionConfig.SystemSchedulerEnabled = false }},
		{"-node-limit-for-feasibility-checks=40", func(c *structs.SchedulerConfiguration) { c.NodeLimitForFeasibilityChecks = 40 }},
	} {
		want := before
		c.want(&want)
		code, out := s.set(t, strings.Fields(c.flag)...)
		if code != 0 || out != "Scheduler configuration updated!\n" || s.cfg != want {
			t.Errorf("%s: exit %d, %s%+v, want %+v", c.flag, code, out, s.cfg, want)
		}
	}
	if code, out := s.set(t); code != 0 || !strings.Contains(out, "nothing was changed") || s.cfg != before {
		t.Errorf("without flags: exit %d, %s%+v", code, out, s.cfg)
	}
	for flag, word := range map[string]string{"-check-index=6": "is not at index 6 any more", "-check-index=x": "is no index",
		"-scheduler-algorithm=best": "binpack or spread", "-pause-eval-broker=maybe": "true or false",
		"-node-limit-for-feasibility-checks=-1": "number of nodes"} {
		if code, out := s.set(t, flag); code != 1 || !strings.Contains(out, word) || s.cfg != before {
			t.Errorf("%s: exit %d, %s%+v", flag, code, out, s.cfg)
		}
	}
}
