package audio

import (
	"math/bits"
	"slices"
	"time"
)

// The bounds of the delay that a Jitter adds, above the quickest packet's way.
const (
	MinDelay   = 20 * time.Millisecond
	MaxDelay   = 240 * time.Millisecond
	firstDelay = 40 * time.Millisecond // until the network is known
)

// Jitter takes the sound of packets as they arrive and gives it back in frames, evenly and in order. A packet's place
// is its timestamp: what comes out of order finds its place, packets may last other than 20 ms, and pauses without
// packets are pauses. The sequence number only tells what came before already.
//
// The delay follows the network: it covers 98 % of the last 256 packets, within MinDelay and MaxDelay, and is changed
// by whole pitch periods, unheard. So a sender's clock that is fast or slow is followed too. Missing sound is
// concealed. When nothing at all has arrived, playing waits rather than losing sound, as long as the delay stays within
// MaxDelay.
type Jitter struct {
	rate, clock int64
	conceal     *Conceal

	began     bool
	sounded   bool   // something was played
	seq       uint16 // the newest
	seen      uint64 // bit i: the newest less i has come
	ssrc      uint32
	ts        uint32 // of the last packet in place
	unwrapped int64  // the same, counting on across wraps
	strayTS   uint32 // where the next packet would be if the last one began a new timeline
	stray     bool

	ring   []int16  // by position modulo its length, a power of two
	filled []uint64 // a bit for each of its samples
	// position to be played next; positions count samples since the timestamp 0 that unwrapped counts from
	next   int64
	end    int64 // behind the last sample that arrived
	packet int64 // samples in the last packet
	held   int64 // samples that were played while next waited
	calm   int   // frames since the delay was changed

	transit  [256]int32 // of the last packets: samples of arrival less position, above base
	base     int64
	count    int
	least    int64            // of transit, with base
	quickest int              // how many of them are the least
	delays   [delayBins]int16 // how many are above it by so much
	target   int64            // delay, samples
	scratch  []int16

	// Counts since the beginning.
	Late      int // packets that came after their time
	Strays    int // packets from nowhere: another timeline, not confirmed by a second packet
	Concealed int // samples that were made up while someone was speaking
}

// NewJitter serves streams whose timestamps count at clock Hz.
func NewJitter(rate Rate, clock int) *Jitter {
	size := int(rate) / 8000 * 4096 // 512 ms
	return &Jitter{rate: int64(rate), clock: int64(clock), conceal: NewConceal(rate), ring: make([]int16, size),
		filled:  make([]uint64, size/64),
		scratch: make([]int16, 5*rate.FrameSize()/2), target: int64(rate) * int64(firstDelay) / int64(time.Second)}
}

// Put takes the sound of a packet that arrived at a moment, counted from any fixed one.
func (j *Jitter) Put(at time.Duration, seq uint16, ts, ssrc uint32, pcm []int16) {
	n := int64(len(pcm))
	if n == 0 || n > int64(len(j.ring))/2 {
		return
	}
	now := j.samples(at)
	if !j.began || ssrc != j.ssrc {
		j.restart(now, seq, ts, ssrc)
	}
	unwrapped := j.unwrapped + int64(int32(ts-j.ts))
	pos := unwrapped * j.rate / j.clock
	// A second off the way that packets take is another timeline: a switch, a hold, a new sender behind the same
	// source. Two packets that fit together make it the one that counts.
	if way := now - pos - j.least; way > j.rate || way < -j.rate {
		fits := j.stray && ts == j.strayTS
		j.stray, j.strayTS = true, ts+uint32(n*j.clock/j.rate)
		if !fits {
			j.Strays++
			return
		}
		j.restart(now, seq, ts, ssrc)
		unwrapped, pos = j.unwrapped, j.unwrapped*j.rate/j.clock
	}
	if j.twice(seq) {
		return
	}
	j.stray, j.ts, j.unwrapped = false, ts, unwrapped
	j.measure(now - pos)

	if j.end <= j.next && pos > j.next { // nothing is here, and something is missing: a loss, or a pause in the speech
		next := min(pos, j.next+j.held)
		if j.conceal.Silent() {
			next = max(next, min(pos, now-j.least-max(j.target, j.ms(MinDelay))))
		}
		j.move(next)
	}
	j.held = 0
	if pos+n <= j.next {
		j.Late++
		return
	}
	if over := pos + n - j.next - int64(len(j.ring)); over > 0 { // far more at once than is ever waited for
		j.skip(max(j.next+over, pos-j.target))
	}
	early := max(0, j.next-pos) // it was to be played already
	fresh, k := pcm[early:], j.index(pos+early)
	copy(j.ring, fresh[copy(j.ring[k:], fresh):])
	j.mark(pos+early, n-early, true)
	j.end, j.packet = max(j.end, pos+n), n
}

