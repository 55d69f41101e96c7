package command

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"

	"github.com/nomadlite/nomadlite/structs"
)

// table aligns rows; the first is the head.
func table(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i >= len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell
			if i < len(row)-1 {
				line += strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2)
			}
		}
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// pairs aligns "NAME = VALUE" lines.
func pairs(list ...[2]string) string {
	width := 0
	for _, p := range list {
		width = max(width, utf8.RuneCountInString(p[0]))
	}
	var b strings.Builder
	for _, p := range list {
		fmt.Fprintf(&b, "%s%s = %s\n", p[0], strings.Repeat(" ", width-utf8.RuneCountInString(p[0])), p[1])
	}
	return b.String()
}

// data writes v as JSON, or through a template when one is given; it says whether either was asked for.
func data(w io.Writer, v any, asJSON bool, tmpl string) (bool, error) {
	switch {
	case asJSON && tmpl != "":
		return true, fmt.Errorf("-json and -t cannot be used together")
	case asJSON:
		text, err := json.MarshalIndent(v, "", "    ")
		if err != nil {
			return true, err
		}
		_, err = fmt.Fprintf(w, "%s\n", text)
		return true, err
	case tmpl != "":
		t, err := template.New("format").Parse(tmpl)
		if err != nil {
			return true, fmt.Errorf("parse template: %w", err)
		}
		if err := t.Execute(w, v); err != nil {
			return true, fmt.Errorf("run template: %w", err)
		}
		_, err = fmt.Fprintln(w)
		return true, err
	}
	return false, nil
}

// shortID gives the part of an id which people read.
func shortID(id string, verbose bool) string {
	if verbose || len(id) < 8 {
		return id
	}
	return id[:8]
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return "N/A"
	}
	return t.Local().Format("2006-01-02T15:04:05Z07:00")
}

func formatNano(ns int64) string {
	if ns == 0 {
		return "N/A"
	}
	return formatTime(time.Unix(0, ns))
}

// age tells how long ago ns (unix nanoseconds) was, in the two largest units.
func age(ns int64, now time.Time) string {
	if ns == 0 {
		return "N/A"
	}
	d := now.Sub(time.Unix(0, ns))
	if d < 0 {
		d = 0
	}
	return prettyDuration(d) + " ago"
}

func prettyDuration(d time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"mo", 30 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	var out string
	parts := 0
	for _, u := range units {
		if n := d / u.size; n > 0 || (parts > 0 && parts < 2) {
			out += fmt.Sprintf("%d%s", n, u.name)
			d -= n * u.size
			parts++
		}
		if parts == 2 {
			break
		}
	}
	if out == "" {
		return "0s"
	}
	return out
}

func yesNo(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// metrics explains in lines why a group could not be placed.
func metrics(m *structs.AllocationMetric, prefix string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, prefix+"* "+format+"\n", args...) }
	if m.NodesEvaluated == 0 {
		line("No nodes were eligible for evaluation")
	}
	for _, dc := range sortedKeys(m.NodesAvailable) {
		if m.NodesAvailable[dc] == 0 {
			line("No nodes are available in datacenter %q", dc)
		}
	}
	for _, class := range sortedKeys(m.ClassFiltered) {
		line("Class %q: %d nodes excluded by filter", class, m.ClassFiltered[class])
	}
	for _, c := range sortedKeys(m.ConstraintFiltered) {
		line("Constraint %q: %d nodes excluded by filter", c, m.ConstraintFiltered[c])
	}
	if m.NodesExhausted > 0 {
		line("Resources exhausted on %d nodes", m.NodesExhausted)
	}
	for _, class := range sortedKeys(m.ClassExhausted) {
		line("Class %q exhausted on %d nodes", class, m.ClassExhausted[class])
	}
	for _, d := range sortedKeys(m.DimensionExhausted) {
		line("Dimension %q exhausted on %d nodes", d, m.DimensionExhausted[d])
	}
	for _, q := range m.QuotaExhausted {
		line("Quota limit hit %q", q)
	}
	return b.String()
}
