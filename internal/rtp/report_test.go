package rtp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"parley/internal/audio"
)

// told is a report as parsed from its octets: this parser shares nothing with the code that writes reports.
type told struct {
	kind          byte // 200: a sender's, 201
	ssrc          uint32
	ntp           uint64
	ts            uint32
	sent, octets  uint32
	blocks        int
	of            uint32 // in the first block: the source that it is about
	lost          uint32
	newest        uint32
	jitter        uint32
	before, since uint32
	name, bye     bool
}

func readTold(t testing.TB, b []byte) (r told) {
	t.Helper()
	u32 := binary.BigEndian.Uint32
	for first := true; len(b) > 0; first = false {
		if len(b) < 8 || b[0]>>6 != 2 || b[0]&0x20 != 0 || len(b) < 4+4*int(binary.BigEndian.Uint16(b[2:])) {
			t.Fatalf("malformed: %x", b)
		}
		p := b[:4+4*int(binary.BigEndian.Uint16(b[2:]))]
		b = b[len(p):]
		switch p[1] {
		case 200, 201:
			if !first {
				t.Error("the report doesn't come first")
			}
			r.kind, r.ssrc, r.blocks = p[1], u32(p[4:]), int(p[0]&31)
			block := p[8:]
			if p[1] == 200 {
				r.ntp, r.ts, r.sent, r.octets = binary.BigEndian.Uint64(p[8:]), u32(p[16:]), u32(p[20:]), u32(p[24:])
				block = p[28:]
			}
			if len(block) != 24*r.blocks {
				t.Fatalf("%d blocks in %d octets", r.blocks, len(block))
			}
			if r.blocks > 0 {
				r.of, r.lost, r.newest, r.jitter, r.before, r.since = u32(block), u32(block[4:]), u32(block[8:]),
					u32(block[12:]), u32(block[16:]), u32(block[20:])
			}
		case 202:
			r.name = u32(p[4:]) == r.ssrc && p[8] == 1 && p[9] > 8
		case 203:
			r.bye = u32(p[4:]) == r.ssrc
		default:
			t.Errorf("type %d", p[1])
		}
	}
	return r
}

// next reads the next report from a socket, nil if there is none.
func next(t testing.TB, c *net.UDPConn, within time.Duration) *told {
	t.Helper()
	buf := make([]byte, 2048)
	for {
		_ = c.SetReadDeadline(time.Now().Add(within))
		n, _, err := c.ReadFromUDPAddrPort(buf)
		if err != nil {
			return nil
		}
		if isReport(buf[:n]) {
			r := readTold(t, buf[:n])
			return &r
		}
	}
}

