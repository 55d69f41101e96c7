package feasible

import (
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// Resolve gives the value of a constraint's side on a node. A text that is no ${...} target is a literal. It is false
// when the node does not have what the target names.
func Resolve(node *structs.Node, target string) (string, bool) {
	if !strings.HasPrefix(target, "${") || !strings.HasSuffix(target, "}") {
		return target, true
	}
	name := target[2 : len(target)-1]
	switch name {
	case "node.unique.id":
		return node.ID, true
	case "node.unique.name":
		return node.Name, true
	case "node.datacenter":
		return node.Datacenter, true
	case "node.class":
		return node.NodeClass, true
	case "node.pool":
		return node.NodePool, true
	}
	if key, ok := strings.CutPrefix(name, "attr."); ok {
		v, found := node.Attributes[key]
		return v, found
	}
	if key, ok := strings.CutPrefix(name, "meta."); ok {
		v, found := node.Meta[key]
		return v, found
	}
	return "", false
}
