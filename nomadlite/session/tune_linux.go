package session

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// deadAfter is how long a host may leave what was sent to it unacknowledged.
const deadAfter = 30 * time.Second

// giveUp bounds the kernel's retransmissions. Without it a connection to a dead host to which something was sent
// lives for a quarter of an hour, and keepalives do not help.
func giveUp(conn *net.TCPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadAfter.Milliseconds()))
	})
}
