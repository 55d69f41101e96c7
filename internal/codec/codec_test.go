package codec

import (
	"reflect"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func TestRoundTripKeepsInternalFieldsAndTimes(t *testing.T) {
	in := &structs.Node{ID: "n1", SecretID: "s1", ComputedClass: "c1",
		Events: []*structs.NodeEvent{{Message: "m", Timestamp: time.Unix(1, 234567891).UTC()}}}
	data, err := Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out structs.Node
	if err := Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, &out) {
		t.Fatalf("got %+v", out)
	}
}

func TestDriverConfigKeepsItsShape(t *testing.T) {
	in := map[string]any{"args": []any{"a", int64(1)}, "opts": []any{map[string]any{"k": int64(9007199254740993)}}, "f": 1.5, "b": true, "n": nil}
	data, err := Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, out) {
		t.Fatalf("got %#v", out)
	}
}

func TestAllocationLeavesItsJobOut(t *testing.T) {
	data, err := Marshal(&structs.Allocation{ID: "a", JobModifyIndex: 7, Job: &structs.Job{}})
	if err != nil {
		t.Fatal(err)
	}
	var out structs.Allocation
	if err := Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if out.Job != nil || out.JobModifyIndex != 7 {
		t.Fatalf("got %+v", out)
	}
}

// TestWhatWasEncodedCanBeDecoded: an entry of the raft log that cannot be read again would end every server for good.
func TestWhatWasEncodedCanBeDecoded(t *testing.T) {
	deep := any("bottom")
	for range 10001 { // JSON's own limit is 10000
		deep = []any{deep}
	}
	for name, in := range map[string]any{"deep": deep, "no UTF-8": "\xff\xfe", "key": map[string]any{"\xc3(": int64(1)}} {
		data, err := Marshal(in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var out any
		if err := Unmarshal(data, &out); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(in, out) {
			t.Errorf("%s: it came back as another value", name)
		}
	}
}
