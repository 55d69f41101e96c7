// Package driver is the contract between a task runner and what really runs a task. Implementations live in
// client/drivers and each runs the conformance suite of client/drivertest. A task outlives the agent: everything that
// is needed to find it again is in its Handle.
package driver
