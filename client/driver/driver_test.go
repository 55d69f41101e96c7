package driver

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func TestParseSignal(t *testing.T) {
	for name, want := range map[string]syscall.Signal{"": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "term": syscall.SIGTERM, "hup": syscall.SIGHUP,
		"9": syscall.SIGKILL, "SIGUSR1": syscall.SIGUSR1, "usr2": syscall.SIGUSR2} {
		if got, err := ParseSignal(name); err != nil || got != want {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"SIG", "SIGNONE", "0", "-1", "65", "9x", " "} {
		if got, err := ParseSignal(name); structs.ErrorCode(err) != structs.CodeInvalid {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
}

func TestSuccess(t *testing.T) {
	for _, tt := range []struct {
		r    *ExitResult
		want bool
	}{
		{nil, false},
		{&ExitResult{}, false}, // an exit code nobody knows is no success
		{&ExitResult{Known: true}, true},
		{&ExitResult{Known: true, ExitCode: 1}, false},
		{&ExitResult{Known: true, Signal: 9}, false},
		{&ExitResult{Known: true, Err: errors.New("x")}, false},
	} {
		if got := tt.r.Successful(); got != tt.want {
			t.Errorf("%+v: %v", tt.r, got)
		}
	}
}

type named struct {
	Driver
	name string
}

func (n named) Name() string                       { return n.name }
func (n named) Fingerprint(context.Context) Health { return Health{} }

func TestRegistry(t *testing.T) {
	r, err := NewRegistry(named{name: "b"}, named{name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := r.Get("a"); !ok || d.Name() != "a" {
		t.Errorf("got %v, %v", d, ok)
	}
	if _, ok := r.Get("c"); ok {
		t.Error("there is no c")
	}
	if got := fmt.Sprint(r.Names()); got != "[a b]" {
		t.Error(got)
	}
	if _, err := NewRegistry(named{name: "a"}, named{name: "a"}); err == nil {
		t.Error("two of one name")
	}
}
