//go:build !linux

package phone

import (
	"net"
	"time"
)

// stampBytes is room for the kernel's time of a packet, which is read on Linux alone.
const stampBytes = 0

// stamp does nothing: a packet's time is that of its reading.
func stamp(*net.UDPConn) {}

// KernelTime is zero: it is read on Linux alone.
func KernelTime([]byte) time.Time { return time.Time{} }
