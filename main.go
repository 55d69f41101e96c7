// Command nomadlite is a workload orchestrator: server, node agent and command line in one binary.
package main

func main() {}
