package cluster

import (
	"runtime"
	"syscall"
	"time"
)

// realtime is the processor's time that this process has used: its clock is the simulation's.
func realtime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func processors() int { return runtime.NumCPU() }
