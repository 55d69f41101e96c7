// Package artifact fetches the artifact blocks of tasks.
//
// The Hook, one of a task's hooks, reads the blocks (spec.go), makes a directory beside where each is to lie
// (place.go), lets a process of its own fill that (process.go), looks at what came (inspect.go), and only then moves it
// to its place. What is there is therefore whole, and a fetch that ended in the middle, for whatever reason, left nothing
// but that directory, which the next one removes.
//
// The process (Main, child.go) reads what the internet sends: it downloads, runs git, checks sums and unpacks. It
// never sees the agent's environment, has no capabilities, and by Landlock reads little more than programs and
// certificates, and writes nothing but its directory. It ends with its agent, and with everything it has started. The
// agent believes nothing that it says about what it has written.
//
// Who writes what: the hook's record holds the numbers of the artifacts which lie in their places.
package artifact
