package fsm

import (
	"testing"

	"github.com/hashicorp/raft"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func TestSmoke(t *testing.T) {
	s := state.New(state.Config{})
	f := New(s, nil)
	data, err := Encode(KindJobRegister, JobRegister{Job: &structs.Job{ID: structs.Ptr("a"), Namespace: structs.Ptr("default"), Type: structs.Ptr("service")}, Now: 5})
	if err != nil {
		t.Fatal(err)
	}
	resp := f.Apply(&raft.Log{Index: 3, Data: data})
	t.Logf("%+v", resp)
	if s.Job(nil, "default", "a") == nil || s.Index() != 3 {
		t.Fatal("no job")
	}
}
