package egress

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	refused := map[string][]string{
		"unspecified": {"0.0.0.0", "0.1.2.3", "0.255.255.255", "::", "::ffff:0.0.0.0"},
		"loopback":    {"127.0.0.1", "127.0.0.0", "127.255.255.255", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1"},
		"private": {"10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1",
			"192.168.255.255", "fc00::", "fd00:ec2::254", "fdff:ffff::1", "fec0::1", "feff::1", "::ffff:10.1.2.3"},
		"link-local": {"169.254.0.1", "169.254.169.254", "169.254.255.255", "fe80::1", "febf::1",
			"::ffff:169.254.169.254", "fe80::1%eth0", "2606:4700::1%eth0", "::1%lo"},
		"carrier": {"100.64.0.0", "100.100.100.200", "100.127.255.255"},
		"cloud":   {"168.63.129.16"},
		"documentation": {"192.0.2.1", "198.51.100.255", "203.0.113.0", "2001:db8::1", "2001:db8:ffff::", "3fff::1",
			"3fff:fff::1"},
		"benchmarking": {"198.18.0.0", "198.19.255.255", "2001:2::1"},
		"multicast":    {"224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"},
		"broadcast":    {"255.255.255.255", "::ffff:255.255.255.255"},
		"tunnel": {"2002::1", "2002:7f00:1::", "2002:808:808::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
			"192.88.99.1",
			"2606:4700::5efe:8.8.8.8", "2606:4700::200:5efe:10.0.0.1", "2606:4700::5efe:127.0.0.1"},
		"translator": {"64:ff9b:1::", "64:ff9b:1:ffff::8.8.8.8"},
		"reserved": {"192.0.0.1", "192.0.0.192", "240.0.0.0", "255.255.255.254", "2001:10::1", "2001:20::1",
			"2001:1ff:ffff::1", "100::1", "5f00::1", "4000::1", "1fff::1", "8000::1",
			"::2", "::127.0.0.1", "::8.8.8.8", "::fffe:127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::1:0:0",
			"64:ff9b:2::1"},
		"invalid": {""},
	}
	for kind, list := range refused {
		for _, s := range list {
			a, _ := netip.ParseAddr(s)
			err := New(nil).Check(a)
			var r *Refused
			if !errors.As(err, &r) || !strings.Contains(r.Reason, kind) || !strings.Contains(r.Reason, Setting) {
				t.Errorf("Check(%q) = %v, want refused as %s", s, err, kind)
			}
		}
	}
	// A NAT64 translator connects to the IPv4 address inside its address.
	for _, s := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
		"255.255.255.255", "192.168.1.1"} {
		if New(nil).Check(netip.MustParseAddr("64:ff9b::"+s)) == nil {
			t.Errorf("NAT64 of %s is not refused", s)
		}
	}
	for _, s := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
		"128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255",
		"172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0",
		"168.63.129.15", "223.255.255.255", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
		"2001:200::1", "2001:4860:4860::8888", "2606:4700:4700::1111", "2a00::1", "2003::1", "2620:4f:8000::1",
		"3ffe::1", "2606:4700::5efd:8.8.8.8", "2606:4700::100:5efe:8.8.8.8",
	} {
		if err := New(nil).Check(netip.MustParseAddr(s)); err != nil {
			t.Errorf("Check(%s) = %v, want nil", s, err)
		}
	}
}

func TestAllow(t *testing.T) {
	for _, c := range []struct {
		allow, addr string
		ok          bool
	}{
		{"127.0.0.1/32", "127.0.0.1", true},
		{"127.0.0.1/32", "::ffff:127.0.0.1", true},
		{"127.0.0.1/32", "127.0.0.2", false},
		{"127.0.0.1/32", "::1", false},
		{"10.1.2.3/8", "10.9.9.9", true}, // host bits don't matter
		{"::ffff:10.0.0.0/104", "10.9.9.9", true},
		{"::ffff:10.0.0.0/104", "11.0.0.1", true}, // public anyway
		{"::ffff:10.0.0.0/104", "172.16.0.1", false},
		{"0.0.0.0/0", "169.254.169.254", true},
		{"0.0.0.0/0", "fd00::1", false},
		{"::/0", "fd00::1", true},
		{"::/0", "10.0.0.1", false},
		{"10.0.0.0/8", "64:ff9b::10.0.0.1", false}, // the translator's 10.0.0.1 is not ours
		{"64:ff9b::/96", "64:ff9b::10.0.0.1", true},
		{"fe80::/10", "fe80::1", true},
		{"fe80::/10", "fe80::1%eth0", false}, // a prefix names no interface
	} {
		g := New(nil, netip.MustParsePrefix("192.168.7.0/24"), netip.MustParsePrefix(c.allow))
		if err := g.Check(netip.MustParseAddr(c.addr)); (err == nil) != c.ok {
			t.Errorf("allowing %s: Check(%s) = %v", c.allow, c.addr, err)
		}
	}
	if New(nil, netip.Prefix{}).Check(netip.MustParseAddr("10.0.0.1")) == nil {
		t.Error("an invalid prefix allows something")
	}
}

