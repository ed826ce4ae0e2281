package testenv

import (
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// Processor returns the processor time that fn takes on this thread. It is the least of five tries, so that other work on the machine
// matters little.
func Processor(t testing.TB, fn func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	spent := func() time.Duration {
		var at syscall.Timespec
		const thread = 3 // CLOCK_THREAD_CPUTIME_ID
		if _, _, no := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, thread, uintptr(unsafe.Pointer(&at)), 0); no != 0 {
			t.Fatal(no)
		}
		return time.Duration(at.Nano())
	}
	least := time.Hour
	for range 5 {
		began := spent()
		fn()
		least = min(least, spent()-began)
	}
	return least
}
