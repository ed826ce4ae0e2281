package rtc

import (
	"net"
	"net/netip"
	"time"
)

// maxPackets is how many packets an address may send within a second: a call has 50, or 100 where a browser wants
// them short.
const maxPackets = 500

// gate is a socket that takes no more than that from anyone: what a flood costs is the reading of it. Behind it
// packets go through several queues, and those that aren't sound are kept until somebody reads them.
type gate struct {
	*net.UDPConn
	second time.Time // the present one's beginning
	seen   map[netip.AddrPort]int
}

// ReadFromAddrPort waits for a packet that may pass. One goroutine reads.
func (g *gate) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	for {
		n, from, err := g.ReadFromUDPAddrPort(b)
		if err != nil || g.pass(from, time.Now()) {
			return n, from, err
		}
	}
}

// WriteToAddrPort sends a packet.
func (g *gate) WriteToAddrPort(b []byte, to netip.AddrPort) (int, error) {
	return g.WriteToUDPAddrPort(b, to)
}

func (g *gate) pass(from netip.AddrPort, now time.Time) bool {
	if now.Sub(g.second) >= time.Second {
		g.second = now
		clear(g.seen)
	}
	g.seen[from]++
	return g.seen[from] <= maxPackets
}

// listen opens the sockets of an address: of none, one for every address of the machine, since what is answered from
// another address than it was sent to is not taken.
func listen(at *net.UDPAddr) (sockets []*net.UDPConn, err error) {
	addresses := []*net.UDPAddr{at}
	if at.IP == nil || at.IP.IsUnspecified() {
		if addresses, err = everyAddress(at); err != nil {
			return nil, err
		}
	}
	for _, a := range addresses {
		socket, err := net.ListenUDP("udp", a)
		if err != nil {
			for _, s := range sockets {
				s.Close()
			}
			return nil, err
		}
		_ = socket.SetReadBuffer(1 << 20) // as much as the system gives
		_ = socket.SetWriteBuffer(1 << 20)
		sockets = append(sockets, socket)
	}
	return sockets, nil
}

// everyAddress is what the machine's interfaces have.
func everyAddress(at *net.UDPAddr) (list []*net.UDPAddr, err error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			continue // it has just gone
		}
		for _, a := range addresses {
			n, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			one := &net.UDPAddr{IP: n.IP, Port: at.Port}
			if n.IP.IsLinkLocalUnicast() && n.IP.To4() == nil {
				one.Zone = i.Name
			}
			list = append(list, one)
		}
	}
	return list, nil
}
