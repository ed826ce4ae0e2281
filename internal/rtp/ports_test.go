package rtp

import (
	"net"
	"net/netip"
	"slices"
	"testing"
)

func TestPorts(t *testing.T) {
	t.Parallel()
	p := NewPorts(43001, 43010) // 43002 to 43009: four pairs
	ip := netip.MustParseAddr("127.0.0.1")
	other, err := net.ListenUDP("udp", &net.UDPAddr{IP: ip.AsSlice(), Port: 43005}) // somebody has one of RTCP's
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var open []*Socket
	var got []int
	for {
		s, err := p.Open(ip)
		if err != nil {
			break
		}
		open, got = append(open, s), append(got, s.Port)
	}
	slices.Sort(got)
	if !slices.Equal(got, []int{43002, 43006, 43008}) || p.Used() != 3 {
		t.Errorf("ports %v", got)
	}
	for _, s := range open {
		s.Close()
	}
	if s, err := p.Open(ip); err != nil {
		t.Error(err)
	} else {
		s.Close()
	}
}
