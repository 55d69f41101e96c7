// Package scenariotest plays text scenarios against the pure cores: blocks of commands, a line of dashes, and the trace
// which they must leave. The tests of the broker, the reconciler, deployments and drains call it.
//
// A file is testdata/*.txt of the package under test; its blocks are separated by empty lines and act on one world.
// Lines that begin with # are remarks. `go test -rewrite` writes the traces anew, to be reviewed as a diff.
package scenariotest
