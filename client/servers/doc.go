// Package servers is a node's connection to its servers: one session to one of them, over which the node registers,
// heartbeats, waits for its assignments and reports (Conn), over which its agent's public port asks the servers
// (Forward), and over which the servers ask the node. Assigned is the pure bookkeeping of the assignments protocol.
// Package client and command/agent are its callers.
//
// Invariants: there is at most one session. A lost one is opened again, to another server first, with a jittered
// backoff. Requests wait for a session as long as their context lets them; none is sent twice once a byte of it may
// have been sent.
package servers
