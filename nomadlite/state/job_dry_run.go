package state

import "github.com/nomadlite/nomadlite/structs"

// DryRegister gives the row which RegisterJob would store on top of a snapshot, as the entry after it. Nothing is
// written.
func (s *Store) DryRegister(snap *Snapshot, r JobRegistration) (*structs.Job, error) {
	tx := s.begin(s.gen.Load(), snap.Index()+1, 0)
	tx.base = snap.at()
	return tx.RegisterJob(r)
}
