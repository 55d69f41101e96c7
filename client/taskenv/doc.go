// Package taskenv builds the environment a task starts with, and resolves the ${...} references to it which a job may
// hold. Both follow the public documentation of the runtime environment and of interpolation. It is pure: values in,
// environment out; the task runner hands in the host's variables and every path as the task will see it.
package taskenv
