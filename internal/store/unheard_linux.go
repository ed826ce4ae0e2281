package store

import (
	"strings"
	"syscall"
)

const tcpUserTimeout = 0x12 // TCP_USER_TIMEOUT, which syscall does not name

// unheard has TCP give up a peer that acknowledges nothing: without it a write into the void is repeated for a
// quarter of an hour.
func unheard(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return c.Control(func(fd uintptr) {
		// an old kernel has none: keepalive remains
		syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(unheardTime.Milliseconds()))
	})
}
