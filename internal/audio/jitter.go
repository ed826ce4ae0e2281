package audio

import "time"

// The bounds of the delay that a Jitter adds, above the quickest packet's way.
const (
	MinDelay   = 20 * time.Millisecond
	MaxDelay   = 240 * time.Millisecond
	firstDelay = 40 * time.Millisecond // until the network is known
)

// Jitter takes the sound of packets as they arrive and gives it back in frames, evenly and in order. A packet's place is its timestamp: what
// comes out of order finds its place, packets may last other than 20 ms, and pauses without packets are pauses. The sequence number only
// tells what came before already.
//
// The delay follows the network: it covers 98 % of the last 256 packets, within MinDelay and MaxDelay, and is changed by whole pitch
// periods, unheard. So a sender's clock that is fast or slow is followed too. What is missing is concealed. When nothing has arrived at
// all, playing waits for it rather than losing it, as long as that keeps the delay within MaxDelay.
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

	ring   []int16 // by position modulo its length, a power of two
	filled []bool
	next   int64 // position to be played next; positions count samples since the timestamp 0 that unwrapped counts from
	end    int64 // behind the last sample that arrived
	packet int64 // samples in the last packet
	held   int64 // samples that were played while next waited
	calm   int   // frames since the delay was changed

	transit [256]int64 // of the last packets: samples of arrival less position
	count   int
	least   int64 // of transit
	target  int64 // delay, samples
	scratch []int16

	// Counts since the beginning.
	Late      int // packets that came after their time
	Strays    int // packets from nowhere: another timeline, not confirmed by a second packet
	Concealed int // samples that were made up while someone was speaking
}

// NewJitter serves streams whose timestamps count at clock Hz.
func NewJitter(rate Rate, clock int) *Jitter {
	size := int(rate) / 8000 * 4096 // 512 ms
	return &Jitter{rate: int64(rate), clock: int64(clock), conceal: NewConceal(rate), ring: make([]int16, size), filled: make([]bool, size),
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
	// A second off the way that packets take is another timeline: a switch, a hold, a new sender behind the same source. Two packets that
	// fit together make it the one that counts.
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
	for i, s := range pcm {
		if p := pos + int64(i); p >= j.next {
			k := int(p) & (len(j.ring) - 1)
			j.ring[k], j.filled[k] = s, true
		}
	}
	j.end, j.packet = max(j.end, pos+n), n
}

// Delay is what it means to add now to the quickest packet's way.
func (j *Jitter) Delay() time.Duration {
	return time.Duration(j.need(j.rate/50)) * time.Second / time.Duration(j.rate)
}

// Pull fills dst, a frame, with what is to be heard at a moment of Put's clock. It says whether there is sound in it that arrived or was
// concealed; false is silence: before the first packet, and in a pause without packets.
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
		run := i
		has := j.filled[j.index(j.next+run)]
		for run < n && j.filled[j.index(j.next+run)] == has {
			run++
		}
		part := dst[i:run]
		if has {
			for k := range part {
				part[k] = j.ring[j.index(j.next+i+int64(k))]
			}
			j.conceal.Good(part)
			j.sounded = true
			heard = true
		} else {
			heard = j.lose(part) || heard
		}
		i = run
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

// need is the delay at which a frame's packets are there in time. Where frames and packets don't begin together, the last packet that a
// frame needs is sent so much later.
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
	for i := range want {
		k := j.index(j.next + i)
		if !j.filled[k] {
			return false
		}
		j.scratch[i] = j.ring[k]
	}
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
	j.count, j.held, j.least = 0, 0, now-pos
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
	for p := max(j.next, next-int64(len(j.ring))); p < next; p++ {
		j.filled[j.index(p)] = false
	}
	j.next = next
}

// measure takes the way of another packet and sets the delay by those of the last ones.
func (j *Jitter) measure(transit int64) {
	j.transit[j.count%len(j.transit)] = transit
	j.count++
	known := j.transit[:min(j.count, len(j.transit))]
	j.least = transit
	for _, t := range known {
		j.least = min(j.least, t)
	}
	const bins, perBin = 64, 200 // of 5 ms
	var histogram [bins]int
	for _, t := range known {
		histogram[min((t-j.least)*perBin/j.rate, bins-1)]++
	}
	late, bin := len(known)/50, bins-1
	for ; bin > 0 && histogram[bin] <= late; bin-- {
		late -= histogram[bin]
	}
	j.target = min(int64(bin+1)*5*j.rate/1000, j.ms(MaxDelay))
	if j.count < 50 {
		j.target = max(j.target, j.ms(firstDelay))
	}
}

func (j *Jitter) ms(d time.Duration) int64 { return d.Milliseconds() * j.rate / 1000 }

func (j *Jitter) samples(at time.Duration) int64 { return int64(at) / (int64(time.Second) / j.rate) }

func (j *Jitter) index(pos int64) int { return int(pos) & (len(j.ring) - 1) }
