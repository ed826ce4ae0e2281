package testenv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What may be reserved lies below the ports that the system assigns (from 32768 on), and beside those that the programs
// under test take for sound (20000 to 29999).
const (
	firstPort, endPort = 10_000, 20_000
	portUnit           = 100
)

// Ports are n ports in a row of 127.0.0.1, for programs that must be told where to listen. No other test, of any
// process, gets them before the test is over. Whatever can listen on port 0 and say where it listens should.
func Ports(t testing.TB, n int) (first int) {
	t.Helper()
	first, release, err := Reserve(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return first
}

// Reserve is Ports for programs that are no tests. A process that ends gives its ports back.
func Reserve(n int) (first int, release func(), err error) {
	dir := filepath.Join(os.TempDir(), "parley-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, nil, err
	}
	_ = os.Chmod(dir, 0o1777) // of whoever made it
	units := (n + portUnit - 1) / portUnit
	places := (endPort-firstPort)/portUnit - units + 1
	for _, place := range rand.Perm(max(0, places)) {
		first := firstPort + place*portUnit
		if release, ok := hold(dir, first, units); ok {
			if unused(first, min(n, 20)) {
				return first, release, nil
			}
			release()
		}
	}
	return 0, nil, errors.New("no ports are free")
}

// hold locks the units of a row of ports.
func hold(dir string, first, units int) (release func(), ok bool) {
	var held []*os.File
	release = func() {
		for _, f := range held {
			f.Close()
		}
	}
	for u := range units {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(first+u*portUnit)), os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			release()
			return nil, false
		}
		held = append(held, f)
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			release()
			return nil, false
		}
	}
	return release, true
}

// unused says whether nobody listens on the first ports of a row.
func unused(first, n int) bool {
	for port := first; port < first+n; port++ {
		at := fmt.Sprintf("127.0.0.1:%d", port)
		u, err := net.ListenPacket("udp", at)
		if err != nil {
			return false
		}
		u.Close()
		l, err := net.Listen("tcp", at)
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}
