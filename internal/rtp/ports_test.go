package rtp

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
)

func TestPorts(t *testing.T) {
	t.Parallel()
	p := NewPorts(43001, 43010) // 43002 to 43009: four pairs
	ip := netip.MustParseAddr("127.0.0.1")
	other, err := net.ListenUDP("udp", &net.UDPAddr{IP: ip.AsSlice(), Port: 43005}) // one of the RTCP ports is in use
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

// What sounds before a call is answered is thrown away; the first words of a handshake are not, up to a number of them.
func TestDrainKeeps(t *testing.T) {
	sock, err := NewPorts(30000, 39999).Open(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	w := newWire(t, "127.0.0.1")
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(sock.Port))
	for i := range maxKept + 5 {
		for _, data := range [][]byte{{22, byte(i)}, packet(0, false, uint16(i), 0, 9, make([]byte, 160))} {
			if _, err := w.WriteToUDPAddrPort(data, to); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop := sock.Drain()
	for empty := false; !empty; { // what has arrived is read before the deadline is
		var buf [1]byte
		raw, err := sock.rtp.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Control(func(fd uintptr) {
			_, _, err := syscall.Recvfrom(int(fd), buf[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			empty = errors.Is(err, syscall.EAGAIN)
		}); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if len(sock.kept) != maxKept || sock.kept[1].data[1] != 1 || sock.kept[0].from != w.addr() {
		t.Errorf("kept %v", sock.kept)
	}
}
