// Package nomadlite is the server. The package itself is wiring: Config, New, Run, Close and the leader's loop; the rooms
// below it do the work. command/agent builds it, mounts HTTPRoutes on the public port and uses Forwarder there.
//
// Order of life: New makes everything and opens nothing but the listener it may be asked to; Run opens the data directory
// and raft, serves port 4647, joins the others, and blocks; Ready is closed once this server's state is caught up with a
// known leader. On leadership the leader's duties begin, in one place (lead), after a barrier and under a context that ends
// with the leadership; requests are served as the leader's only after all of them have begun.
package nomadlite
