package session

import (
	"reflect"
	"testing"

	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/structs"
)

func TestEncodedAnswerIsTheAnswer(t *testing.T) {
	var e encoder
	job := &structs.Job{ID: structs.Ptr("j"), Namespace: structs.Ptr("default"), JobModifyIndex: 7, Version: 2}
	for _, in := range []*structs.AssignmentsResponse{
		{Epoch: "e", ResultsIn: 9},
		{Epoch: "e", Complete: true, ResultsIn: 9, Digest: 1 << 63, Upsert: []*structs.Allocation{{ID: "a",
			JobModifyIndex: 7}}, Remove: []string{"b"}, Jobs: []*structs.Job{job}},
		{Epoch: "e", AppliesTo: 9, ResultsIn: 10, Jobs: []*structs.Job{job, {ID: structs.Ptr("k")}}},
	} {
		data, err := e.encode(in)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := codec.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var got, want structs.AssignmentsResponse
		if err := codec.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if err := codec.Unmarshal(plain, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	for range 3 * encodedKept {
		if _, err := e.job(&structs.Job{ID: structs.Ptr("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.jobs) > encodedKept {
		t.Errorf("%d encoded jobs are kept", len(e.jobs))
	}
}
