package phone

import (
	"encoding/binary"
	"net"
	"syscall"
	"time"
)

// stampBytes is room for the kernel's time of a packet.
const stampBytes = 64

// stamp has the kernel say when each packet arrived: on a busy machine it is read later.
func stamp(conn *net.UDPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1) // without, it is the time of reading
	})
}

// KernelTime is the kernel's time in the control messages that came with a packet; zero where there is none.
func KernelTime(control []byte) time.Time {
	list, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return time.Time{}
	}
	for _, m := range list {
		if m.Header.Level == syscall.SOL_SOCKET && m.Header.Type == syscall.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:])))
		}
	}
	return time.Time{}
}
