// Package schedtest is a cluster in memory for tests and benchmarks of the schedulers: a state that hands out immutable
// objects, and a planner that verifies and applies plans to it as the server's plan applier does. Only tests import it.
package schedtest