// Delay is what it means to add now to the quickest packet's way.
func (j *Jitter) Delay() time.Duration {
	return time.Duration(j.need(j.rate/50)) * time.Second / time.Duration(j.rate)
}

// Pull fills dst, a frame, with what is to be heard at a moment of Put's clock. It says whether there is sound in it
// that arrived or was concealed; false is silence: before the first packet, and in a pause without packets.
func (j *Jitter) Pull(at time.Duration, dst Frame) bool {
	n := int64(len(dst))
	if !j.began {
		clear(dst)
		return false
	}
	delay := j.samples(at) - j.next - j.least // as it would be for this frame
	if j.end > j.next && delay > j.ms(MaxDelay)+n {
		j.skip(max(j.next, min(j.next+delay-j.target, j.end-n))) // was not pulled for a while
		delay = j.samples(at) - j.next - j.least
	}
	j.calm++
	if j.calm > 2 && j.stretch(delay, dst) {
		j.calm = 0
		return true
	}
	advance := n
	if here := max(j.end-j.next, 0); here < n && delay+n-here <= j.ms(MaxDelay) {
		advance = here // the rest may still come
		j.held += n - here
	}
	heard := false
	for i := int64(0); i < n; {
		run, here := j.run(j.next+i, n-i)
		part := dst[i : i+run]
		if here {
			j.copy(part, j.next+i)
			j.conceal.Good(part)
			j.sounded = true
			heard = true
		} else {
			heard = j.lose(part) || heard
		}
		i += run
	}
	j.move(j.next + advance)
	return heard
}

// twice says whether a packet came before, of the last 64.
func (j *Jitter) twice(seq uint16) bool {
	ahead := int16(seq - j.seq)
	if ahead > 0 {
		j.seq, j.seen = seq, j.seen<<min(ahead, 64)
		ahead = 0
	}
	if ahead <= -64 {
		return false
	}
	bit := uint64(1) << -ahead
	again := j.seen&bit != 0
	j.seen |= bit
	return again
}

func (j *Jitter) lose(dst []int16) bool {
	if !j.sounded {
		clear(dst)
		return false
	}
	j.conceal.Lost(dst)
	if j.conceal.Silent() {
		return false
	}
	j.Concealed += len(dst)
	return true
}

// need is the delay at which a frame's packets are there in time. Where frames and packets don't begin together, the
// last packet that a frame needs is sent so much later.
func (j *Jitter) need(n int64) int64 {
	extra := n
	if j.packet > 0 && n%j.packet == 0 {
		first := ((j.end-j.next)%j.packet + j.packet) % j.packet // into the frame
		extra = first
		if first > 0 || j.packet < n {
			extra = first + (n-1-first)/j.packet*j.packet
		}
	}
	return min(max(j.target+extra, j.ms(MinDelay)), j.ms(MaxDelay)-n)
}

// stretch plays a frame in more or less time than it lasts, by one pitch period, when the delay is off by that much.
func (j *Jitter) stretch(delay int64, dst Frame) bool {
	n, c := int64(len(dst)), j.conceal
	need := j.need(n)
	shorter := delay > need+n
	longer := delay < need-n/8 && delay < j.ms(MaxDelay)-n
	if c.lost > 0 || !shorter && !longer {
		return false
	}
	most := n / 2
	want := n
	if shorter {
		want = n + most
	}
	if run, here := j.run(j.next, want); !here || run < want {
		return false
	}
	j.copy(j.scratch[:want], j.next)
	x := j.scratch[:n]
	var y []int16 // what x goes over into: itself, a period on or back
	lag := int64(0)
	if shorter {
		lag = int64(pitch(j.scratch[:want], int(n)/8, int(most), int(n)/2))
		y = j.scratch[lag:]
	} else {
		back := j.scratch[n : 2*n+most]
		copy(back, c.history[int64(len(c.history))-most:])
		copy(back[most:], x)
		lag = int64(pitch(back, int(n)/8, int(most), int(n)/2))
		y = back[most-lag:]
	}
	for i := range dst {
		w := float32(i+1) / float32(n)
		dst[i] = clip32((1-w)*float32(x[i]) + w*float32(y[i]))
	}
	c.remember(dst)
	if longer {
		lag = -lag
	}
	j.move(j.next + n + lag)
	return true
}

