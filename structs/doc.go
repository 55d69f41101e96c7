// Package structs is the one data model of nomadlite: a file an object, with its JSON names (those of the public
// API), defaults (Canonicalize), Validate, Copy, Diff, and pure rules on one object. It knows no I/O and imports no
// other package of this module.
//
// One set of types has four views by encoder: parse (absent = null, server-owned fields left out: ParseView), api
// (encoding/json: canonical; secrets and internal fields are tagged json:"-"), wire and raft (CBOR by name: internal
// fields carry a cbor tag) and node. Pointers stand only for what a user may leave out; server-owned fields are
// values. Objects in the state store are immutable: Copy before a change.
package structs
