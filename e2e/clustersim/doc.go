// Package clustersim tests a whole cluster under virtual time, in one goroutine as far as anybody can see: the real FSM
// and state, evaluation broker, schedulers, plan applier, heartbeat, drain and deployment duties, the real assignments
// of nodes, allocation and task runners and leases, with simulated messages, disks and processes in between. All chance
// comes from a seed, so that a run can be repeated; what is taken at random is who goes next, what operators ask for,
// and what gets lost, late or twice.
//
// After each step the invariants of the cluster are checked, in invariants_test.go. testdata/seeds keeps the seeds that
// once found a fault, testdata/faults the faults which the simulation has to find. The package has tests only; nothing
// may import it.
package clustersim
