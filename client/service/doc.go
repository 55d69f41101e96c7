// Package service offers the services of provider nomad that run on this node in the cluster's own registry.
//
// Two hooks, one of an allocation and one of a task, say what is offered: the group's services from before its tasks
// begin until the allocation is to stop, a task's while it runs. The Registry keeps what all of them say, on disk too,
// and sends each change to the servers; on a new session it sends everything, so that the registry follows the node
// whatever happened in between. Leaving is the one thing that is waited for: a hook's PreKill returns once the servers
// have taken the services away (or cannot be reached), and only then does shutdown_delay begin.
//
// The hooks also tell check.Board which checks the services have and when the tasks run, so that checks are asked only
// while what they ask is there. They end first of all when something is to stop.
//
// Invariants: a registration's id depends on nothing that changes in the life of its allocation; to say the same again
// costs nothing; after PreKill nothing is offered any more, whatever update arrives.
package service
