// Package jsontest compares decoded JSON in tests as readers of the public API do, for whom null, a missing member, []
// and {} are the same. Tests of the data model, the jobspec and the endpoints call it.
package jsontest
