package testenv

import (
	"fmt"
	"net"
	"testing"
)

// Ports that one test has are nobody else's until it gives them back, and none that a program listens on.
func TestPorts(t *testing.T) {
	taken := map[int]bool{}
	for range 3 {
		first := Ports(t, 150)
		for port := first; port < first+2*portUnit; port++ {
			if taken[port] || port < firstPort || port >= endPort {
				t.Fatalf("port %d twice, or out of place", port)
			}
			taken[port] = true
		}
	}
	dir := t.TempDir()
	release, ok := hold(dir, firstPort, 2)
	if _, again := hold(dir, firstPort+portUnit, 1); !ok || again {
		t.Errorf("held %t, and again %t", ok, again)
	}
	release()
	if release, ok = hold(dir, firstPort+portUnit, 1); !ok {
		t.Error("it was not given back")
	}
	release()
	first := Ports(t, 3)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+1))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if unused(first, 3) {
		t.Error("a port that is listened on is called unused")
	}
}
