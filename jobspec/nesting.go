package jobspec

import (
	"github.com/hashicorp/hcl/v2"
)

// maxNesting bounds how deep brackets may nest in a text. The HCL parser recurses for each, and a text of nothing but
// opening brackets costs it time and memory out of all proportion. No jobspec that means something comes near.
const maxNesting = 1000

// tooDeep gives the fault of a text whose brackets nest deeper than maxNesting, nil when they do not. Brackets in
// strings count too: what matters is only that the number is far beyond any real use.
func tooDeep(src []byte, path string) *hcl.Diagnostic {
	depth, line, column := 0, 1, 0
	for i, c := range src {
		column++
		switch c {
		case '\n':
			line, column = line+1, 0
		case '(', '[', '{':
			if depth++; depth > maxNesting {
				at := hcl.Pos{Line: line, Column: column, Byte: i}
				return errorAt(hcl.Range{Filename: path, Start: at, End: at}, "Nested too deep",
					"At most %d brackets may be open at once.", maxNesting)
			}
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return nil
}
