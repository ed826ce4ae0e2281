package rtp

import "time"

// timeline reads the timestamps of a source's sound. Those of some senders stand still while their packets go on: then
// the packets' lengths make the time, as far as no more sound comes than time passes.
type timeline struct {
	began bool
	ssrc  uint32
	seq   uint16
	ts    uint32 // as it came
	next  uint32 // of the sound after the last packet
	add   uint32 // to what comes
	still int    // packets in a row whose timestamp was that of the one before
	count int    // packets that were given another one
	flood flood
}

// stuck is how many packets in a row with one timestamp are no accident.
const stuck = 3

// read is the timestamp of a packet of so many ticks; ok is false for sound that is too much.
func (l *timeline) read(seq uint16, ts, ssrc, ticks uint32, clock int, at time.Duration) (out uint32, ok bool) {
	ahead := seq - l.seq
	if !l.began || ssrc != l.ssrc {
		*l = timeline{began: true, ssrc: ssrc, count: l.count, flood: l.flood}
	} else if ahead == 0 || ahead > 1<<15 { // again, or late
		return ts + l.add, true
	} else if ts != l.ts {
		l.still = 0
	} else if l.still++; l.still >= stuck {
		want := l.next + uint32(ahead-1)*ticks
		l.add += want - (ts + l.add)
		l.count++
		ok := l.flood.takes(time.Duration(ticks)*time.Second/time.Duration(clock), at)
		l.seq, l.next = seq, want+ticks
		return want, ok
	}
	l.seq, l.ts, l.next = seq, ts, ts+l.add+ticks
	return ts + l.add, true
}
