package rtp

import (
	"crypto/rand"
	mrand "math/rand/v2"
	"net/netip"
	"time"

	"github.com/pion/rtcp"

	"parley/internal/crash"
)

// Stats are a session's counts so far.
type Stats struct {
	Sent, Received int           // packets
	Lost           int           // packets of the far end's that did not come; those that came twice make it less
	Jitter         time.Duration // of what comes (RFC 3550, section 6.4.1)
	RoundTrip      time.Duration // 0 until the far end has told enough to know it

	// What the far end tells of what we send.
	Reports   int // how often
	FarLost   int
	FarJitter time.Duration

	Suite      Suite          // by which sound is encrypted, "" where it is not
	Unreadable int            // packets that came and could not be decrypted
	Still      int            // packets whose timestamp stood still, so that their lengths made the time
	Strangers  int            // packets from addresses that are not the call's, which were not heard
	Stranger   netip.AddrPort // the last of these addresses
	Refused    int            // packets whose sound was not decoded: it was longer than it can be, or too much for the time that passed
}

// reports is a session's RTCP (RFC 3550, section 6): what it tells the far end about the audio, and what the far end
// tells us.
type reports struct {
	name  string // that both ends' reports know us by (RFC 7022)
	mux   bool   // they come and go where the sound does (RFC 5761)
	latch latch  // otherwise
	cover cover  // likewise, where keys are found by a handshake
	next  time.Duration
	made  int // how many were sent

	sent, octets uint32
	sentBefore   uint32 // at the last report
	in           reception

	far      rtcp.ReceptionReport // the last
	farCount int
	former   struct { // what is counted of our former sources
		sent, octets uint32
		farLost      int
	}
	roundTrip time.Duration
}

func newReports() reports {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	for i := range b {
		b[i] = digits[int(b[i])%len(digits)]
	}
	return reports{name: string(b[:]), next: interval(true, mrand.Float64())}
}

// rename has what is told of us begin anew, for another source of ours (RFC 3550, section 6.4.1). The session's own counts
// go on.
func (r *reports) rename() {
	r.former.sent, r.former.octets = r.sent, r.octets
	r.former.farLost += lostBy(r.far)
	r.far = rtcp.ReceptionReport{}
}

// lostBy is how many packets a report says were lost: a number with a sign, of 24 bits.
func lostBy(p rtcp.ReceptionReport) int { return int(int32(p.TotalLost<<8) >> 8) }

// isReport tells RTCP from RTP when both come to one port (RFC 5761, section 4).
func isReport(data []byte) bool {
	return len(data) > 1 && data[0]>>6 == 2 && data[1] >= 192 && data[1] < 224
}

// report sends what is due about every five seconds; bye makes it the last one.
func (s *Session) report(at time.Duration, bye bool) {
	r := &s.reports
	if bye && r.sent == 0 && r.made == 0 { // nobody knows us (section 6.3.7)
		return
	}
	to, conn := r.latch.to(), s.socket.rtcp
	if r.mux {
		to, conn = s.latch.to(), s.socket.rtp
	}
	if !to.IsValid() || to.Port() == 0 {
		return
	}
	var blocks []rtcp.ReceptionReport
	if r.in.received != r.in.hadReceived {
		blocks = []rtcp.ReceptionReport{r.in.report(at)}
	}
	ssrc := s.sender.Header.SSRC
	var first rtcp.Packet = &rtcp.ReceiverReport{SSRC: ssrc, Reports: blocks}
	if r.sent != r.sentBefore {
		first = &rtcp.SenderReport{SSRC: ssrc, NTPTime: ntp(s.began.Add(at)), RTPTime: s.sender.ts,
			PacketCount: r.sent - r.former.sent, OctetCount: r.octets - r.former.octets, Reports: blocks}
	}
	packets := []rtcp.Packet{first, rtcp.NewCNAMESourceDescription(ssrc, r.name)}
	if bye {
		packets = append(packets, &rtcp.Goodbye{Sources: []uint32{ssrc}})
	}
	data, err := rtcp.Marshal(packets)
	if err != nil {
		return
	}
	r.sentBefore = r.sent
	r.made++
	if c := s.reportCover(); c.on() {
		if data = c.sendReport(data); data == nil {
			return
		}
	}
	_, _ = conn.WriteToUDPAddrPort(data, to) // one that is lost is followed by another
}

// reported takes the far end's report. It ignores reports about other sources, and anything that is not a report.
func (s *Session) reported(data []byte, at time.Duration) {
	r := &s.reports
	packets, err := rtcp.Unmarshal(data)
	if err != nil {
		return
	}
	now := ntp(s.began.Add(at))
	for _, p := range packets {
		var blocks []rtcp.ReceptionReport
		switch p := p.(type) {
		case *rtcp.SenderReport:
			blocks = p.Reports
			if r.in.began && p.SSRC == r.in.ssrc {
				r.in.sent, r.in.sentAt = middle(p.NTPTime), at
			}
		case *rtcp.ReceiverReport:
			blocks = p.Reports
		}
		for _, b := range blocks {
			if b.SSRC != s.sender.Header.SSRC {
				continue
			}
			r.far = b
			r.farCount++
			if d, ok := roundTrip(now, b); ok {
				r.roundTrip = d
			}
		}
	}
}

// readable is a received report, decrypted if audio is encrypted; nil if it is not the far end's.
func (s *Session) readable(data []byte) []byte {
	if c := s.reportCover(); c.on() {
		return c.report(data)
	}
	return data
}

// reportCover is what encrypts reports: what encrypts the sound, unless their port has had a handshake of its own.
func (s *Session) reportCover() *cover {
	if s.shaking[true] != nil {
		return &s.reports.cover
	}
	return &s.cover
}

// control takes what came to RTCP's own port. Its source is judged like that of the audio.
func (s *Session) control(data []byte, from netip.AddrPort, at time.Duration) {
	defer crash.Contain(s.crashed)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.reports
	if crash.Is(s.failed) {
		return
	}
	if isHandshake(data) {
		s.feed(data, from, at, true)
		return
	}
	if !isReport(data) || r.mux {
		return
	}
	if data = s.readable(data); data != nil && r.latch.accept(from, at, 0, 0) {
		s.reported(data, at)
	}
}

// Stats returns the counts so far, or the final ones after the session's end.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.reports
	in := r.in // with what is counted of the source that is heard now
	in.leave()
	clock := s.codec.Format.ClockRate()
	return Stats{Sent: int(r.sent), Received: in.before.received, Lost: in.before.lost,
		Jitter:    inTime(uint32(in.jitter>>4), clock),
		RoundTrip: r.roundTrip, Reports: r.farCount, FarLost: r.former.farLost + lostBy(r.far),
		FarJitter: inTime(r.far.Jitter, clock), Suite: s.cover.suite(), Unreadable: s.cover.unreadable,
		Refused: s.flood.refused + s.timeline.flood.refused, Still: s.timeline.count,
		Strangers: s.latch.strangers, Stranger: s.latch.stranger}
}

func inTime(ticks uint32, clock int) time.Duration {
	return time.Duration(ticks) * time.Second / time.Duration(clock)
}
