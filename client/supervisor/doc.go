// Package supervisor is the small process that tasks are children of, so that they outlive the agent, and the agent's
// connection to it. See DESIGN.md for what happens when either of them dies.
//
// Main is the process; the binary enters it before anything else. Client is the agent's side: it speaks to every
// supervisor whose socket lies in the directory and starts one when none answers. One supervisor serves a node; there
// are more only while an older one still has tasks.
//
// Who writes what: the supervisor alone writes below its own directory (a record per task) and the tasks' log files;
// the agent only creates the directory that holds them all.
package supervisor
