// Package e2e holds black-box tests of the built binary: real agents, real processes, kill -9. The binary is the one
// that NOMADLITE_BIN names, or else one built for the run.
package e2e
