package document

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// limitProcess bounds this process: address space beyond what it has, processor time, no files, no core.
func limitProcess(memory int64, seconds uint64) error {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	pages, _, _ := strings.Cut(string(raw), " ")
	n, err := strconv.ParseInt(pages, 10, 64)
	if err != nil {
		return err
	}
	return setLimits(uint64(n*int64(os.Getpagesize())+memory), seconds)
}

func setLimits(memory, seconds uint64) error {
	for _, l := range []struct {
		what int
		name string
		n    uint64
	}{
		{syscall.RLIMIT_CORE, "core", 0}, {syscall.RLIMIT_FSIZE, "file size", 0},
		{syscall.RLIMIT_CPU, "cpu", seconds}, {syscall.RLIMIT_AS, "memory", memory},
	} {
		if err := syscall.Setrlimit(l.what, &syscall.Rlimit{Cur: l.n, Max: l.n}); err != nil {
			return fmt.Errorf("set limit of %s: %w", l.name, err)
		}
	}
	return nil
}

// within is a shell's script that becomes another program within limits: seconds of processor time, kilobytes of
// address space, the command line. A process of this program could not, as it may need memory between the one and the
// other.
const within = `ulimit -c 0 && ulimit -f 0 && ulimit -t "$1" && ulimit -v "$2" || { echo "` + setupFailed +
	`no limits" >&2; exit 2; }; shift 2; exec "$@"`

// overCPU: the soft limit sends SIGXCPU, the hard one SIGKILL.
func overCPU(p *os.ProcessState) bool {
	w, ok := p.Sys().(syscall.WaitStatus)
	return ok && w.Signaled() && (w.Signal() == syscall.SIGXCPU || w.Signal() == syscall.SIGKILL)
}
