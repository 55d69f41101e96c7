// Package fingerprint finds out what the node is: processor, memory, disk, network, operating system and drivers, with
// the attribute names of the public interface, which jobs use in constraints and interpolation. The client calls it
// once before it registers and the driver part again from time to time. It reads files of /proc and /sys, starts no
// process, and takes a few milliseconds.
package fingerprint
