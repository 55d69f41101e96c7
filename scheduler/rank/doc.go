// Package rank says where a group is best placed among the nodes on which it is feasible, and hands out what is unique
// on a node: ports and cores.
//
// A Ranker lives for one evaluation. It keeps what each node of the scope has left in flat arrays, updated with each
// placement. A Placer places the allocations of one group: every node is scored once, and after a placement only the
// node that got it is scored again. Nodes lie in heaps, one for each tuple of spread values and number of scores, since
// within such a bucket the spread adds the same to all; the best node is the best of the heaps' heads. So no node is
// left out and none is asked twice.
//
// Invariants: the usage of a node never passes what it has, except that an allocation which replaces one on the same
// node takes over what that one holds (the node starts it after the other ended); no host port is given twice; equal
// scores are told apart by hash(evaluation id, node id), so the same evaluation decides the same way each time and
// parallel ones do not collide.
package rank
