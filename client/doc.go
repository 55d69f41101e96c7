// Package client is the node agent. The package itself is wiring: it finds out what the node is, keeps the connection
// to the servers, registers and heartbeats, takes over what the servers assign, makes a runner for each allocation and
// reports what the runners observe. Everything else is in its rooms.
//
// command/agent makes a Client: New does no I/O; Start prepares (identity, state on disk, drivers, fingerprint,
// runners of earlier allocations) and fails with one clear line when that cannot work; Run blocks until its context is
// done; Close waits. When an agent ends its tasks go on, except in dev mode, where they end with it.
//
// Loops and their owners, all within Run: duty (register, heartbeat), follow (assignments), report (observations),
// collect (garbage), probe (drivers), the connection itself, and one goroutine for each live allocation.
package client
