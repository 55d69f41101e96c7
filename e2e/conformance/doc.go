// Package conformance runs the official Go client's own tests against the built binary, in a throwaway module, and
// holds their results: a test that passed once must not fail again. With -update it writes the list of passing tests
// and the table in docs/compatibility.md anew.
package conformance
