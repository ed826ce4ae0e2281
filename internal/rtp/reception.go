package rtp

import (
	"cmp"
	"time"

	"github.com/pion/rtcp"
)

// rtpClock is the rate of the timestamps of everything but Opus, Hz.
const rtpClock = 8000

// reception counts received packets (RFC 3550, appendix A), of one source at a time. The first packet already counts:
// strangers' packets don't get here.
type reception struct {
	source
	clock  int                          // of the timestamps, Hz; 0: rtpClock
	before struct{ received, lost int } // of sources that are gone, and of what this one sent before it began anew
}

// source is who is heard.
type source struct {
	ssrc     uint32
	began    bool
	first    uint16
	newest   uint16
	cycles   uint32 // of the sequence numbers, shifted up
	bad      uint32 // the sequence number that would confirm a jump
	received uint32
	twice    uint32 // of these, packets that had come before
	window   uint64 // which of the newest 64 came: the newest is bit 0

	// As they were at the last report.
	hadExpected, hadReceived uint32

	transit int32 // of the last packet, ticks
	jitter  int32 // 16 times the estimate, ticks
	timed   bool

	sent   uint32        // the middle of the NTP time in the source's last report
	sentAt time.Duration // when that came
}

const (
	maxDropout = 3000 // packets that may be missing in a row
	maxOrder   = 100  // by how much a packet may come late
)

// packet counts one (A.1). timed is false if its timestamp isn't the time of sending: all packets of a key have the
// same.
func (r *reception) packet(seq uint16, ts, ssrc uint32, at time.Duration, timed bool) {
	if ssrc != r.ssrc {
		r.leave()
		r.source = source{ssrc: ssrc}
	}
	switch ahead := seq - r.newest; {
	case !r.began:
		r.begin(seq)
	case ahead < maxDropout:
		if seq < r.newest {
			r.cycles += 1 << 16
		}
		r.newest = seq
		if ahead == 0 {
			r.twice++
		} else {
			r.window = r.window<<ahead | 1
		}
	case ahead <= 1<<16-maxOrder:
		if uint32(seq) != r.bad {
			r.bad = uint32(seq + 1)
			return
		}
		r.leave()
		r.begin(seq) // two in order: the source has begun anew without saying so
	default:
		r.late(r.newest - seq)
	}
	r.received++
	if timed {
		r.measure(ts, at)
	}
}

// late notes a packet that came after newer ones. One that is too old to be known is taken for a new one.
func (r *source) late(behind uint16) {
	if behind < 64 && r.window>>behind&1 == 1 {
		r.twice++
	} else if behind < 64 {
		r.window |= 1 << behind
	}
}

func (r *reception) begin(seq uint16) {
	r.source = source{ssrc: r.ssrc, began: true, first: seq, newest: seq, bad: 1 << 16, window: 1, sent: r.sent,
		sentAt: r.sentAt, jitter: r.jitter}
}

// leave keeps the counts of a source that is over: a packet that came twice is one, and makes up for none that is lost.
func (r *reception) leave() {
	if r.began {
		came := int(r.received - r.twice)
		r.before.received += came
		r.before.lost += max(int(r.expected())-came, 0)
	}
}

// measure adds a packet's transit time to the jitter (A.8).
func (r *reception) measure(ts uint32, at time.Duration) {
	clock := cmp.Or(r.clock, rtpClock)
	transit := int32(ticks(at, clock) - ts)
	if d := transit - r.transit; r.timed {
		if d < 0 {
			d = -d
		}
		r.jitter += min(d, int32(clock)) - (r.jitter+8)>>4 // a jump of the timestamps is no jitter of years
	}
	r.transit, r.timed = transit, true
}

// tell sets the clock of what comes from now on.
func (r *reception) tell(clock int) {
	if clock != cmp.Or(r.clock, rtpClock) {
		r.clock, r.jitter, r.timed = clock, 0, false
	}
}

func ticks(d time.Duration, clock int) uint32 {
	return uint32(int64(d/time.Microsecond) * int64(clock) / int64(time.Second/time.Microsecond))
}

func (r *source) expected() uint32 { return r.cycles + uint32(r.newest) - uint32(r.first) + 1 }

// lost is how many did not arrive, as reports count: it is negative if packets came twice.
func (r *source) lost() int { return int(r.expected()) - int(r.received) }

// report is the report to the source, made once every interval (A.3).
func (r *source) report(at time.Duration) rtcp.ReceptionReport {
	expected, received := r.expected()-r.hadExpected, r.received-r.hadReceived
	r.hadExpected, r.hadReceived = r.expected(), r.received
	p := rtcp.ReceptionReport{SSRC: r.ssrc, LastSequenceNumber: r.cycles + uint32(r.newest),
		Jitter:    uint32(r.jitter >> 4),
		TotalLost: uint32(min(max(r.lost(), -1<<23), 1<<23-1)) & 0xFFFFFF}
	if expected > received {
		p.FractionLost = uint8(min((expected-received)<<8/expected, 255))
	}
	if r.sent != 0 {
		p.LastSenderReport, p.Delay = r.sent, fraction(at-r.sentAt)
	}
	return p
}

// fraction is a duration in 1/65536 s.
func fraction(d time.Duration) uint32 { return uint32(int64(d) << 16 / int64(time.Second)) }

// ntp is a moment in NTP format: seconds since 1900, and their fraction.
func ntp(t time.Time) uint64 {
	const to1970 = 2_208_988_800
	return uint64(t.Unix()+to1970)<<32 | uint64(t.Nanosecond())<<32/uint64(time.Second)
}

// middle is the part of an NTP time that reports return.
func middle(ntp uint64) uint32 { return uint32(ntp >> 16) }

// roundTrip is the round trip time by a report that arrives now; it is false if the report says nothing about it, or
// something impossible.
func roundTrip(now uint64, p rtcp.ReceptionReport) (time.Duration, bool) {
	way := int32(middle(now) - p.LastSenderReport - p.Delay)
	if p.LastSenderReport == 0 || way < 0 {
		return 0, false
	}
	return time.Duration(int64(way) * int64(time.Second) >> 16), true
}

// interval is the time until the next report (RFC 3550, section 6.3.1), given a random number in [0, 1). Between two
// speakers over 64 kbit/s the RFC's minimum is always more than what the bandwidth asks for.
func interval(first bool, random float64) time.Duration {
	least := 5 * time.Second
	if first {
		least /= 2
	}
	return time.Duration(float64(least) * (0.5 + random) / 1.21828)
}