// restart begins a timeline at a packet that arrives now.
func (j *Jitter) restart(now int64, seq uint16, ts, ssrc uint32) {
	clear(j.filled)
	j.began, j.stray, j.ssrc, j.ts, j.unwrapped = true, false, ssrc, ts, int64(ts)
	pos := j.unwrapped * j.rate / j.clock
	j.count, j.held, j.least, j.base, j.quickest = 0, 0, now-pos, now-pos, 0
	clear(j.delays[:])
	j.seq, j.seen = seq, 0
	j.next, j.end = pos-j.target, pos-j.target
}

// skip goes to another position in the middle of the sound, and has the seam blended.
func (j *Jitter) skip(next int64) {
	if j.sounded {
		j.conceal.Seam()
	}
	j.move(next)
}

// move goes to another position, forgetting what lies before it.
func (j *Jitter) move(next int64) {
	first := max(j.next, next-int64(len(j.ring)))
	j.mark(first, next-first, false)
	j.next = next
}

const (
	delayBins = 64
	binsOf    = 200 // in a second: bins are of 5 ms
)

// measure takes the way of another packet and sets the delay by those of the last ones.
func (j *Jitter) measure(transit int64) {
	i, t := j.count%len(j.transit), int32(transit-j.base)
	old, full := j.transit[i], j.count >= len(j.transit)
	j.transit[i] = t
	j.count++
	known := j.transit[:min(j.count, len(j.transit))]
	low := int32(j.least - j.base)
	if full && old == low {
		j.quickest--
	}
	if t == low {
		j.quickest++
	}
	if t < low || j.quickest == 0 { // the least is another
		low, j.quickest = slices.Min(known), 0
		j.least = j.base + int64(low)
		clear(j.delays[:])
		for _, t := range known {
			j.delays[j.bin(t-low)]++
			if t == low {
				j.quickest++
			}
		}
	} else {
		if full {
			j.delays[j.bin(old-low)]--
		}
		j.delays[j.bin(t-low)]++
	}
	late, bin := len(known)/50, delayBins-1
	for ; bin > 0 && int(j.delays[bin]) <= late; bin-- {
		late -= int(j.delays[bin])
	}
	j.target = min(int64(bin+1)*j.rate/binsOf, j.ms(MaxDelay))
	if j.count < 50 {
		j.target = max(j.target, j.ms(firstDelay))
	}
}

func (j *Jitter) bin(above int32) int { return int(min(int64(above)*binsOf/j.rate, delayBins-1)) }

func (j *Jitter) ms(d time.Duration) int64 { return d.Milliseconds() * j.rate / 1000 }

func (j *Jitter) samples(at time.Duration) int64 { return int64(at) / (int64(time.Second) / j.rate) }

func (j *Jitter) index(pos int64) int { return int(pos) & (len(j.ring) - 1) }

// mark says of n samples from a position on whether they are here.
func (j *Jitter) mark(pos, n int64, here bool) {
	for n > 0 {
		k := j.index(pos)
		m := min(n, int64(64-k%64))
		mask := ^uint64(0) >> (64 - m) << (k % 64)
		if here {
			j.filled[k/64] |= mask
		} else {
			j.filled[k/64] &^= mask
		}
		pos, n = pos+m, n-m
	}
}

// run is how many samples from a position on, of n, are here, or are not.
func (j *Jitter) run(pos, n int64) (length int64, here bool) {
	for k := j.index(pos); length < n; k = j.index(pos + length) {
		word, left := j.filled[k/64]>>(k%64), 64-k%64
		if length == 0 {
			here = word&1 == 1
		}
		if here {
			word = ^word
		}
		same := min(bits.TrailingZeros64(word), left)
		length += int64(same)
		if same < left {
			break
		}
	}
	return min(length, n), here
}

// copy takes the samples from a position on.
func (j *Jitter) copy(dst []int16, pos int64) { copy(dst[copy(dst, j.ring[j.index(pos):]):], j.ring) }
