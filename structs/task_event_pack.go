package structs

import (
	"encoding/binary"
	"iter"
	"slices"
	"sync"
	"time"
)

// Events of a task take 350 bytes each as values, 700 with Details, and a server holds some for each allocation. So it keeps
// them packed: each is its set fields and the time since the one before it, and a text that is well known, or was there before, is
// a number.
//
// packFormat stands first, then the events. An event is a varint of what is set (bit 0: it is not nil, bit 1: Details are not
// nil, from bit 2 on the fields), the difference of its Time from the last one's, the set fields, and Details as their
// number, keys and values. Numbers are signed varints. A text is a varint: twice its length, and then the text; or twice its place,
// plus one, among packedTexts and, after those, the texts of this list so far.
const packFormat = 1

// packedTexts are the well-known texts. Packed events of the raft log and of snapshots mean them by their place: only add at
// the end.
var packedTexts = [...]string{
	"", TaskSetupFailure, TaskDriverFailure, TaskDriverMessage, TaskReceived, TaskFailedValidation, TaskSetup, TaskStarted, TaskTerminated,
	TaskRestarting, TaskNotRestarting, TaskKilling, TaskKilled, TaskRestartSignal, TaskSignaling, TaskDownloadingArtifacts,
	TaskSiblingFailed, TaskLeaderDead, TaskMainDead, TaskTemplate, TaskHookMessage, TaskHookFailed, TaskRestoreFailed,
	TaskWaitingPrevious, TaskWaitingShutdownDelay, TaskSkippingShutdownDelay, TaskReattached, TaskAllocUnhealthy, TaskBuildingTaskDir,
	TaskClientReconnected,
	"Task received by client", "Task started by client", "Task successfully killed", "Sent interrupt. Waiting 5s before force killing",
	"Exit Code: 0", "Exit Code: 1", "Exit Code: 130, Signal: 2", "Exit Code: 137, Signal: 9", "Exit Code: 143, Signal: 15",
	ReasonWithinPolicy, "message", "kill_reason", "fails_task", "kill_timeout", "kill_error", "exit_code", "signal", "oom_killed",
	"exit_message", "restart_reason", "start_delay", "driver_error", "setup_error", "validation_error", "failed_sibling",
	"task_signal", "task_signal_reason", "true", "false", "0", "1", "2", "9", "15", "130", "137", "143", "5s",
}

var packedTextPlaces = sync.OnceValue(func() map[string]uint64 {
	places := make(map[string]uint64, len(packedTexts))
	for i, text := range packedTexts {
		places[text] = uint64(i)
	}
	return places
})

// packedTextFields is how many textFields there are. Their bits are those from 2 on, then come those of numberFields. One more of them
// needs a new format.
const packedTextFields = 16

func (t *TaskEvent) textFields() [packedTextFields]*string {
	return [packedTextFields]*string{&t.Type, &t.DisplayMessage, &t.Message, &t.RestartReason, &t.SetupError, &t.DriverError, &t.DriverMessage,
		&t.KillReason, &t.KillError, &t.DownloadError, &t.ValidationError, &t.FailedSibling, &t.VaultError, &t.TaskSignalReason,
		&t.TaskSignal, &t.GenericSource}
}

const packedNumberFields = 7

// numberFields are the numbers but for Time, and FailsTask.
func (t *TaskEvent) numberFields() [packedNumberFields]int64 {
	var fails int64
	if t.FailsTask {
		fails = 1
	}
	return [packedNumberFields]int64{int64(t.ExitCode), int64(t.Signal), int64(t.KillTimeout), t.StartDelay, t.DiskLimit, t.DiskSize, fails}
}

func (t *TaskEvent) setPackedNumbers(n [packedNumberFields]int64) {
	t.ExitCode, t.Signal, t.KillTimeout, t.StartDelay = int(n[0]), int(n[1]), time.Duration(n[2]), n[3]
	t.DiskLimit, t.DiskSize, t.FailsTask = n[4], n[5], n[6] != 0
}

// Pack keeps the events in Packed alone. A list that is nil or empty stays as it is.
func (t *TaskState) Pack() {
	if len(t.Events) == 0 {
		return
	}
	p := packer{out: make([]byte, 1, 64)}
	p.out[0] = packFormat
	for _, e := range t.Events {
		p.event(e)
	}
	t.Packed, t.Events = slices.Clone(p.out), nil
}

// AllEvents gives the events, packed or not. One is valid until the next is asked for, and not to be changed.
func (t *TaskState) AllEvents() iter.Seq[*TaskEvent] {
	if t.Events != nil || len(t.Packed) == 0 {
		return slices.Values(t.Events)
	}
	return func(yield func(*TaskEvent) bool) {
		u := unpack(t.Packed)
		var e TaskEvent
		for u.next(&e) {
			if !u.there {
				if !yield(nil) {
					return
				}
				continue
			}
			if e.Details = nil; u.detailed {
				e.Details = make(map[string]string, u.details.n/2)
			}
			for i := 0; i < u.details.n; i += 2 {
				e.Details[u.details.at(i)] = u.details.at(i + 1)
			}
			if !yield(&e) {
				return
			}
		}
	}
}

