package jobspec

import (
	"bytes"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
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

// Limits of a text: its size, and how deep operators may nest. Each operator
// in a row (- - 1, a + b + c, a ? b : c ? d : e, a[b][c]) is one more call on the stack of who reads or evaluates it, and
// a stack that is too small ends the process.
const (
	maxSource    = 16 << 20
	maxOperators = 10_000
)

// tooLarge gives the fault of a text that is too large to be read, or whose operators nest too deep.
func tooLarge(src []byte, path string) *hcl.Diagnostic {
	if len(src) > maxSource {
		return errorAt(hcl.Range{Filename: path, Start: hcl.InitialPos, End: hcl.InitialPos}, "Text too large",
			"The text has %d bytes, at most %d are allowed.", len(src), maxSource)
	}
	if i, of := tooDense(src); i >= 0 {
		at := hcl.Pos{Line: 1 + bytes.Count(src[:i], []byte("\n")), Column: 1, Byte: i}
		return errorAt(hcl.Range{Filename: path, Start: at, End: at}, "Text too large", "The text has too many %s.", of)
	}
	if !manyOperators(src) {
		return nil // the usual case costs no more than a look at each byte
	}
	tokens, _ := hclsyntax.LexConfig(src, path, hcl.InitialPos) // its faults are told by the parser
	c := operatorCount{}
	for _, t := range tokens {
		if c.token(t.Type); c.depth > maxOperators {
			return errorAt(t.Range, "Expression too long", "At most %d operators may depend on each other.", maxOperators)
		}
	}
	return nil
}

// manyOperators says whether a text has so many bytes that could be operators that they might nest too deep.
func manyOperators(src []byte) bool {
	n := 0
	for i, c := range src {
		switch c {
		case '-', '!', '+', '*', '/', '%', '<', '>', '&', '|', '?', '[':
			n++
		case '=':
			if i > 0 && src[i-1] == '=' {
				n++
			}
		}
	}
	return n > maxOperators
}

// operatorCount follows how deep the tokens of a text nest: operators in a row, and brackets around them.
type operatorCount struct {
	depth int
	open  []openBracket
}

type openBracket struct {
	typ   hclsyntax.TokenType
	depth int // outside
}

func (c *operatorCount) token(t hclsyntax.TokenType) {
	switch t {
	case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp,
		hclsyntax.TokenTemplateControl:
		c.open = append(c.open, openBracket{t, c.depth})
		c.depth++
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
		if len(c.open) == 0 {
			return
		}
		last := c.open[len(c.open)-1]
		c.open = c.open[:len(c.open)-1]
		c.depth = last.depth
		if last.typ == hclsyntax.TokenOBrack || last.typ == hclsyntax.TokenTemplateControl {
			c.depth++ // what follows, another index or the body of a condition, depends on it
		}
	case hclsyntax.TokenNewline:
		if len(c.open) == 0 || c.open[len(c.open)-1].typ == hclsyntax.TokenOBrace {
			c.restart()
		}
	case hclsyntax.TokenComma:
		c.restart()
	case hclsyntax.TokenMinus, hclsyntax.TokenBang, hclsyntax.TokenPlus, hclsyntax.TokenStar, hclsyntax.TokenSlash,
		hclsyntax.TokenPercent, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan,
		hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq, hclsyntax.TokenAnd,
		hclsyntax.TokenOr, hclsyntax.TokenQuestion:
		c.depth++
	}
}

// restart is where a new expression begins: only the brackets around it count.
func (c *operatorCount) restart() {
	c.depth = 0
	if n := len(c.open); n > 0 {
		c.depth = c.open[n-1].depth + 1
	}
}

// Unreadable gives the fault of a text that the HCL parser should not even be given, since it is so large or nests so
// deep that it would cost time and memory out of all proportion, or is not UTF-8; nil for all others. path names it in the fault.
func Unreadable(src []byte, path string) *hcl.Diagnostic {
	if fault := tooDeep(src, path); fault != nil {
		return fault
	}
	if fault := tooLarge(src, path); fault != nil {
		return fault
	}
	return badEncoding(src, path)
}

// badEncoding gives the fault of a text that is not UTF-8 outside of its comments: JSON could not hold it as it is.
func badEncoding(src []byte, path string) *hcl.Diagnostic {
	if utf8.Valid(src) {
		return nil
	}
	tokens, _ := hclsyntax.LexConfig(src, path, hcl.InitialPos)
	for _, t := range tokens {
		if t.Type != hclsyntax.TokenComment && !utf8.Valid(t.Bytes) {
			return errorAt(t.Range, "Invalid character encoding", "A jobspec must be UTF-8.")
		}
	}
	return nil
}
