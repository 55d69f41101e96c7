// Package endpoint answers the HTTP requests which only the node itself can answer: files and logs of allocations,
// figures of the machine and of tasks, restarts, signals and garbage collection. Shapes and parameters are those of
// the public API. The rows go into the agent's own table and into that of the node's session, over which servers pass
// on what was asked of them; the handlers do not know the difference and forward nothing.
package endpoint
