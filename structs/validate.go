package structs

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// scope collects the faults of one part of an object, each with the path to that part in front.
type scope struct {
	errs  *Errors
	where string
}

// in is the scope of a part of s.
func (s scope) in(format string, args ...any) scope {
	part := fmt.Sprintf(format, args...)
	if s.where != "" {
		part = s.where + ": " + part
	}
	return scope{errs: s.errs, where: part}
}

// addf tells a fault.
func (s scope) addf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if s.where != "" {
		text = s.where + ": " + text
	}
	s.errs.Addf("%s", text)
}

// oneOf tells a fault unless value is one of the words.
func (s scope) oneOf(what, value string, words ...string) {
	for _, w := range words {
		if value == w {
			return
		}
	}
	s.addf("%s %q is not one of %s", what, value, quoteList(words))
}

// notNegative tells a fault if a duration is below zero.
func (s scope) notNegative(what string, d time.Duration) {
	if d < 0 {
		s.addf("%s must not be negative (it is %s)", what, d)
	}
}

// unique tells a fault for each name that comes twice.
func (s scope) unique(what string, names []string) {
	seen := make(map[string]bool, len(names))
	for _, n := range names {
		if seen[n] {
			s.addf("%s %q is there more than once", what, n)
		}
		seen[n] = true
	}
}

// words tells a fault unless value is made of 1 to 128 letters, digits, dashes and underscores.
func (s scope) words(what, value string) {
	if value == "" {
		s.addf("%s is missing", what)
		return
	}
	if !isName(value, "-_", 128) {
		s.addf("%s %q must have 1 to 128 letters, digits, dashes and underscores", what, value)
	}
}

func quoteList(words []string) string {
	quoted := make([]string, 0, len(words))
	for _, w := range words {
		if w != "" {
			quoted = append(quoted, fmt.Sprintf("%q", w))
		}
	}
	return strings.Join(quoted, ", ")
}

// isName says whether text has 1 to limit ASCII letters, digits and characters of extra.
func isName(text, extra string, limit int) bool {
	if text == "" || len(text) > limit {
		return false
	}
	for _, c := range text {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune(extra, c):
		default:
			return false
		}
	}
	return true
}

// interpolated says whether text holds a reference that only the node can resolve.
func interpolated(text string) bool { return strings.Contains(text, "${") }

// escapesAllocDir says whether a path that a task names, relative to its own directory, leaves the allocation's
// directory. What is interpolated can be told by the node only.
func escapesAllocDir(dest string) bool {
	if interpolated(dest) {
		return false
	}
	clean := path.Join("task", strings.TrimLeft(dest, "/"))
	return clean == ".." || strings.HasPrefix(clean, "../")
}
