package sim

import (
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// selectorWords are the names which select by something else than metadata.
var selectorWords = map[string]func(*structs.Node) string{
	"node":       func(n *structs.Node) string { return n.Name },
	"id":         func(n *structs.Node) string { return n.ID },
	"class":      classOf,
	"datacenter": func(n *structs.Node) string { return n.Datacenter },
	"pool":       func(n *structs.Node) string { return n.NodePool },
}

// Selector reads which nodes a text names: node=NAME, id=, class=, datacenter=, pool=, attr.NAME=, meta.NAME=, or NAME= for
// metadata, such as rack=r1. Several joined by commas must all hold. The class of nodes without one is NoClass. A text
// that cannot be read is an error coded as invalid.
func Selector(text string) (func(*structs.Node) bool, error) {
	var all []func(*structs.Node) bool
	for _, word := range strings.Split(text, ",") {
		key, want, ok := strings.Cut(strings.TrimSpace(word), "=")
		key, want = strings.TrimSpace(key), strings.TrimSpace(want)
		if !ok || key == "" || want == "" {
			return nil, structs.Errorf(structs.CodeInvalid,
				"%q selects no nodes: expected NAME=VALUE, such as rack=r1, class=small or node=n7", text)
		}
		get := selectorWords[key]
		if attr, ok := strings.CutPrefix(key, "attr."); ok {
			get = func(n *structs.Node) string { return n.Attributes[attr] }
		} else if get == nil {
			meta := strings.TrimPrefix(key, "meta.")
			get = func(n *structs.Node) string { return n.Meta[meta] }
		}
		all = append(all, func(n *structs.Node) bool { return get(n) == want })
	}
	return func(n *structs.Node) bool {
		for _, match := range all {
			if !match(n) {
				return false
			}
		}
		return true
	}, nil
}
