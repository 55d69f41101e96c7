// Package docker runs tasks as containers of an engine that speaks the Docker API.
//
// The engine owns the containers: they outlive the agent, and a container is found again by the label that holds its
// task's id. What a task needs to be taken over lies in its labels, so no handle has to be on disk for that.
//
// Output goes the engine's way. The agent reads it with the engine's timestamps and writes the task's rotated files; how
// far it got is kept beside, so that after a restart of either side nothing is written twice and nothing left out.
package docker
