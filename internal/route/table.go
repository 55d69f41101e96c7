package route

import (
	"fmt"
	"net/url"
	"sort"
	"strings"
)

// table is a trie over the segments of all paths. A literal segment wins over a parameter, and among the splits of a
// greedy parameter the one with the longest literal rest wins.
type table struct {
	literal map[string]*table
	param   *table
	greedy  *table
	filled  bool // a greedy parameter which must not be empty
	leaf    *leaf
}

// leaf is all rows of one path.
type leaf struct {
	rows []entry
}

// entry is a row with the names of its parameters, in order.
type entry struct {
	*Route
	names []string
}

// newTable builds the trie. Two rows that claim the same path and method are an error.
func newTable(routes []Route) (*table, error) {
	root := &table{}
	for i := range routes {
		row := &routes[i]
		if !strings.HasPrefix(row.Path, "/") {
			return nil, fmt.Errorf("add route %q: path must begin with /", row.Path)
		}
		if row.Handle == nil {
			return nil, fmt.Errorf("add route %q: no handler", row.Path)
		}
		if row.Callers == 0 {
			return nil, fmt.Errorf("add route %q: nobody may call it", row.Path)
		}
		if err := root.add(row); err != nil {
			return nil, err
		}
	}
	return root, nil
}

func (t *table) add(row *Route) error {
	n := t
	e := entry{Route: row}
	for _, seg := range strings.Split(row.Path[1:], "/") {
		name, greedy, isParam := parameter(seg)
		switch {
		case !isParam:
			if n.literal == nil {
				n.literal = map[string]*table{}
			}
			if n.literal[seg] == nil {
				n.literal[seg] = &table{}
			}
			n = n.literal[seg]
		case greedy:
			if n.greedy == nil {
				n.greedy = &table{filled: name == "job_id"}
			}
			n = n.greedy
		default:
			if n.param == nil {
				n.param = &table{}
			}
			n = n.param
		}
		if isParam {
			e.names = append(e.names, name)
		}
	}
	if n.leaf == nil {
		n.leaf = &leaf{}
	}
	for _, other := range n.leaf.rows {
		if len(other.Methods) == 0 || len(row.Methods) == 0 {
			return fmt.Errorf("add route %q: two rows for any method", row.Path)
		}
		for _, m := range row.Methods {
			if other.allows(m) {
				return fmt.Errorf("add route %q: two rows for %s", row.Path, m)
			}
		}
	}
	n.leaf.rows = append(n.leaf.rows, e)
	return nil
}

// parameter reads "{name}" or "{name...}". A job_id is greedy by nature, since job ids may contain slashes.
func parameter(seg string) (name string, greedy, ok bool) {
	if len(seg) < 3 || seg[0] != '{' || seg[len(seg)-1] != '}' {
		return "", false, false
	}
	name = seg[1 : len(seg)-1]
	if rest, found := strings.CutSuffix(name, "..."); found {
		return rest, true, true
	}
	return name, name == "job_id", true
}

// match finds the leaf of an escaped path, with the decoded values of its parameters in order.
func (t *table) match(escaped string) (*leaf, []string) {
	if !strings.HasPrefix(escaped, "/") {
		return nil, nil
	}
	segs := strings.Split(escaped[1:], "/")
	for i, s := range segs {
		if strings.IndexByte(s, '%') < 0 {
			continue
		}
		dec, err := url.PathUnescape(s)
		if err != nil {
			return nil, nil
		}
		// An escaped slash stays inside its segment: it never splits, and never completes a literal.
		segs[i] = dec
	}
	return t.walk(segs, nil)
}

// walk tries literal, then parameter, then greedy children.
func (t *table) walk(segs, values []string) (*leaf, []string) {
	if len(segs) == 0 {
		return t.leaf, values
	}
	if next := t.literal[segs[0]]; next != nil {
		if l, v := next.walk(segs[1:], values); l != nil {
			return l, v
		}
	}
	if t.param != nil && segs[0] != "" {
		if l, v := t.param.walk(segs[1:], append(values, segs[0])); l != nil {
			return l, v
		}
	}
	if t.greedy != nil {
		for end := 1; end <= len(segs); end++ {
			value := strings.Join(segs[:end], "/")
			if value == "" && t.greedy.filled {
				continue
			}
			if l, v := t.greedy.walk(segs[end:], append(values, value)); l != nil {
				return l, v
			}
		}
	}
	return nil, nil
}

// row finds the row for a method among those which the caller may use. allow is what to answer when there is none.
func (l *leaf) row(method string, caller Callers) (row entry, allow []string) {
	seen := map[string]bool{}
	for _, r := range l.rows {
		if !r.admits(caller) {
			continue
		}
		if r.allows(method) {
			return r, nil
		}
		for _, m := range r.Methods {
			seen[m] = true
		}
	}
	if seen["GET"] {
		seen["HEAD"] = true // as allows has it
	}
	for m := range seen {
		allow = append(allow, m)
	}
	sort.Strings(allow)
	return entry{}, allow
}

// params names the values of a match.
func (e entry) params(values []string) map[string]string {
	if len(e.names) == 0 {
		return nil
	}
	params := make(map[string]string, len(values))
	for i, name := range e.names {
		params[name] = values[i]
	}
	return params
}

// allows says whether the row answers a method. HEAD goes wherever GET goes.
func (r *Route) allows(method string) bool {
	if len(r.Methods) == 0 {
		return true
	}
	for _, m := range r.Methods {
		if m == method || (method == "HEAD" && m == "GET") {
			return true
		}
	}
	return false
}

// admits says whether a kind of caller may use the row. What is public is open to everybody.
func (r *Route) admits(caller Callers) bool {
	return r.Callers&(caller|Public) != 0
}
