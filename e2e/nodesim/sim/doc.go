// Package sim simulates client nodes: each opens a real session to the servers (client/servers), registers, keeps
// heartbeating, follows its assignments and reports what it would run, so that servers meet the load of thousands of
// nodes without thousands of machines. Nothing is executed: an allocation is running after Config.Delay, complete once
// its job stops it, or, in batch jobs, Config.RunFor later. Command nodesim and the benchmarks are its callers.
//
// Invariants: a node speaks the same protocol as the agent does, through the same code, and reports every allocation
// before its first fresh heartbeat on a new session. What counts as running or complete is what servers have
// acknowledged. All goroutines end within Close.
package sim
