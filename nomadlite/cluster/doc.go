// Package cluster makes servers one cluster: the data directory, raft's set-up (on disk or in memory), who is a member and
// how members find each other, bootstrap and joining. It knows nothing of jobs; the leader's work is package nomadlite's.
//
// Invariants: a data directory of a newer version, or one that cannot be written, is refused before anything in it is
// touched; servers bootstrap only when all of them name the same set; a server that is its only voter elects itself at
// once; a written index is acknowledged only when this server's state holds it.
package cluster
