// Package structs is the one data model of nomadlite: the objects that users write, servers keep and nodes run, with
// their JSON names (those of the public API), their defaults, their validation, their copies and the pure rules on one
// object. Everybody imports it; it knows no I/O and imports no other package of this module.
//
// One set of types has four views by encoder:
//
//   - api: encoding/json, canonical; secrets and internal fields are tagged json:"-". Lists use AppendJSON.
//   - parse: ParseView; what the user left out is null, what servers own is null or left out (tag parse).
//   - wire and raft: CBOR by name; internal fields carry a cbor tag.
//
// testdata/views.golden fixes name and presence of every field in each view.
//
// Invariants. Pointers stand only for what a user may leave out; server-owned fields are values. A job is read, made
// canonical (Canonicalize) and then validated (Validate), in this order; whoever gets a job from the state store can
// rely on both. Objects in the state store are immutable: Copy before a change. Allocation.ClientStatus is always the
// value of DeriveClientStatus, and observed statuses only move forward (ObservedTransitionLegal).
package structs
