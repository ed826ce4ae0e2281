package endpoint

import (
	"net/netip"
	"testing"

	"parley/internal/egress"
)

// Private lets endpoints be at private addresses, and at no other ones that are not public; Public at none.
func TestReach(t *testing.T) {
	for _, c := range []struct {
		reach, at string
		may       bool
	}{
		{Public, "198.41.0.4", true}, {Public, "10.1.2.3", false}, {Public, "fd00::1", false},
		{Private, "198.41.0.4", true}, {Private, "10.1.2.3", true}, {Private, "fd00::1", true},
		{Private, "192.168.3.4", false}, // this server's own
		{Private, "127.0.0.1", false}, {Private, "169.254.169.254", false},
	} {
		b := New(nil, egress.New([]netip.Addr{netip.MustParseAddr("192.168.3.4")}), nil, c.reach, nil)
		defer b.Close()
		if err := b.guard.Check(netip.MustParseAddr(c.at)); (err == nil) != c.may {
			t.Errorf("%s, %s: %v", c.reach, c.at, err)
		}
	}
}
