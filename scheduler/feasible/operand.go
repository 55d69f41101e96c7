package feasible

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	version "github.com/hashicorp/go-version"
)

// Operators of a constraint that look at more than one node and are no part of a single node's answer.
const (
	OperandDistinctHosts    = "distinct_hosts"
	OperandDistinctProperty = "distinct_property"
)

// predicate answers one constraint for the resolved values of its two sides; lok and rok say whether the node has them.
type predicate func(l, r string, lok, rok bool) bool

// predicateOf gives the predicate of an operator, from the public documentation of the constraint block. Expressions
// that cannot be read match nothing; registration refuses them before. The predicate keeps the last expression it
// compiled, since the right side is a literal almost always.
func predicateOf(operand string) predicate {
	switch operand {
	case "", "=", "==", "is":
		return func(l, r string, lok, rok bool) bool { return lok && rok && l == r }
	case "!=", "not":
		return func(l, r string, lok, rok bool) bool { return lok != rok || l != r }
	case "<":
		return ordered(func(c int) bool { return c < 0 })
	case "<=":
		return ordered(func(c int) bool { return c <= 0 })
	case ">":
		return ordered(func(c int) bool { return c > 0 })
	case ">=":
		return ordered(func(c int) bool { return c >= 0 })
	case "is_set":
		return func(_, _ string, lok, _ bool) bool { return lok }
	case "is_not_set":
		return func(_, _ string, lok, _ bool) bool { return !lok }
	case "set_contains", "set_contains_all":
		return func(l, r string, lok, rok bool) bool {
			have := setOf(l)
			return lok && rok && !slices.ContainsFunc(setOf(r), func(s string) bool { return !slices.Contains(have, s) })
		}
	case "set_contains_any":
		return func(l, r string, lok, rok bool) bool {
			have := setOf(l)
			return lok && rok && slices.ContainsFunc(setOf(r), func(s string) bool { return slices.Contains(have, s) })
		}
	case "regexp":
		return compiled(func(expr string) (func(string) bool, error) {
			re, err := regexp.Compile(expr)
			if err != nil {
				return nil, err
			}
			return re.MatchString, nil
		})
	case "version":
		return compiled(versionMatcher)
	case "semver":
		return compiled(semverMatcher)
	}
	return func(string, string, bool, bool) bool { return false }
}

// ordered compares as integers or floats when both sides are such, else by the order of the texts.
func ordered(holds func(int) bool) predicate {
	return func(l, r string, lok, rok bool) bool {
		return lok && rok && holds(compareValues(l, r))
	}
}

func compareValues(l, r string) int {
	if li, err := strconv.ParseInt(l, 10, 64); err == nil {
		if ri, err := strconv.ParseInt(r, 10, 64); err == nil {
			switch {
			case li < ri:
				return -1
			case li > ri:
				return 1
			}
			return 0
		}
	}
	if lf, err := strconv.ParseFloat(l, 64); err == nil {
		if rf, err := strconv.ParseFloat(r, 64); err == nil {
			switch {
			case lf < rf:
				return -1
			case lf > rf:
				return 1
			}
			return 0
		}
	}
	return strings.Compare(l, r)
}

func setOf(list string) []string {
	parts := strings.Split(list, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// compiled makes a predicate whose right side is an expression, which is read once for all nodes.
func compiled(compile func(string) (func(string) bool, error)) predicate {
	var last string
	var match func(string) bool
	return func(l, r string, lok, rok bool) bool {
		if !lok || !rok {
			return false
		}
		if match == nil || last != r {
			m, err := compile(r)
			if err != nil {
				m = func(string) bool { return false }
			}
			last, match = r, m
		}
		return match(l)
	}
}

func versionMatcher(expr string) (func(string) bool, error) {
	constraints, err := version.NewConstraint(expr)
	if err != nil {
		return nil, err
	}
	return func(text string) bool {
		v, err := version.NewVersion(text)
		return err == nil && constraints.Check(v)
	}, nil
}

// semverMatcher orders as Semantic Versioning 2.0 does: a pre-release like any other version. There is no pessimistic
// operator.
func semverMatcher(expr string) (func(string) bool, error) {
	type bound struct {
		op string
		v  *version.Version
	}
	var bounds []bound
	for _, part := range setOf(expr) {
		op := part[:len(part)-len(strings.TrimLeft(part, "=!<>"))]
		v, err := version.NewSemver(strings.TrimSpace(part[len(op):]))
		if err != nil {
			return nil, err
		}
		bounds = append(bounds, bound{op, v})
	}
	return func(text string) bool {
		v, err := version.NewSemver(text)
		if err != nil {
			return false
		}
		for _, b := range bounds {
			c, ok := v.Compare(b.v), false
			switch b.op {
			case "", "=", "==":
				ok = c == 0
			case "!=":
				ok = c != 0
			case "<":
				ok = c < 0
			case "<=":
				ok = c <= 0
			case ">":
				ok = c > 0
			case ">=":
				ok = c >= 0
			}
			if !ok {
				return false
			}
		}
		return true
	}, nil
}
