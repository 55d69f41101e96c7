//go:build !linux

package session

import "net"

// giveUp has no counterpart here: the kernel's own retransmission timeout applies.
func giveUp(*net.TCPConn) {}