// An address that passes must also be public by the standard library's coarser methods, in whatever form it is written.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"8.8.8.8", "127.0.0.1", "2606:4700::1", "64:ff9b::10.0.0.1", "64:ff9b::8.8.8.8",
		"::ffff:192.168.0.1", "2002:a00:1::", "fe80::1"} {
		b, err := netip.MustParseAddr(s).MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "")
		f.Add(b, "eth0")
	}
	g := New(nil)
	f.Fuzz(func(t *testing.T, b []byte, zone string) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		if a.Is6() {
			a = a.WithZone(zone)
		}
		err := g.Check(a)
		if a.Is4() {
			mapped := netip.AddrFrom16(a.As16())
			if (g.Check(mapped) == nil) != (err == nil) {
				t.Errorf("%s and %s are judged differently", a, mapped)
			}
			s4 := a.As4()
			translated := nat64.Addr().As16()
			copy(translated[12:], s4[:])
			if (g.Check(netip.AddrFrom16(translated)) == nil) != (err == nil) {
				t.Errorf("%s is judged differently behind a translator", a)
			}
		}
		u := a.Unmap()
		if e := New(nil, netip.PrefixFrom(u, u.BitLen())).Check(a); (e == nil) != (u.Zone() == "" || err == nil) {
			t.Errorf("allowed %s: %v", a, e)
		}
		if err != nil {
			return
		}
		if u.Zone() != "" || !u.IsGlobalUnicast() || u.IsPrivate() || u.IsLoopback() || u.IsLinkLocalUnicast() ||
			u.IsMulticast() || u.IsUnspecified() {
			t.Errorf("%s passed", a)
		}
		if u.Is6() && !unicast.Contains(u) && !nat64.Contains(u) {
			t.Errorf("%s passed, which nobody was given", a)
		}
	})
}

// TestOwnAddress: the addresses at which others reach this machine don't get past the guard.
func TestOwnAddress(t *testing.T) {
	own, outer := netip.MustParseAddr("8.8.4.4"), netip.MustParseAddr("9.9.9.10")
	g := New([]netip.Addr{outer, {}}, netip.MustParsePrefix("2606:4700::1/128"))
	defer g.Close()
	g.addrs = func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: own.AsSlice(), Mask: net.CIDRMask(24, 32)},
			&net.IPNet{IP: net.ParseIP("2606:4700::1"), Mask: net.CIDRMask(64, 128)},
			&net.IPNet{IP: net.ParseIP("2606:4700::2"), Mask: net.CIDRMask(64, 128)}}, nil
	}
	for a, refused := range map[string]bool{"8.8.4.4": true, "::ffff:8.8.4.4": true, "64:ff9b::8.8.4.4": true,
		"8.8.4.5": false, "9.9.9.10": true, "9.9.9.11": false,
		"2606:4700::1": false, "2606:4700::2": true, "2606:4700::3": false} {
		err := g.Check(netip.MustParseAddr(a))
		if (err != nil) != refused {
			t.Errorf("%s: %v", a, err)
		}
		if refused && !strings.Contains(err.Error(), "this server's own") {
			t.Errorf("%s: %v", a, err)
		}
	}
	g.addrs = func() ([]net.Addr, error) { return nil, errors.New("too many open files") }
	if g.Check(netip.MustParseAddr("8.8.4.5")) == nil {
		t.Error("where nobody can tell whose an address is, it is reached")
	}
}
