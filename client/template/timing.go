package template

import (
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// quiet tells when a template is to be rendered again after changes: once there was none for min, and at the latest max
// after the first. It knows no clock.
type quiet struct {
	min, max time.Duration
	first    time.Time // of the changes that are not rendered yet; zero when there are none
	due      time.Time
}

// changed notes a change.
func (q *quiet) changed(now time.Time) {
	if q.first.IsZero() {
		q.first = now
	}
	q.due = now.Add(q.min)
	if last := q.first.Add(q.max); q.due.After(last) {
		q.due = last
	}
}

// atOnce lets the next rendering wait for nothing.
func (q *quiet) atOnce(now time.Time) { q.first, q.due = now, now }

// rendered notes that all changes are.
func (q *quiet) rendered() { q.first, q.due = time.Time{}, time.Time{} }

func (q *quiet) pending() bool { return !q.first.IsZero() }

// newQuiet reads a wait block: the template's own or else the node's, within the node's bounds.
func newQuiet(own, node, bounds *structs.WaitConfig) quiet {
	if own == nil {
		own = node
	}
	if own == nil {
		return quiet{}
	}
	q := quiet{min: structs.Val(own.Min), max: structs.Val(own.Max)}
	if own.Max == nil {
		q.max = 4 * q.min
	}
	if bounds != nil {
		if bounds.Min != nil {
			q.min, q.max = max(q.min, *bounds.Min), max(q.max, *bounds.Min)
		}
		if bounds.Max != nil {
			q.min, q.max = min(q.min, *bounds.Max), min(q.max, *bounds.Max)
		}
	}
	return q
}

// actions is what changed templates ask of the task, collected until due.
type actions struct {
	restart []string // templates that ask for it
	signals []string
	scripts []*structs.ChangeScript
	due     time.Time
}

// add notes the change_mode of a template that has changed, to be done after its splay. What is waited for already does
// not wait longer.
func (a *actions) add(t *structs.Template, label string, now time.Time, splay time.Duration) {
	switch structs.Val(t.ChangeMode) {
	case structs.ChangeModeRestart:
		a.restart = append(a.restart, label)
	case structs.ChangeModeSignal:
		if s := structs.Val(t.ChangeSignal); !slices.Contains(a.signals, s) {
			a.signals = append(a.signals, s)
		}
	case structs.ChangeModeScript:
		a.scripts = append(a.scripts, t.ChangeScript)
	default:
		return
	}
	if a.due.IsZero() {
		a.due = now.Add(splay)
	}
}

func (a *actions) pending() bool { return !a.due.IsZero() }
