package command

import (
	"fmt"
	"strings"
)

// contextLines are the unchanged lines shown around changed ones.
const contextLines = 3

// lineDiff gives the difference of two texts in the unified form. Formatting changes the inside of lines and does not
// move them, so that lines are compared one by one; when their number differs all of them are shown as changed.
func lineDiff(name string, before, after []byte) string {
	a, b := splitLines(string(before)), splitLines(string(after))
	var out strings.Builder
	hunk := func(from, to int) { // lines from..to of both
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", from+1, to-from, from+1, to-from)
		for i := from; i < to; {
			if a[i] == b[i] {
				out.WriteString(" " + ended(a[i]))
				i++
				continue
			}
			end := i
			for end < to && a[end] != b[end] {
				end++
			}
			for _, line := range a[i:end] {
				out.WriteString("-" + ended(line))
			}
			for _, line := range b[i:end] {
				out.WriteString("+" + ended(line))
			}
			i = end
		}
	}
	if string(before) == string(after) {
		return ""
	}
	fmt.Fprintf(&out, "--- old/%s\n+++ new/%s\n", name, name)
	if len(a) != len(b) {
		fmt.Fprintf(&out, "@@ -1,%d +1,%d @@\n", len(a), len(b))
		for _, line := range a {
			out.WriteString("-" + ended(line))
		}
		for _, line := range b {
			out.WriteString("+" + ended(line))
		}
		return out.String()
	}
	for i := 0; i < len(a); i++ {
		if a[i] == b[i] {
			continue
		}
		last := i
		for next := i; next < len(a) && next <= last+2*contextLines; next++ {
			if a[next] != b[next] {
				last = next
			}
		}
		hunk(max(i-contextLines, 0), min(last+contextLines+1, len(a)))
		i = last
	}
	return out.String()
}

func splitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if n := len(lines); lines[n-1] == "" {
		lines = lines[:n-1]
	}
	return lines
}

// ended gives a line with its end; one without says so, as diff does.
func ended(line string) string {
	if strings.HasSuffix(line, "\n") {
		return line
	}
	return line + "\n\\ No newline at end of file\n"
}
