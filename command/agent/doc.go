// Package agent is one nomadlite process: it reads the agent's configuration, and wires a server, a client or both
// with the public HTTP listener. It is called by the agent command and by tests that want a whole process in one.
//
// Configuration: flags over files over defaults; files in the order given, folders in the order of their names, the
// later over the earlier. Every key of the public documentation is known; an unknown one is refused with its place.
package agent
