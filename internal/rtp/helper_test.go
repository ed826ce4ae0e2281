package rtp

import (
	"math"
	"net"
	"net/netip"
	"testing"
	"time"

	pion "github.com/pion/rtp"

	"parley/internal/audio"
)

const hang = 15 * time.Second

// sink is a peer that stays silent and remembers what it hears.
type sink struct {
	heard  []int16 // by Hear
	played []int16 // by Tick
	keys   string
}

func (e *sink) Hear(f audio.Frame)            { e.heard = append(e.heard, f...) }
func (e *sink) Tick(in, out audio.Frame) bool { e.played = append(e.played, in...); return false }
func (e *sink) Digit(key byte)                { e.keys += string(key) }

// share returns how much of a sound's power is at a frequency.
func share(pcm []int16, hz float64, rate audio.Rate) float64 {
	var re, im, all float64
	for i, s := range pcm {
		sin, cos := math.Sincos(2 * math.Pi * hz * float64(i) / float64(rate))
		re, im, all = re+float64(s)*cos, im+float64(s)*sin, all+float64(s)*float64(s)
	}
	if all < float64(len(pcm))*100*100 {
		return 0
	}
	return 2 * (re*re + im*im) / float64(len(pcm)) / all
}

// wire is a telephone's pair of plain UDP sockets, which can send what no telephone would.
type wire struct {
	*net.UDPConn
	control *net.UDPConn // RTCP's, at the port after it
	t       testing.TB
}

func newWire(t testing.TB, ip string) *wire {
	t.Helper()
	for {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		control, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip),
			Port: c.LocalAddr().(*net.UDPAddr).Port + 1})
		if err == nil {
			t.Cleanup(func() { control.Close() })
			return &wire{c, control, t}
		}
	}
}

func (w *wire) addr() netip.AddrPort { return w.LocalAddr().(*net.UDPAddr).AddrPort() }

// packet makes an RTP packet.
func packet(pt uint8, marker bool, seq uint16, ts, ssrc uint32, payload []byte) []byte {
	h := pion.Header{Version: 2, PayloadType: pt, Marker: marker, SequenceNumber: seq, Timestamp: ts, SSRC: ssrc}
	b, err := h.Marshal()
	if err != nil {
		panic(err)
	}
	return append(b, payload...)
}

// listen returns the next RTP packet.
func (w *wire) listen(within time.Duration) (*pion.Packet, netip.AddrPort) {
	buf := make([]byte, 2048)
	_ = w.SetReadDeadline(time.Now().Add(within))
	n, from, err := w.ReadFromUDPAddrPort(buf)
	if err != nil {
		return nil, from
	}
	p := &pion.Packet{}
	if err := p.Unmarshal(buf[:n]); err != nil {
		w.t.Fatalf("no RTP packet: %v", err)
	}
	return p, from
}
