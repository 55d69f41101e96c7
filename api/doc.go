// Package api is the Go client of the HTTP API: thin, typed by structs, a context on every call. The command line and
// the end-to-end tests use it, and so may others.
//
// A Client is safe for concurrent use. Reads return QueryMeta, whose LastIndex is the WaitIndex of the next blocking
// query; writes return WriteMeta. What the agent refused is an *Error with the status and the text it answered.
package api
