// Package sim plays what-if on a cluster in memory with the very schedulers that servers run: nodes and jobs are put in,
// nodes come and are lost, jobs are run, stopped and scaled, and what comes of it is counted: how full each class of
// nodes is, what moved, what was evicted, and what found no place and why. The command line calls it.
//
// The world is idealized: nodes start and stop at once what they are told, everything that runs is healthy, nothing
// ends or fails by itself, and there is one worker, so that no plan ever meets another. Time passes only where the
// scheduler asks to wait. All ids follow from the seed, so the same input gives the same outcome.
package sim
