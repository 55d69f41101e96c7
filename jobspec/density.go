package jobspec

import "bytes"

// What the HCL parser makes of a text can be out of all proportion to the text, so that two more of its measures have
// bounds. A job of 200 groups has 10,000 elements; a script of 1,000 lines in a heredoc some thousand pieces.
const (
	// maxParts bounds the elements of a text: lines, brackets, commas, equals signs and interpolations. About 1 KiB is
	// made of each: of a text of 16 MiB that is nothing but these 6 GiB.
	maxParts = 400_000
	// maxPieces bounds the pieces of one quoted text or heredoc, several together less: the parser takes such a text
	// apart at each end of a line, $ and %, and puts it together again in a time that grows with the square of their number.
	maxPieces = 50_000
	// dollarPieces is how many pieces a $ or a % makes: itself, what is before it and what is behind.
	dollarPieces = 3
)

// density measures a text. Comments have no elements, quoted texts and heredocs only their interpolations. The count is rough
// where quotes nest in interpolations: it only has to tell texts from each other that differ by orders of magnitude.
type density struct {
	src     []byte
	at      int
	parts   int
	squares int // of the pieces of each quoted text and heredoc
}

// tooDense says where the text has more elements or pieces than are allowed, and of what; -1: nowhere.
func tooDense(src []byte) (at int, of string) {
	s := density{src: src}
	for s.at < len(src) {
		from := s.at
		s.step()
		switch {
		case s.parts > maxParts:
			return from, "lines, brackets, commas and interpolations"
		case s.squares > maxPieces*maxPieces:
			return from, "lines and signs $ and % in quoted texts and heredocs"
		}
	}
	return -1, ""
}

// step reads one byte outside of texts, or a whole comment or text.
func (s *density) step() {
	rest := s.src[s.at:]
	switch {
	case rest[0] == '#', bytes.HasPrefix(rest, []byte("//")):
		s.skipTo(rest, "\n")
		s.parts++
	case bytes.HasPrefix(rest, []byte("/*")):
		s.skipTo(rest, "*/")
	case rest[0] == '"':
		s.quoted(rest)
	case bytes.HasPrefix(rest, []byte("<<")):
		s.heredoc(rest)
	default:
		switch rest[0] {
		case '\n', '{', '}', '[', ']', '(', ')', ',', '=':
			s.parts++
		}
		s.at++
	}
}

// skipTo goes behind the next end, or to the end of the text.
func (s *density) skipTo(rest []byte, end string) {
	if i := bytes.Index(rest, []byte(end)); i >= 0 {
		s.at += i + len(end)
		return
	}
	s.at = len(s.src)
}

func (s *density) quoted(rest []byte) {
	i := 1
	for i < len(rest) && rest[i] != '"' && rest[i] != '\n' {
		if rest[i] == '\\' {
			i++
		}
		i++
	}
	s.template(rest[:min(i, len(rest))])
	if i < len(rest) && rest[i] == '"' {
		i++
	}
	s.at += min(i, len(rest))
}

func (s *density) heredoc(rest []byte) {
	line, _, found := bytes.Cut(rest, []byte("\n"))
	word := bytes.TrimSpace(bytes.TrimPrefix(line[2:], []byte("-")))
	if !found || len(word) == 0 {
		s.at += 2
		return
	}
	i := len(line) + 1
	for i < len(rest) {
		line, _, _ := bytes.Cut(rest[i:], []byte("\n"))
		if bytes.Equal(bytes.TrimSpace(line), word) {
			break
		}
		i += len(line) + 1
	}
	i = min(i, len(rest))
	s.template(rest[:i])
	s.at += i
}

// template counts what a quoted text or a heredoc is made of.
func (s *density) template(text []byte) {
	s.parts += bytes.Count(text, []byte("${")) + bytes.Count(text, []byte("%{"))
	pieces := bytes.Count(text, []byte("\n")) + dollarPieces*(bytes.Count(text, []byte("$"))+bytes.Count(text, []byte("%")))
	s.squares += pieces * pieces
}
