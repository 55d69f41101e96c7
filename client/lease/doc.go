// Package lease knows until when the allocations of a node may run without a confirmed heartbeat. It is pure but for its
// lock: the client tells it which allocations have a lease and when a heartbeat was confirmed, hands in the clock, and
// asks what has run out.
//
// A lease counts from the moment at which the confirmed heartbeat was sent: the servers received it later, and count
// from then. What has run out stays so, whatever is confirmed afterwards. A moment of an earlier boot is worth nothing.
package lease
