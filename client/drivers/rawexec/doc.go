// Package rawexec is the raw_exec driver: it runs a program of the host as it is, without isolation, as a child of the
// node's supervisor. The client builds one; the task runner drives it over the driver contract. All state is the
// supervisor's: a driver made by a later agent knows the same tasks.
package rawexec
