// Package bench measures the built binary as a whole process: how fast an agent starts, runs and stops tasks, and what
// that costs in memory and on disk. `make bench` runs it; docs/benchmarks.md says what each figure means.
package bench
