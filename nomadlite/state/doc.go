// Package state is the server's in-memory database.
package state

// Store will be filled in by its own room.
type Store struct{}
