package docker

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/client/internal/scalar"
	"github.com/nomadlite/nomadlite/structs"
)

// block reads the options of one block, and gathers the faults of all. An option that nobody has asked for when the block
// ends is one that does not exist.
type block struct {
	path   string // "" or "mount."
	values map[string]any
	asked  map[string]bool
	faults *structs.Errors
}

func newBlock(path string, values map[string]any, faults *structs.Errors) *block {
	return &block{path, values, map[string]bool{}, faults}
}

// end tells the options that were not asked for.
func (b *block) end() {
	for _, key := range slices.Sorted(maps.Keys(b.values)) {
		if !b.asked[key] {
			b.faults.Addf("docker has no option %q", b.path+key)
		}
	}
}

func (b *block) get(key string) any {
	b.asked[key] = true
	return b.values[key]
}

func (b *block) fault(key, want string) {
	b.faults.Addf("option %q must be %s, not %v", b.path+key, want, b.values[key])
}

func (b *block) text(key string) string {
	switch v := b.get(key).(type) {
	case nil:
	case string:
		return v
	default:
		b.fault(key, "a string")
	}
	return ""
}

func (b *block) yes(key string) bool {
	switch v := b.get(key).(type) {
	case nil:
	case bool:
		return v
	case string:
		yes, err := strconv.ParseBool(v)
		if err == nil || unresolved(v) {
			return yes
		}
		b.fault(key, "true or false")
	default:
		b.fault(key, "true or false")
	}
	return false
}

// number reads a whole number that is not below low.
func (b *block) number(key string, low int64) int64 {
	v := b.get(key)
	if v == nil {
		return 0
	}
	if s, ok := v.(string); ok && unresolved(s) {
		return 0
	}
	n, ok := scalar.Whole(v)
	if !ok || n < low {
		b.fault(key, fmt.Sprintf("a whole number from %d", low))
		return 0
	}
	return n
}

func (b *block) duration(key string, otherwise time.Duration) time.Duration {
	s := b.text(key)
	if s == "" || unresolved(s) {
		return otherwise
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		b.fault(key, "a duration above 0")
		return otherwise
	}
	return d
}

func (b *block) list(key string) []string {
	var out []string
	switch v := b.get(key).(type) {
	case nil:
	case []string:
		return v
	case []any:
		for _, item := range v {
			s, ok := scalar.Text(item)
			if !ok {
				b.fault(key, "a list of strings")
				return nil
			}
			out = append(out, s)
		}
	default:
		b.fault(key, "a list of strings")
	}
	return out
}

// table reads a map of strings; written as a block it is a list of maps.
func (b *block) table(key string) map[string]string {
	out := map[string]string{}
	for _, m := range b.maps(key) {
		for name, v := range m {
			s, ok := scalar.Text(v)
			if !ok {
				b.fault(key, "a map of strings")
				return nil
			}
			out[name] = s
		}
	}
	return out
}

func (b *block) blocks(key string) []*block {
	var out []*block
	for _, m := range b.maps(key) {
		out = append(out, newBlock(b.path+key+".", m, b.faults))
	}
	return out
}

func (b *block) maps(key string) []map[string]any {
	switch v := b.get(key).(type) {
	case nil:
		return nil
	case map[string]any:
		return []map[string]any{v}
	case map[string]string:
		m := map[string]any{}
		for name, s := range v {
			m[name] = s
		}
		return []map[string]any{m}
	case []map[string]any:
		return v
	case []any:
		var out []map[string]any
		for _, item := range v {
			m, ok := item.(map[string]any)
			if !ok {
				b.fault(key, "a block")
				return nil
			}
			out = append(out, m)
		}
		return out
	}
	b.fault(key, "a block")
	return nil
}

// unresolved says that a value still holds a reference: its form cannot be judged yet.
func unresolved(s string) bool { return strings.Contains(s, "${") }
