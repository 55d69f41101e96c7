// Package endpoint has the HTTP handlers of a server, one file a noun: it authorises, validates, makes one raft entry
// for what belongs together, and reads from snapshots. It holds no state of its own but
// a count of its writes.
//
// Routes gives the rows of the route table; the muxes that are built from it do all forwarding, compression and
// limits. A handler returns an error with a structs code, and the mux answers with its text. What a later release
// will bring answers 501, never an invented result.
//
// Reads take one snapshot and, with ?index, wait on watch sets until that snapshot is newer (blocking queries). Lists
// are written row by row; only a page, whose end must be known before the header is sent, is gathered first.
package endpoint
