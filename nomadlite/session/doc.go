// Package session is what a server does on port 4647: it accepts raft's streams and the sessions of nodes and other
// servers (Port), knows which node can be reached where (Nodes), takes requests to the leader or to a node
// (Forwarder), answers the nodes' long polls for their assignments (Assignments) and the rest of the node protocol
// (NodeRoutes). Package nomadlite wires it.
//
// Invariants:
//   - Servers prove the cluster's key, for raft as for sessions. A node proves its secret: at the handshake as far as
//     this server knows the node, and before anything is sent to it.
//   - A request that is not a GET is never sent a second time once a byte of it may have been sent.
//   - A waiting poll for assignments keeps no goroutine on the server that answers it.
//   - The node protocol never invents an observation, and a node reports of its own allocations only.
package session
