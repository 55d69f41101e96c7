package fsm

import "github.com/nomadlite/nomadlite/nomadlite/state"

func applyServiceUpsert(tx *state.Txn, r *ServiceUpsert) (any, error) {
	tx.UpsertServices(r.Services)
	return nil, nil
}

func applyServiceDelete(tx *state.Txn, r *ServiceDelete) (any, error) {
	var result ServiceDeleteResult
	for _, s := range r.Services {
		if tx.DeleteService(s.Namespace, s.ID, s.NodeID) {
			result.Deleted++
		}
	}
	return result, nil
}
