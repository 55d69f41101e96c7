package structs

import (
	"encoding/json"
	"reflect"
	"testing"
)

type jsonAppender interface{ AppendJSON([]byte) []byte }

func TestAppendJSONSaysWhatEncodingJSONSays(t *testing.T) {
	long := filled[AllocationListStub]("")
	long.TaskStates["two"] = &TaskState{Events: []*TaskEvent{}}
	long.TaskStates["none"] = nil
	long.DeploymentStatus.Healthy = nil
	for _, v := range []jsonAppender{
		filled[AllocationListStub](""), filled[JobListStub](""), filled[EvaluationStub](""), filled[Evaluation](""),
		filled[NodeListStub](""),
		filled[AllocationListStub]("ü\"\\<&>\x01\xff\u2028\x7f"), filled[NodeListStub]("\n\t"),
		&AllocationListStub{}, &JobListStub{}, &EvaluationStub{}, &Evaluation{}, &NodeListStub{},
		&AllocationListStub{TaskStates: map[string]*TaskState{}, PreemptedAllocations: []string{}},
		&JobListStub{JobSummary: &JobSummary{}, Datacenters: []string{}, Meta: map[string]string{}},
		&NodeListStub{Drivers: map[string]*DriverInfo{"a": nil}},
		long,
		(*AllocationListStub)(nil), (*JobListStub)(nil), (*EvaluationStub)(nil), (*Evaluation)(nil), (*NodeListStub)(nil),
	} {
		want, err := json.Marshal(plainStates(v))
		if err != nil {
			t.Fatal(err)
		}
		var w, g any
		if err := json.Unmarshal(want, &w); err != nil {
			t.Fatal(err)
		}
		got := v.AppendJSON([]byte("x"))
		if got[0] != 'x' {
			t.Errorf("%T: what was there before is gone", v)
		}
		if err := json.Unmarshal(got[1:], &g); err != nil {
			t.Errorf("%T: %v in %s", v, err, got[1:])
			continue
		}
		if !reflect.DeepEqual(w, g) {
			t.Errorf("%T:\nwant %s\ngot  %s", v, want, got[1:])
		}
	}
}

// plainStates gives an allocation's stub with task states that encoding/json encodes by itself.
func plainStates(v any) any {
	stub, ok := v.(*AllocationListStub)
	if !ok || stub == nil {
		return v
	}
	type plain TaskState
	states := map[string]*plain{}
	for name, s := range stub.TaskStates {
		states[name] = (*plain)(s)
	}
	if stub.TaskStates == nil {
		states = nil
	}
	return struct {
		*AllocationListStub
		TaskStates map[string]*plain
	}{stub, states}
}

func BenchmarkAppendAllocationStub(b *testing.B) {
	stub := filled[AllocationListStub]("")
	stub.AllocatedResources, stub.RescheduleTracker = nil, nil
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = stub.AppendJSON(buf[:0])
	}
}

func BenchmarkMarshalAllocationStub(b *testing.B) {
	stub := filled[AllocationListStub]("")
	stub.AllocatedResources, stub.RescheduleTracker = nil, nil
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(stub); err != nil {
			b.Fatal(err)
		}
	}
}
