// Package template renders the template blocks of tasks and follows what they show.
//
// The Hook, one of a task's hooks, renders all templates before each first start, waits for what they need, and keeps a
// session: a goroutine that renders again when a service, or a file, has changed, writes what differs and then asks the
// task for what change_mode says. One session belongs to one task; it ends in the hook's Stop, or with the agent.
//
// The functions are those of consul-template's engine, whose Consul and Vault runner is not used: functions that look
// something up record a Query, which the session answers from its Source. Templates are run in a short-lived process of
// their own (Main), since a template may loop or grow for ever: it is killed when the task is stopped or when it takes
// more time or memory than it may, and it never sees the agent's environment.
//
// Files are read and written below the allocation's directory alone, without following links out of it.
package template
