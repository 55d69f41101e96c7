// Package command is the command line: one file a command, each a value that says its name, flags and what it does.
// Flags take a single dash, exit codes are 0 for success, 1 for a fault and 2 where a command documents it. Output is
// for people unless -json or -t asks for data; progress is live on a terminal and plain lines when piped.
package command
