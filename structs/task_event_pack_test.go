package structs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"testing"
	"time"
)

// usualEvents are those of a task that ran and was stopped, as nodes report them.
func usualEvents() []*TaskEvent {
	at := time.Unix(1_700_000_000, 123456789).UnixNano()
	const dir = "Building Task Directory"
	return []*TaskEvent{
		{Type: TaskReceived, DisplayMessage: "Task received by client", Details: map[string]string{}, Time: at},
		{Type: TaskSetup, DisplayMessage: dir, Message: dir, Details: map[string]string{"message": dir}, Time: at + 1_000_000},
		{Type: TaskStarted, DisplayMessage: "Task started by client", Details: map[string]string{}, Time: at + 9_000_000},
		{Type: TaskKilling, DisplayMessage: "Sent interrupt. Waiting 5s before force killing", KillTimeout: 5 * time.Second,
			Details: map[string]string{"kill_timeout": "5s"}, Time: at + 60e9},
		{Type: TaskTerminated, DisplayMessage: "Exit Code: 130, Signal: 2", ExitCode: 130, Signal: 2,
			Details: map[string]string{"exit_code": "130", "signal": "2", "oom_killed": "false"}, Time: at + 61e9},
	}
}

func TestPackedEventsAreTheSame(t *testing.T) {
	odd := filled[TaskEvent]("ü\"\\<&>\x01\xff\u2028")
	odd.Time = -5
	for name, events := range map[string][]*TaskEvent{
		"usual":  usualEvents(),
		"filled": {filled[TaskEvent](""), odd, filled[TaskEvent]("")},
		"nil":    {nil, {}, nil, {Details: map[string]string{}}, {Details: map[string]string{"": ""}, ExitCode: -1}},
	} {
		state := &TaskState{State: "dead", Events: events}
		plain, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		packed := state.Copy()
		packed.Pack()
		if packed.Events != nil || len(packed.Packed) == 0 {
			t.Errorf("%s: was not packed: %+v", name, packed)
		}
		if got := packed.Unpacked(); !reflect.DeepEqual(got, state) {
			t.Errorf("%s: want %+v, got %+v", name, state, got)
		}
		if shown, err := json.Marshal(packed); err != nil || !bytes.Equal(shown, plain) {
			t.Errorf("%s: want %s\ngot %s: %v", name, plain, shown, err)
		}
		again := state.Copy()
		again.Pack()
		if !bytes.Equal(again.Packed, packed.Packed) {
			t.Errorf("%s: packed once more it differs", name)
		}
	}
}

func TestEventsPackSmall(t *testing.T) {
	state := &TaskState{Events: usualEvents()[:3]}
	state.Pack()
	if n := len(state.Packed); n > 48 {
		t.Errorf("the events of a running task take %d bytes", n)
	}
}

func TestAllocationsAreUnpackedForReflection(t *testing.T) {
	a := &Allocation{TaskStates: map[string]*TaskState{"t": {Events: usualEvents()}, "none": nil}}
	a.TaskStates["t"].Pack()
	got := a.WithEvents()
	if len(got.TaskStates["t"].Events) != 5 || got.TaskStates["none"] != nil || a.TaskStates["t"].Events != nil {
		t.Errorf("got %+v of %+v", got.TaskStates, a.TaskStates)
	}
}

// TestPackedFormatStays: logs and snapshots hold packed events. A change of this sum is fine when texts were added at the end of
// packedTexts, and no other change is.
func TestPackedFormatStays(t *testing.T) {
	state := &TaskState{Events: append(usualEvents(), filled[TaskEvent](""))}
	state.Pack()
	sum := fnv.New32a()
	sum.Write([]byte(strings.Join(packedTexts[:68], "\n")))
	sum.Write([]byte(fmt.Sprintf("%x", state.Packed)))
	if got := sum.Sum32(); got != 0x173272c2 {
		t.Errorf("the sum of %d texts and of packed events is %#x", len(packedTexts), got)
	}
}

func FuzzUnpack(f *testing.F) {
	state := &TaskState{Events: append(usualEvents(), nil, filled[TaskEvent](""))}
	state.Pack()
	f.Add(state.Packed)
	f.Add([]byte{packFormat, 3, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Add([]byte{9, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		got := (&TaskState{Packed: data}).Unpacked()
		if n := len(got.Events); n > len(data) {
			t.Errorf("%d bytes hold %d events", len(data), n)
		}
	})
}

func BenchmarkPack(b *testing.B) {
	events := usualEvents()[:3]
	b.ReportAllocs()
	for b.Loop() {
		(&TaskState{Events: events}).Pack()
	}
}

func BenchmarkAppendPackedTaskState(b *testing.B) {
	for _, packed := range []bool{false, true} {
		b.Run(fmt.Sprint("packed=", packed), func(b *testing.B) {
			state := &TaskState{State: "running", Events: usualEvents()[:3]}
			if packed {
				state.Pack()
			}
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = appendTaskState(buf[:0], state)
			}
		})
	}
}
