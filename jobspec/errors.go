package jobspec

import (
	"bytes"
	"fmt"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Error lists all faults of a jobspec with their positions.
type Error struct {
	Diags hcl.Diagnostics
	Files map[string]*hcl.File
}

// Error gives the faults as FormatDiagnostics does.
func (e *Error) Error() string {
	return strings.TrimRight(FormatDiagnostics(e.Diags, e.Files, hcl.DiagError), "\n")
}

// FormatDiagnostics gives one paragraph a diagnostic of the severity asked for: FILE:LINE:COLUMN, what is wrong, the
// line itself with a mark below the place, and what was expected.
func FormatDiagnostics(diags hcl.Diagnostics, files map[string]*hcl.File, severity hcl.DiagnosticSeverity) string {
	var b strings.Builder
	shown := 0
	for _, d := range diags {
		if d.Severity != severity {
			continue
		}
		if shown++; shown > maxShown {
			continue
		}
		if d.Subject != nil {
			fmt.Fprintf(&b, "%s:%d:%d: ", d.Subject.Filename, d.Subject.Start.Line, d.Subject.Start.Column)
		}
		b.WriteString(d.Summary)
		b.WriteByte('\n')
		if d.Subject != nil {
			writeSnippet(&b, files[d.Subject.Filename], *d.Subject)
		}
		if d.Detail != "" {
			b.WriteString("  " + strings.ReplaceAll(d.Detail, "\n", "\n  ") + "\n")
		}
	}
	if shown > maxShown {
		fmt.Fprintf(&b, "... and %d more\n", shown-maxShown)
	}
	return b.String()
}

// How much is shown at most: faults of one text, and characters of one line.
const (
	maxShown = 200
	maxLine  = 240
)

func writeSnippet(b *strings.Builder, file *hcl.File, rng hcl.Range) {
	if file == nil {
		return
	}
	lines := bytes.Split(file.Bytes, []byte("\n"))
	if rng.Start.Line < 1 || rng.Start.Line > len(lines) {
		return
	}
	line := strings.TrimRight(string(lines[rng.Start.Line-1]), "\r")
	line, rng = window(line, rng)
	number := fmt.Sprintf("  %4d | ", rng.Start.Line)
	fmt.Fprintf(b, "%s%s\n", number, strings.ReplaceAll(line, "\t", " "))
	width := 1
	if rng.End.Line == rng.Start.Line && rng.End.Column > rng.Start.Column {
		width = rng.End.Column - rng.Start.Column
	}
	indent := strings.Repeat(" ", len(number)-2) + "| " + strings.Repeat(" ", max(rng.Start.Column-1, 0))
	fmt.Fprintf(b, "%s%s\n", indent, strings.Repeat("^", width))
}

// window cuts the part around the place out of a line that is too long to show.
func window(line string, rng hcl.Range) (string, hcl.Range) {
	runes := []rune(line)
	if len(runes) <= maxLine {
		return line, rng
	}
	from := min(max(rng.Start.Column-maxLine/2, 0), len(runes)-maxLine)
	line = string(runes[from : from+maxLine])
	rng.Start.Column -= from
	rng.End.Column -= from
	if rng.End.Line == rng.Start.Line {
		rng.End.Column = min(rng.End.Column, maxLine+1)
	}
	return line, rng
}

func errorAt(rng hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: &rng}
}

func warningAt(rng hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: &rng}
}

func duplicateBlock(block *hclsyntax.Block, first hcl.Range) *hcl.Diagnostic {
	return errorAt(block.DefRange(), fmt.Sprintf("Duplicate %s block", block.Type),
		"Only one %s block is allowed here. Another was defined on line %d.", block.Type, first.Start.Line)
}

func unknownAttribute(attr *hclsyntax.Attribute, where string, known []string) *hcl.Diagnostic {
	return errorAt(attr.NameRange, fmt.Sprintf("Unsupported argument %q", attr.Name),
		"An argument named %q is not expected %s.%s", attr.Name, where, suggestion(attr.Name, known))
}

func unknownBlock(block *hclsyntax.Block, where string, known []string) *hcl.Diagnostic {
	return errorAt(block.TypeRange, fmt.Sprintf("Unsupported block type %q", block.Type),
		"Blocks of type %q are not expected %s.%s", block.Type, where, suggestion(block.Type, known))
}

// suggestion names the nearest known name, or else all of them when they are few.
func suggestion(name string, known []string) string {
	best, bestDistance := "", 1+len(name)/3
	for _, k := range known {
		if d := distance(name, k); d <= bestDistance && (best == "" || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	if best != "" && best != name {
		return fmt.Sprintf(" Did you mean %q?", best)
	}
	if len(known) == 0 {
		return ""
	}
	sorted := append([]string(nil), known...)
	sort.Strings(sorted)
	return " Expected: " + strings.Join(sorted, ", ") + "."
}

// distance is the Levenshtein distance of two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next := min(row[j]+1, row[j-1]+1, diagonal+cost)
			diagonal, row[j] = row[j], next
		}
	}
	return row[len(b)]
}

func sortedAttributes(attrs hclsyntax.Attributes) []*hclsyntax.Attribute {
	list := make([]*hclsyntax.Attribute, 0, len(attrs))
	for _, a := range attrs {
		list = append(list, a)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].SrcRange.Start.Byte < list[j].SrcRange.Start.Byte })
	return list
}
