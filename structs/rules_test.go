package structs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestEvaluationStatuses(t *testing.T) {
	for status, want := range map[string][3]bool{ // terminal, enqueue, block
		EvalStatusPending: {false, true, false}, EvalStatusBlocked: {false, false, true}, EvalStatusComplete: {true, false, false},
		EvalStatusFailed: {true, false, false}, EvalStatusCancelled: {true, false, false},
	} {
		e := &Evaluation{Status: status}
		if got := [3]bool{e.TerminalStatus(), e.ShouldEnqueue(), e.ShouldBlock()}; got != want {
			t.Errorf("%s: got %v", status, got)
		}
	}
	for status, want := range map[string]bool{
		DeploymentStatusRunning: true, DeploymentStatusPaused: true, DeploymentStatusFailed: false,
		DeploymentStatusSuccessful: false, DeploymentStatusCancelled: false,
	} {
		if (&Deployment{Status: status}).Active() != want {
			t.Errorf("%s: active is %v", status, !want)
		}
	}
}

func TestKindsOfJobs(t *testing.T) {
	periodic := &Job{Periodic: &PeriodicConfig{Enabled: Ptr(true)}}
	template := &Job{ParameterizedJob: &ParameterizedJobConfig{}}
	child := &Job{ParameterizedJob: &ParameterizedJobConfig{}, Dispatched: true}
	if !periodic.IsPeriodicActive() || periodic.HasOwnAllocations() || periodic.IsParameterized() {
		t.Error("a periodic job is not one")
	}
	if periodic.Stop = true; periodic.IsPeriodicActive() {
		t.Error("a stopped periodic job is active")
	}
	if !template.IsParameterized() || template.HasOwnAllocations() || !child.HasOwnAllocations() {
		t.Error("a dispatched child and its parent are mixed up")
	}
	if template.IsMultiregion() || !(&Job{Multiregion: &Multiregion{Regions: []*MultiregionRegion{{}}}}).IsMultiregion() {
		t.Error("regions are not found")
	}
}

func TestNamesOfNamespacesAndPools(t *testing.T) {
	for name, want := range map[string]bool{
		"default": true, "a-B-9": true, "": false, "a b": false, "*": false, "ü": false, strings.Repeat("x", 128): true,
		strings.Repeat("x", 129): false,
	} {
		if got := (&Namespace{Name: name}).Validate() == nil; got != want {
			t.Errorf("namespace %q: %v", name, got)
		}
		if got := (&NodePool{Name: name}).Validate() == nil; got != want {
			t.Errorf("node pool %q: %v", name, got)
		}
	}
	if (&Namespace{Name: "a_b"}).Validate() == nil || (&NodePool{Name: "a_b"}).Validate() != nil {
		t.Error("an underscore is for node pools only")
	}
	long := strings.Repeat("x", 300)
	if (&Namespace{Name: "a", Description: long}).Validate() == nil || (&NodePool{Name: "a", Description: long}).Validate() == nil {
		t.Error("descriptions have no limit")
	}
	pool := &NodePool{Name: "all", SchedulerConfiguration: &NodePoolSchedulerConfiguration{SchedulerAlgorithm: "dice"}}
	if pool.Validate() == nil || !pool.IsBuiltIn() || (&NodePool{Name: "x"}).IsBuiltIn() {
		t.Error("an unknown algorithm passes")
	}
	if (&SchedulerConfiguration{SchedulerAlgorithm: "dice"}).Validate() == nil ||
		(&SchedulerConfiguration{SchedulerAlgorithm: SchedulerAlgorithmSpread}).Validate() != nil {
		t.Error("the scheduler's algorithm is not checked")
	}
	for priority, want := range map[int]bool{0: true, 1: true, 100: true, -1: false, 101: false} {
		if err := ValidateEvalPriority(priority); (err == nil) != want || err != nil && ErrorCode(err) != CodeInvalid {
			t.Errorf("priority %d: %v", priority, err)
		}
	}
}

func TestPlans(t *testing.T) {
	p := &Plan{}
	if !p.IsEmpty() {
		t.Error("an empty plan is not")
	}
	p.Places = map[string][]*Allocation{"a": {{}, {}}, "b": {{}}}
	full, expected, actual := (&PlanResult{Places: map[string][]*Allocation{"a": {{}, {}}}}).FullCommit(p)
	if p.IsEmpty() || full || expected != 3 || actual != 2 {
		t.Errorf("full %v, %d of %d", full, actual, expected)
	}
	if full, _, _ := (&PlanResult{Places: p.Places}).FullCommit(p); !full {
		t.Error("a full commit is not")
	}
}

// Sets of ids that differ in their last character alone, all have digests of their own.
func TestAssignmentDigestTellsSimilarSetsApart(t *testing.T) {
	seen := map[uint64]int{}
	for set := range 1 << 16 {
		var ids []string
		for i := range 16 {
			if set>>i&1 == 1 {
				ids = append(ids, fmt.Sprintf("8ba85cef-22b2-4d6a-8b1a-00000000000%x", i))
			}
		}
		digest := AssignmentDigest(slices.Values(ids))
		if other, taken := seen[digest]; taken {
			t.Fatalf("sets %b and %b have one digest", other, set)
		}
		seen[digest] = set
	}
}

func TestAssignmentDigestDoesNotDependOnTheOrder(t *testing.T) {
	of := func(ids ...string) uint64 { return AssignmentDigest(slices.Values(ids)) }
	if of("a", "b", "c") != of("c", "a", "b") || of("a", "b") == of("a", "c") || of() != 0 || of("a", "a") == of("a") {
		t.Error("the digest does not tell sets apart")
	}
}

func TestAttributesTellTheirKind(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range []*Attribute{
		nil, {String: Ptr("1")}, {Int: Ptr(int64(1))}, {Int: Ptr(int64(1)), Unit: "W"}, {Float: Ptr(1.0)}, {Bool: Ptr(true)},
	} {
		if seen[a.text()] {
			t.Errorf("%q is there more than once", a.text())
		}
		seen[a.text()] = true
	}
}
