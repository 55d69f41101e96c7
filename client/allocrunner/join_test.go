package allocrunner

import (
	"reflect"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// TestRestartsJoin: what remains is enough for both requests, on the stricter terms, and goes on from where the first is.
func TestRestartsJoin(t *testing.T) {
	long, short := structs.Ptr(time.Minute), structs.Ptr(time.Second)
	for _, c := range []struct {
		first       *RestartAll
		other, want RestartAll
	}{
		{nil, RestartAll{Tasks: []string{"a"}, KillTimeout: long}, RestartAll{Tasks: []string{"a"}, KillTimeout: long}},
		{&RestartAll{Tasks: []string{"b"}, PreKilled: true}, RestartAll{Tasks: []string{"a", "b"}, NoShutdownDelay: true},
			RestartAll{Tasks: []string{"a", "b"}, PreKilled: true, NoShutdownDelay: true}},
		{&RestartAll{Tasks: []string{"a"}}, RestartAll{}, RestartAll{}},
		{&RestartAll{}, RestartAll{Tasks: []string{"a"}}, RestartAll{}},
		{&RestartAll{KillTimeout: short}, RestartAll{KillTimeout: long}, RestartAll{KillTimeout: short}},
		{&RestartAll{KillTimeout: long}, RestartAll{KillTimeout: short}, RestartAll{KillTimeout: short}},
		{&RestartAll{}, RestartAll{KillTimeout: long}, RestartAll{KillTimeout: long}},
	} {
		if got := c.first.join(c.other); !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%+v and %+v are %+v, want %+v", c.first, c.other, *got, c.want)
		}
	}
}