// Unpacked is the state with its events as values. What is not packed is given as it is.
func (t *TaskState) Unpacked() *TaskState {
	if t == nil || t.Events != nil || len(t.Packed) == 0 {
		return t
	}
	out := *t
	out.Packed, out.Events = nil, []*TaskEvent{}
	for e := range t.AllEvents() {
		if e != nil {
			own := *e
			e = &own
		}
		out.Events = append(out.Events, e)
	}
	return &out
}

// WithEvents is the allocation with the events of its tasks as values, to be read by reflection. The allocation stays as it is.
func (a *Allocation) WithEvents() *Allocation {
	out := *a
	out.TaskStates = make(map[string]*TaskState, len(a.TaskStates))
	for name, state := range a.TaskStates {
		out.TaskStates[name] = state.Unpacked()
	}
	return &out
}

type packer struct {
	out  []byte
	own  []string // texts after packedTexts
	last int64
}

func (p *packer) event(e *TaskEvent) {
	if e == nil {
		p.out = append(p.out, 0)
		return
	}
	texts, numbers := e.textFields(), e.numberFields()
	set := uint64(1)
	if e.Details != nil {
		set |= 2
	}
	for i, text := range texts {
		if *text != "" {
			set |= 4 << i
		}
	}
	for i, n := range numbers {
		if n != 0 {
			set |= 4 << (packedTextFields + i)
		}
	}
	p.out = binary.AppendUvarint(p.out, set)
	p.out = binary.AppendVarint(p.out, e.Time-p.last)
	p.last = e.Time
	for _, text := range texts {
		if *text != "" {
			p.text(*text)
		}
	}
	for _, n := range numbers {
		if n != 0 {
			p.out = binary.AppendVarint(p.out, n)
		}
	}
	if e.Details != nil {
		p.details(e.Details)
	}
}

func (p *packer) details(details map[string]string) {
	p.out = binary.AppendUvarint(p.out, uint64(len(details)))
	var few [8]string // keeps most lists off the heap
	keys := few[:0]
	for k := range details {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		p.text(k)
		p.text(details[k])
	}
}

func (p *packer) text(s string) {
	place, known := packedTextPlaces()[s]
	if !known {
		if i := slices.Index(p.own, s); i >= 0 {
			place, known = uint64(len(packedTexts)+i), true
		}
	}
	if known {
		p.out = binary.AppendUvarint(p.out, place<<1|1)
		return
	}
	p.own = append(p.own, s)
	p.out = append(binary.AppendUvarint(p.out, uint64(len(s))<<1), s...)
}

// unpacker reads what is left in in. Texts are parts of it. What no packer wrote breaks it off.
type unpacker struct {
	in     string
	own    textList
	last   int64
	broken bool
	// Of the last event: whether it is one, not nil; whether it has Details; their keys and values in turn, by key.
	there, detailed bool
	details         textList
}

// textList keeps the first texts off the heap.
type textList struct {
	few  [8]string
	more []string
	n    int
}

func (l *textList) add(text string) {
	if l.n < len(l.few) {
		l.few[l.n] = text
	} else {
		l.more = append(l.more, text)
	}
	l.n++
}

func (l *textList) at(i int) string {
	if i < len(l.few) {
		return l.few[i]
	}
	return l.more[i-len(l.few)]
}

func (l *textList) clear() { l.more, l.n = l.more[:0], 0 }

func unpack(packed []byte) unpacker {
	if len(packed) == 0 || packed[0] != packFormat {
		return unpacker{}
	}
	return unpacker{in: string(packed[1:])}
}

// next reads the next event into e, but for its Details. False is the end.
func (u *unpacker) next(e *TaskEvent) bool {
	if len(u.in) == 0 {
		return false
	}
	set := u.uvarint()
	u.there, u.detailed = set&1 != 0, set&3 == 3
	u.details.clear()
	if !u.there {
		return !u.broken
	}
	*e = TaskEvent{Time: u.last + u.varint()}
	u.last = e.Time
	for i, text := range e.textFields() {
		if set&(4<<i) != 0 {
			*text = u.text()
		}
	}
	var numbers [packedNumberFields]int64
	for i := range numbers {
		if set&(4<<(packedTextFields+i)) != 0 {
			numbers[i] = u.varint()
		}
	}
	e.setPackedNumbers(numbers)
	if u.detailed {
		for n := u.uvarint(); n > 0 && !u.broken; n-- {
			u.details.add(u.text())
			u.details.add(u.text())
		}
	}
	return !u.broken
}

func (u *unpacker) uvarint() uint64 {
	var n uint64
	for i := range min(len(u.in), binary.MaxVarintLen64) {
		c := u.in[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			u.in = u.in[i+1:]
			return n
		}
	}
	u.broken, u.in = true, ""
	return 0
}

func (u *unpacker) varint() int64 {
	n := u.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

func (u *unpacker) text() string {
	n := u.uvarint()
	place := n >> 1
	switch {
	case n&1 == 0 && place <= uint64(len(u.in)):
		text := u.in[:place]
		u.in = u.in[place:]
		u.own.add(text)
		return text
	case n&1 == 1 && place < uint64(len(packedTexts)):
		return packedTexts[place]
	case n&1 == 1 && place-uint64(len(packedTexts)) < uint64(u.own.n):
		return u.own.at(int(place) - len(packedTexts))
	}
	u.broken, u.in = true, ""
	return ""
}
