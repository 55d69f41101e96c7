package state

import (
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// nodeList is all nodes by id, as they were from one raft index on. Every evaluation walks over all of them, and few
// entries change one, so that a slice made once serves many.
type nodeList struct {
	index uint64 // of the table's last change
	nodes []*structs.Node
}

// nodes gives all nodes by id. Nobody may change the slice.
func (v *view) nodes() []*structs.Node {
	index := Reader{at: func() *view { return v }}.TableIndex(TableNodes)
	known := v.nodeList.Load()
	if known != nil && known.index == index {
		return known.nodes
	}
	made := &nodeList{index: index, nodes: slices.Collect(scan[*structs.Node](v, nil, TableNodes, indexID, ""))}
	if known == nil || known.index < index { // the reader of an old snapshot does not take a newer list's place
		v.nodeList.CompareAndSwap(known, made)
	}
	return made.nodes
}
