// Package mock is the mock_driver: its tasks are timers that do what their config says, at no cost. Tests of all that
// stands above drivers use it, as do simulated nodes. A task is a function of its config and the moment it started,
// both in its handle, so that it survives a restart of the agent.
package mock
