package command

import (
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func TestWhyUnhealthySaysWhatFailed(t *testing.T) {
	failed := &structs.TaskState{Failed: true, Events: []*structs.TaskEvent{{Type: "Received", DisplayMessage: "Task received by client"},
		{Type: "Task hook failed", DisplayMessage: "no option\n\t* \"comand\""},
		{Type: structs.TaskNotRestarting, DisplayMessage: "Error was unrecoverable"}}}
	got := whyUnhealthy(map[string]*structs.TaskState{"a": {}, "t": failed})
	if want := `: task "t": no option * "comand"`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := whyUnhealthy(map[string]*structs.TaskState{"a": {}}); got != "" {
		t.Errorf("%q of tasks that did not fail", got)
	}
}
