// Package archive is the file in which the state of a cluster is kept outside of it: a gzipped tar of meta.json (what
// the snapshot is), state.bin (the state, as package state writes it) and SHA256SUMS (a checksum of both). Servers
// write it when a snapshot is asked for and read it back for a restore; commands read it to show what it holds.
//
// A reader knows only at the end whether an archive is whole: nothing may come of what it read before.
package archive
