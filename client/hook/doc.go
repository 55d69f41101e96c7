// Package hook is the contract between the runners of allocations and tasks and everything that is to happen around
// them: directories, services, payloads, later networks, volumes, templates. A hook is a type with a name and one or
// more of the tiny interfaces below; it gets a request and fills a response, and holds no pointer to its runner.
//
// Callers are allocrunner and taskrunner. Hooks run in the order in which one function lists them. Each call has a
// deadline, is timed and traced at debug level, and its error names the hook. What a hook finished is written to the
// runner's journal before the next one begins, so that a restarted agent does not repeat it.
package hook
