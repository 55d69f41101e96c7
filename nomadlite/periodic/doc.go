// Package periodic is the leader's duty of launching periodic jobs. Schedules is the pure core: jobs, how far their
// schedules have come and the time go in; what is due, and when to look again, comes out. Duty drives it from the
// state's change feed and writes what is due to the log.
//
// A launch is one entry: the child, its evaluation, and the note that this time of the schedule is done with. The entry
// itself decides: a time that is done with already is refused, and prohibit_overlap leaves a launch out while a child
// has not ended. So a leader that writes twice, or another that begins where it stopped, never launches a time twice.
//
// While the leader works each time is launched. Times that passed while nobody did, and those which are late by more
// than Late, are caught up by one launch: the newest of them.
package periodic