func marshal(t testing.TB, p ...rtcp.Packet) []byte {
	t.Helper()
	b, err := rtcp.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestReports talks for a minute over a network that loses every tenth packet. RTCP goes to its default port, to
// another one that was announced, and to RTP's own.
func TestReports(t *testing.T) {
	for name, set := range map[string]func(a *Agreement, w, other *wire){
		"own": func(a *Agreement, w, other *wire) {},
		"told": func(a *Agreement, w, other *wire) {
			a.Control = netip.AddrPortFrom(netip.Addr{},
				other.addr().Port())
		},
		"named": func(a *Agreement, w, other *wire) { a.Control = other.addr() },
		"mux":   func(a *Agreement, w, other *wire) { a.Mux = true },
	} {
		t.Run(name, func(t *testing.T) {
			m, w := desk(t, audio.PCMU, true, &still{})
			other := newWire(t, "127.0.0.1")
			a := Agreement{Codec: codecOf(audio.PCMU, true), Direction: both, Told: w.addr(), Signal: w.addr().Addr()}
			set(&a, w, other)
			m.agree(a, 0)
			conn, take := w.control, m.control
			switch name {
			case "told", "named":
				conn = other.UDPConn
			case "mux":
				conn, take = w.UDPConn, m.packet
			}
			from := conn.LocalAddr().(*net.UDPAddr).AddrPort()
			var reports []told
			var last time.Duration
			const theirs = 9
			for i := range 3000 {
				at := time.Duration(i) * frameTime
				if i%10 != 5 {
					m.packet(packet(0, false, uint16(i), uint32(i)*frameTicks, theirs, make([]byte, 160)), w.addr(), at)
				}
				before := m.reports.made
				m.tick(at, 0)
				if m.reports.made == before {
					w.listen(hang) // the socket's buffer is small
					continue
				}
				r := next(t, conn, hang)
				if r == nil {
					t.Fatalf("the report at %v doesn't come", at)
				}
				if gap := at - last; gap > 6200*time.Millisecond || gap < 1020*time.Millisecond {
					t.Errorf("%v after another one", gap)
				}
				n := len(reports)
				reports, last = append(reports, *r), at
				if r.kind != 200 || r.ssrc != m.sender.Header.SSRC || r.ts != m.sender.ts || !r.name || r.bye {
					t.Errorf("at %v: %+v", at, r)
				}
				if int(r.sent) != i || r.octets != r.sent*160 {
					t.Errorf("at %v: %d packets of %d octets, and %d were sent", at, r.sent, r.octets, i)
				}
				if share := r.lost >> 24; r.blocks != 1 || r.of != theirs || share < 21 || share > 30 || // of 51 packets or more
					int(r.newest) < i-1 || r.jitter != 0 {
					t.Errorf("at %v: %+v", at, r)
				}
				if n > 0 && (r.before != 0xAAAA_BBBB || r.since < fraction(at-m.reports.in.sentAt)-1) {
					t.Errorf("at %v: the report that came before is told as %x, %v ago", at, r.before, r.since)
				}
				// A quarter of a second later they answer that they have had the report for 200 ms.
				answer := marshal(t, &rtcp.SenderReport{SSRC: theirs, NTPTime: 0x1111_AAAA_BBBB_2222,
					Reports: []rtcp.ReceptionReport{
						{SSRC: 4}, {SSRC: r.ssrc, TotalLost: 3, Jitter: 80, LastSenderReport: middle(r.ntp),
							Delay: fraction(200 * time.Millisecond)}}},
					rtcp.NewCNAMESourceDescription(theirs, "they"))
				take(answer, netip.MustParseAddrPort("203.0.113.5:77"), at)
				take(answer[:30], from, at)
				take(answer, from, at+250*time.Millisecond)
			}
			s := m.Stats()
			if len(reports) < 9 || s.Reports != len(reports) || s.Sent != 3000 || s.Received != 2700 ||
				s.Lost != 300 || s.FarLost != 3 || s.FarJitter != 10*time.Millisecond {
				t.Errorf("%d reports, %+v", len(reports), s)
			}
			if off := s.RoundTrip - 50*time.Millisecond; off > time.Millisecond || off < -time.Millisecond {
				t.Errorf("there and back in %v", s.RoundTrip)
			}
		})
	}
}

// TestReportsGoOn: when either end becomes another source, its reports are about that one, and the call's counts go on.
func TestReportsGoOn(t *testing.T) {
	t.Parallel()
	m, w := desk(t, audio.G722, true, &still{})
	at, from := time.Duration(0), w.control.LocalAddr().(*net.UDPAddr).AddrPort()
	var sources []uint32
	for round, format := range []audio.Format{audio.G722, audio.Opus, audio.G722} {
		m.agree(Agreement{Codec: codecOf(format, true), Direction: both, Told: w.addr(), Signal: w.addr().Addr()}, at)
		enc, theirs, sent := audio.NewEncoder(format), uint32(70+round), 0
		for i, f := range tones(audio.Wide, 500, 10+round) {
			if i != 5 {
				m.packet(packet(format.PayloadType(), false, uint16(i), uint32(i*format.ClockRate()/50), theirs, enc.Encode(nil, f)), w.addr(), at)
			}
			before := m.sender.ts
			m.reports.next = time.Hour
			if m.tick(at, 0); m.sender.ts != before {
				sent++
			}
			at += frameTime
		}
		m.mu.Lock()
		m.report(at, false)
		m.mu.Unlock()
		r := next(t, w.control, hang)
		if r == nil || r.kind != 200 || r.ssrc != m.sender.Header.SSRC || int(r.sent) != sent || r.octets == 0 || r.of != theirs ||
			r.lost&0xFFFFFF != 1 || int(r.newest) != 9+round {
			t.Fatalf("round %d: %d packets were sent: %+v", round, sent, r)
		}
		sources = append(sources, r.ssrc)
		m.control(marshal(t, &rtcp.ReceiverReport{SSRC: theirs, Reports: []rtcp.ReceptionReport{
			{SSRC: sources[0], TotalLost: 2}, {SSRC: r.ssrc, TotalLost: 2}}}), from, at)
		if s := m.Stats(); s.Received != []int{9, 9 + 10, 9 + 10 + 11}[round] || s.Lost != round+1 || s.FarLost != 2*(round+1) {
			t.Errorf("round %d: %+v", round, s)
		}
	}
	if sources[0] == sources[1] || sources[1] == sources[2] {
		t.Errorf("another clock has the same source: %v", sources)
	}
}

// TestGoodbye ends a session: the far end gets a goodbye, unless we have never sent anything.
func TestGoodbye(t *testing.T) {
	t.Parallel()
	m, w := desk(t, audio.PCMU, true, &still{})
	done, n := make(chan struct{}), 0
	m.Run(done, func() {
		if n++; n == 3 {
			close(done)
		}
	})
	if r := next(t, w.control, hang); r == nil || r.kind != 200 || !r.bye || !r.name || r.sent != 3 {
		t.Errorf("the end is told as %+v", r)
	}
	silent, w := desk(t, audio.PCMU, true, &still{})
	over := make(chan struct{})
	close(over)
	silent.Run(over, nil)
	if r := next(t, w.control, 50*time.Millisecond); r != nil {
		t.Errorf("who has said nothing says goodbye: %+v", r)
	}
}

// A session on hold goes on with its reports: one last sender report, then receiver reports.
func TestReportsOnHold(t *testing.T) {
	t.Parallel()
	m, w := desk(t, audio.PCMU, true, &still{})
	m.tick(0, 0)
	m.agree(Agreement{Codec: codecOf(audio.PCMU, true), Direction: Direction{Receive: true}, Told: w.addr(),
		Signal: w.addr().Addr()}, 0)
	for i := range 1000 {
		m.tick(time.Duration(i)*frameTime, 0)
	}
	first, second := next(t, w.control, hang), next(t, w.control, hang)
	if first == nil || second == nil || first.kind != 200 || second.kind != 201 || second.blocks != 0 {
		t.Errorf("on hold %+v, %+v", first, second)
	}
	if got, _ := w.listen(hang); got == nil {
		t.Error("nothing was said before")
	}
	if got, _ := w.listen(20 * time.Millisecond); got != nil {
		t.Errorf("who is on hold is told %v", got)
	}
}

// FuzzRTCP: no input makes it fail, and the next report is well formed.
func FuzzRTCP(f *testing.F) {
	f.Add(marshal(f, &rtcp.SenderReport{SSRC: 9, NTPTime: 1 << 50,
		Reports: []rtcp.ReceptionReport{{SSRC: 7, TotalLost: 5, LastSenderReport: 1}}}))
	f.Add(marshal(f, &rtcp.ReceiverReport{SSRC: 9}, rtcp.NewCNAMESourceDescription(9, "x"),
		&rtcp.Goodbye{Sources: []uint32{9}, Reason: "tired"}))
	f.Add([]byte{0x80, 201, 0, 0})
	f.Add([]byte{0xBF, 200, 0xFF, 0xFF, 0, 0, 0, 9})
	sock := &Socket{rtp: &net.UDPConn{}, rtcp: &net.UDPConn{}}
	w := netip.MustParseAddrPort("127.0.0.1:9")
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, mux := range []bool{false, true} {
			m := NewSession(sock, audio.Narrow, false, &still{})
			m.sender.Header.SSRC = 7
			m.agree(Agreement{Codec: codecOf(audio.PCMU, true), Direction: both, Told: w, Signal: w.Addr(),
				Mux: mux}, 0)
			m.packet(packet(0, false, 1, 0, 9, make([]byte, 160)), w, 0)
			m.control(data, w, frameTime)
			m.packet(data, w, frameTime)
			m.tick(10*time.Second, 0)
			m.Stats()
			p := m.reports.in.report(time.Minute)
			if _, err := p.Marshal(); err != nil {
				t.Error(err)
			}
		}
	})
}
