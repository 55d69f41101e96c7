// Package allocrunner drives one allocation on its node: hooks, its tasks in lifecycle order, the ordered stop, and
// what the node observes of it. The client makes one runner for each assigned allocation and hands in the servers'
// changes; the endpoints ask it for restarts, signals and figures.
//
// What to do next is a pure function of the record on disk, the tasks and what the servers want (core.go): ordered
// rules, first match wins. Whether a deployment may count the allocation as healthy is another (health.go), what is
// reported a third (observe.go). One goroutine carries the decisions out; each task has its own runner.
//
// The order of a stop, whatever its cause: prestop hooks of the allocation, then of its tasks; PreKill hooks (services
// leave discovery), the group's shutdown_delay; the leader, alone; then the other main tasks side by side; then
// sidecars; then poststop tasks run; postrun hooks; only then is the allocation reported as complete or failed.
//
// The runner is the only writer of the observation of its allocation, and reports nothing that is not yet on disk.
package allocrunner
