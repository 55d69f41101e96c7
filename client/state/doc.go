// Package state keeps on the node's disk what a restarted agent must know: the allocations which the servers assigned
// with their job specifications, and for each runner its own record (task states, driver handles, hook journals,
// deadlines, exit results). It is one bbolt file, data_dir/client/state.db.
//
// Writers hand in values and go on; one goroutine writes everything that has gathered in one transaction, so a burst
// of changes costs one sync of the disk. The order of the calls is the order on disk: when a write's done is called,
// all earlier writes are durable too. Callers are client, allocrunner and taskrunner; the rows' types are theirs.
//
// The file carries a version. One that is newer than this binary understands is refused before anything is changed.
package state
