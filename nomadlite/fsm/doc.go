// Package fsm turns raft log entries into changes of package state. One entry is one registered command: a number, how
// it is decoded, and what it does in one transaction. Commands are deterministic: what they need to know of the time is
// in the request, and they have no side effects; whoever must act on a change reads the store's change feed.
//
// An entry on disk is the command's number in one byte, then the request in CBOR by field name. Old entries must decode
// for ever: fields are only added, and testdata holds the bytes of each command to prove it.
package fsm
