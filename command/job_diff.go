package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// diffWriter writes the difference between two versions of a job. Lines of one block begin with a sign: + added,
// - deleted, +/- edited, none for what is only there to be read along.
type diffWriter struct {
	out     strings.Builder
	verbose bool // show what is in added and deleted jobs, groups and tasks
	color   bool
}

func formatDiff(d *structs.JobDiff, verbose, color bool) string {
	w := &diffWriter{verbose: verbose, color: color}
	w.job(d)
	return w.out.String()
}

func sign(kind string) string {
	switch kind {
	case structs.DiffTypeAdded:
		return "+ "
	case structs.DiffTypeDeleted:
		return "- "
	case structs.DiffTypeEdited:
		return "+/- "
	}
	return ""
}

func (w *diffWriter) line(indent, width int, kind, format string, args ...any) {
	s := sign(kind)
	pad := strings.Repeat(" ", max(0, width-len(s)))
	if w.color {
		s = paint(kind, s)
	}
	fmt.Fprintf(&w.out, "%s%s%s%s\n", strings.Repeat(" ", indent), s, pad, fmt.Sprintf(format, args...))
}

// paint gives a sign its colour: green, red, or yellow for what was edited.
func paint(kind, s string) string {
	code := map[string]string{structs.DiffTypeAdded: "32", structs.DiffTypeDeleted: "31", structs.DiffTypeEdited: "33"}[kind]
	if code == "" {
		return s
	}
	return "\033[" + code + "m" + s + "\033[0m"
}

func (w *diffWriter) whole(kind string) bool { return w.verbose || kind == structs.DiffTypeEdited }

func (w *diffWriter) job(d *structs.JobDiff) {
	w.line(0, 0, d.Type, "Job: %q", d.ID)
	width := 0
	if w.whole(d.Type) {
		width = signWidth(d.Fields, d.Objects)
	}
	for _, g := range d.TaskGroups {
		width = max(width, len(sign(g.Type)))
	}
	if w.whole(d.Type) {
		w.block(0, width, d.Fields, d.Objects)
	}
	for _, g := range d.TaskGroups {
		w.group(width, g)
	}
}

func (w *diffWriter) group(width int, g *structs.TaskGroupDiff) {
	w.line(0, width, g.Type, "Task Group: %q%s", g.Name, updatesText(g.Updates))
	indent := width - len(sign(g.Type)) + 2
	width = 0
	if w.whole(g.Type) {
		width = signWidth(g.Fields, g.Objects)
	}
	for _, t := range g.Tasks {
		width = max(width, len(sign(t.Type)))
	}
	if w.whole(g.Type) {
		w.block(indent, width, g.Fields, g.Objects)
	}
	for _, t := range g.Tasks {
		w.line(indent, width, t.Type, "Task: %q%s", t.Name, annotations(t.Annotations))
		if t.Type != structs.DiffTypeNone && w.whole(t.Type) {
			w.block(indent+width-len(sign(t.Type))+2, signWidth(t.Fields, t.Objects), t.Fields, t.Objects)
		}
	}
}

// block writes the fields and blocks of one scope, whose signs take width.
func (w *diffWriter) block(indent, width int, fields []*structs.FieldDiff, objects []*structs.ObjectDiff) {
	key := 0
	for _, f := range fields {
		key = max(key, len(f.Name))
	}
	for _, f := range fields {
		pad := strings.Repeat(" ", key-len(f.Name))
		w.line(indent, width, f.Type, "%s: %s%s%s", f.Name, pad, fieldText(f), annotations(f.Annotations))
	}
	for _, o := range objects {
		w.line(indent, width, o.Type, "%s {", o.Name)
		w.block(indent+width-len(sign(o.Type))+2, signWidth(o.Fields, o.Objects), o.Fields, o.Objects)
		w.line(indent+width, 0, "", "}")
	}
}

// signWidth is how much room the signs of a scope need.
func signWidth(fields []*structs.FieldDiff, objects []*structs.ObjectDiff) (width int) {
	for _, f := range fields {
		width = max(width, len(sign(f.Type)))
	}
	for _, o := range objects {
		width = max(width, len(sign(o.Type)))
	}
	return width
}

func fieldText(f *structs.FieldDiff) string {
	switch f.Type {
	case structs.DiffTypeDeleted:
		return fmt.Sprintf("%q", f.Old)
	case structs.DiffTypeEdited:
		return fmt.Sprintf("%q => %q", f.Old, f.New)
	}
	return fmt.Sprintf("%q", f.New)
}

func annotations(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}

func updatesText(updates map[string]uint64) string {
	var list []string
	for name, n := range updates {
		list = append(list, fmt.Sprintf("%d %s", n, name))
	}
	slices.SortFunc(list, func(a, b string) int {
		_, a, _ = strings.Cut(a, " ")
		_, b, _ = strings.Cut(b, " ")
		return strings.Compare(a, b)
	})
	return annotations(list)
}
