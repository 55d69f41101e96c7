// Package session carries HTTP requests in both directions over one connection which a node or a server opened, so
// that a server reaches a node behind NAT. A session is a yamux connection; each request is one stream on it: an
// HTTP/1.1 request, then its answer. The loop that serves them is our own, without keep-alive machinery.
//
// nomadlite/session (servers) and client/servers (nodes) are its callers.
//
// Invariants:
//   - One stream carries exactly one request. The sender does not half-close its side, so that the end of a stream
//     always means that the sender has gone: the request's context is cancelled then.
//   - A request whose bytes were perhaps sent is never sent again here. ErrNotSent marks those that were not.
//   - A parked request (Park) keeps its stream and no goroutine. It ends by Finish, by Drop, or with the session.
//   - An idle session has four goroutines: yamux's receiver, sender and keepalive, and Serve.
package session
