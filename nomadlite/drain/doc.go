// Package drain is the leader's duty about draining nodes. Drains is the pure core: nodes, allocations and the time go
// in; what is due comes out. Duty drives it from the state's change feed and writes what is due to the log.
//
// A drain moves nothing by itself. It marks allocations (DesiredTransition.Migrate), many in one entry together with an
// evaluation for each of their jobs; only a plan stops and places. Services are marked by their group's migrate block:
// never so many at a time that fewer than count - max_parallel allocations, over all nodes, have had their health
// judged. Work that ends by itself (batch, sysbatch) is left until the drain's deadline and then not placed anew. System
// jobs are marked when all else has ended, or not at all when the drain ignores them. At the deadline all that is left
// is marked at once. When nothing is left the drain is over: that is an entry of its own, which counts only while the
// node is still as it was when that was found.
//
// The duty keeps nothing: marks, strategies and deadlines are in the state, so that a new leader goes on where the old
// one stopped, and doing something twice changes nothing more.
package drain
