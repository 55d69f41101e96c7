package endpoint

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// fill places n allocations of one job.
func (s *server) fill(n int) {
	s.t.Helper()
	node := s.addNode()
	s.register(job("web"))
	j := s.backend.Store.Job(nil, structs.DefaultNamespace, "web")
	eval := uuid.New()
	var places []*structs.Allocation
	for i := range n {
		places = append(places, &structs.Allocation{
			ID: uuid.New(), Namespace: structs.DefaultNamespace, EvalID: eval, Name: structs.AllocName("web", "group", i),
			NodeID: node.ID, NodeName: node.Name, JobID: "web", TaskGroup: "group", DesiredStatus: structs.AllocDesiredStatusRun,
			JobModifyIndex: j.JobModifyIndex, ObservedStatus: structs.AllocClientStatusPending,
			AllocatedResources: &structs.AllocatedResources{},
		})
	}
	s.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: time.Now().UnixNano(), Plans: []*structs.Plan{{
		EvalID: eval, Namespace: structs.DefaultNamespace, JobID: "web", JobModifyIndex: j.JobModifyIndex,
		Places: map[string][]*structs.Allocation{node.ID: places},
	}}})
}

func BenchmarkListAllocations(b *testing.B) {
	for _, n := range []int{1000, 20000} {
		for _, params := range []string{"", "?per_page=100", "?prefix=ab"} {
			b.Run(fmt.Sprintf("%d%s", n, params), func(b *testing.B) {
				s := newServer(b)
				s.fill(n)
				req := httptest.NewRequest("GET", "/v1/allocations"+params, nil)
				b.ReportAllocs()
				for b.Loop() {
					rec := httptest.NewRecorder()
					s.mux.ServeHTTP(rec, req)
					b.SetBytes(int64(rec.Body.Len()))
				}
			})
		}
	}
}

func BenchmarkRegisterJob(b *testing.B) {
	s := newServer(b)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		body := fmt.Sprintf(`{"Job":{"ID":"job-%d","Type":"batch","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Driver":"raw_exec","Config":{"command":"/bin/true"}}]}]}}`, i)
		if a := s.serve(b, "PUT", "/v1/jobs", body); a.status != 200 {
			b.Fatal(a.body)
		}
	}
}
