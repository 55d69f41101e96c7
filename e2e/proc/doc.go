// Package proc starts the built binary as agents and other processes for tests and benchmarks, awaits their readiness
// as a service manager would, measures them and ends them. The binary is the one that NOMADLITE_BIN names, or else one
// built once for the test process. Packages e2e/bench and e2e/nodesim/sim are its callers.
//
// Invariants: whatever was started is ended by the test's cleanup, jobs first, so that nothing outlives the test.
// Ports are free ones, never the default ports.
package proc
