package audio

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// network is what happens to packets on their way. Times are in milliseconds.
type network struct {
	name  string
	ptime int                                // packet length, 20 unless set
	way   func(r *rand.Rand, at int) float64 // delay of a packet sent at a moment; -1: it is lost
	twice float64                            // share of packets that arrive twice
	drift float64                            // of the sender's clock, in parts per million
	// where the timestamps jump or the source changes; nil: they count up, starting near the wrap
	ts        func(at int) (ts, ssrc uint32)
	paused    func(at int) bool // no packets are sent: a pause in the speech
	concealed float64           // the largest share of the sound that may be made up
	delay     float64           // the largest delay at the end
	least     float64           // the smallest delay at the end
}

func steady(*rand.Rand, int) float64 { return 40 }

var networks = []network{
	{name: "perfect", way: steady, concealed: 0, delay: 45},
	{name: "10 ms packets", ptime: 10, way: steady, concealed: 0, delay: 45},
	{name: "30 ms packets", ptime: 30, way: steady, concealed: 0, delay: 45},
	{name: "60 ms packets", ptime: 60, way: steady, concealed: 0, delay: 65},
	{name: "all twice", way: steady, twice: 1, concealed: 0, delay: 45},
	{name: "5 % lost", way: lossy(0.05), concealed: 0.065, delay: 65},
	{name: "30 % lost", way: lossy(0.3), concealed: 0.35, delay: 65},
	{name: "even jitter of 40 ms", way: func(r *rand.Rand, _ int) float64 { return 40 + 40*r.Float64() },
		concealed: 0.02, delay: 80, least: 35},
	{name: "even jitter of 120 ms, out of order", way: func(r *rand.Rand,
		_ int) float64 {
		return 20 + 120*r.Float64()
	}, concealed: 0.03, delay: 160, least: 100},
	{name: "exponential jitter", way: func(r *rand.Rand, _ int) float64 { return 30 + 15*r.ExpFloat64() },
		twice: 0.1, concealed: 0.04, delay: 120, least: 40},
	{name: "calm after jitter", way: func(r *rand.Rand, at int) float64 {
		if at < 8000 {
			return 40 + 100*r.Float64()
		}
		return 40
	}, concealed: 0.03, delay: 45},
	{name: "a sender that is slow", way: steady, drift: -500, concealed: 0.002, delay: 60},
	{name: "a sender that is fast", way: steady, drift: 500, concealed: 0.002, delay: 60},
	// every four seconds all packets wait for the last of them
	{name: "stalls of 200 ms", way: func(_ *rand.Rand, at int) float64 {
		if in := at % 4000; in < 200 && at > 4000 {
			return float64(240 - in)
		}
		return 40
	}, concealed: 0.045, delay: 240},
	{name: "a stall of a second", way: func(_ *rand.Rand, at int) float64 {
		if in := at - 9000; in >= 0 && in < 1000 {
			return float64(1040 - in)
		}
		return 40
	}, concealed: 0.03, delay: 245},
	{name: "another route, 100 ms longer", way: func(_ *rand.Rand, at int) float64 {
		if at > 6000 {
			return 140
		}
		return 40
	}, concealed: 0.02, delay: 45},
	{name: "timestamps jump", way: steady, ts: func(at int) (uint32,
		uint32) {
		return uint32(at/5000)*1e9 + uint32(at*8), 1
	}, concealed: 0.03, delay: 45},
	{name: "the source changes", way: steady, ts: func(at int) (uint32, uint32) {
		return uint32(at * 8),
			uint32(at / 5000)
	}, concealed: 0.03, delay: 45},
	{name: "pauses without packets", way: func(r *rand.Rand, _ int) float64 { return 40 + 20*r.Float64() },
		paused: func(at int) bool { return at%3000 > 1200 }, concealed: 0.06, delay: 65},
}

func lossy(share float64) func(*rand.Rand, int) float64 {
	return func(r *rand.Rand, _ int) float64 {
		if r.Float64() < share {
			return -1
		}
		return 40
	}
}

// TestJitter sends 20 seconds of a steady tone through each network. No more than the stated share of the output is
// made up, and the delay at the end is no longer than the network requires.
func TestJitter(t *testing.T) {
	for _, net := range networks {
		for _, rate := range []Rate{Narrow, Wide} {
			for seed := range uint64(3) {
				j, out, sent, span := net.run(rate, seed)
				share := float64(j.Concealed) / float64(sent)
				if share > net.concealed {
					t.Errorf("%s, %d Hz, seed %d: %.2f %% are made up, %d packets late", net.name, rate, seed,
						100*share, j.Late)
				}
				if span < net.least || span > net.delay {
					t.Errorf("%s, %d Hz, seed %d: the delay is %.0f ms at the end, want %v to %v", net.name, rate,
						seed, span, net.least, net.delay)
				}
				if len(out) != 1000*rate.FrameSize() {
					t.Fatalf("%d samples", len(out))
				}
				// At 8 kHz a tone of 200 Hz and amplitude 8000 changes by at most 1257 a sample; seams are at most one
				// and a half times as steep.
				for i, steepest := 1, 1257*1.6*8000/float64(rate); i < len(out); i++ {
					if step := math.Abs(float64(out[i]) - float64(out[i-1])); step > steepest && net.ts == nil {
						t.Errorf("%s, %d Hz, seed %d: a click of %.0f at %d ms", net.name, rate, seed, step,
							i*1000/int(rate))
						break
					}
				}
			}
		}
	}
}

// run returns the buffer at the end, what was heard, how many samples were sent, and the delay over the last three
// seconds in ms.
func (net network) run(rate Rate, seed uint64) (j *Jitter, out []int16, sent int, delay float64) {
	type arrival struct {
		at       float64 // ms
		seq      uint16
		ts, ssrc uint32
		pcm      []int16
	}
	r := rand.New(rand.NewPCG(seed, 3))
	ptime := cmp.Or(net.ptime, 20)
	perMS := int(rate) / 1000
	var line []arrival
	const length = 20000
	for at := 0; at < length; at += ptime {
		pcm := make([]int16, ptime*perMS)
		for i := range pcm {
			pcm[i] = int16(8000 * math.Sin(2*math.Pi*200*float64(at*perMS+i)/float64(rate)))
		}
		if net.paused != nil && net.paused(at) {
			continue
		}
		sent += len(pcm)
		way := net.way(r, at)
		again := r.Float64() < net.twice
		if way < 0 {
			continue
		}
		a := arrival{float64(at)*(1-net.drift*1e-6) + way, uint16(at/ptime + 65000), uint32(at)*8 + 0xFFFFF000, 1, pcm}
		if net.ts != nil {
			a.ts, a.ssrc = net.ts(at)
		}
		line = append(line, a)
		if again {
			a.at += 30 * r.Float64()
			line = append(line, a)
		}
	}
	slices.SortStableFunc(line, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	j = NewJitter(rate, 8000)
	var delays []float64
	frame := make(Frame, rate.FrameSize())
	for tick := 0; tick < length; tick += 20 {
		at := float64(tick) + 7.3
		for len(line) > 0 && line[0].at <= at {
			j.Put(time.Duration(line[0].at*1e6), line[0].seq, line[0].ts, line[0].ssrc, slices.Clone(line[0].pcm))
			line = line[1:]
		}
		j.Pull(time.Duration(at*1e6), frame)
		out = append(out, frame...)
		if len(line) == 0 || tick < length-3000 || net.paused != nil && net.paused(tick-80) {
			continue
		}
		delays = append(delays, float64(j.samples(time.Duration(at*1e6))-j.next+int64(len(frame))-j.least)/float64(
			perMS))
	}
	slices.Sort(delays)
	return j, out, sent, delays[len(delays)/2]
}

// TestJitterExact: on a perfect network the output is the input.
func TestJitterExact(t *testing.T) {
	in := speech(t, "slt", Narrow)
	j, frame := NewJitter(Narrow, 8000), make(Frame, 160)
	var out []int16
	for i := 0; i+160 <= len(in); i += 160 {
		at := time.Duration(i) * time.Second / 8000
		j.Put(at+time.Millisecond, uint16(i/160), uint32(i), 1, in[i:i+160])
		if heard := j.Pull(at+5*time.Millisecond, frame); heard != (i >= 320) {
			t.Fatalf("sound at %v: %v", at, heard)
		}
		out = append(out, frame...)
	}
	// 40 ms at first; 20 ms once the network has been measured.
	if !slices.Equal(out[320:7840], in[:7520]) {
		t.Error("the beginning is changed")
	}
	if n := len(out); !slices.Equal(out[n-8000:], in[n-8000-160-j.shift(n):n-160-j.shift(n)]) {
		t.Errorf("the end is changed, or is not %v behind", MinDelay)
	}
}

// shift is how many samples the delay is above MinDelay after n were pulled.
func (j *Jitter) shift(n int) int { return n - int(j.next) - 160 }

// TestJitterBounds: whatever arrives, the delay stays bounded, and there is silence when nothing arrives.
func TestJitterBounds(t *testing.T) {
	j, frame := NewJitter(Wide, 8000), make(Frame, 320)
	if j.Pull(0, frame) {
		t.Error("sound before the first packet")
	}
	for i := range 100 { // two seconds arrive at once
		j.Put(time.Second, uint16(i), uint32(i*160), 1, whiteNoise(1, 9000, 320))
	}
	for tick := range 100 {
		at := time.Second + time.Duration(tick)*FrameTime
		j.Pull(at, frame)
		if delay := j.samples(at) - j.next - j.least; delay > 16*260 {
			t.Fatalf("the delay is %d ms", delay/16)
		}
	}
	if j.Pull(4*time.Second, frame) || Level(frame) > -99 {
		t.Error("sound after a second without packets")
	}
	j.Put(4*time.Second, 0, 0, 1, make([]int16, 100000)) // longer than the buffer holds
	j.Put(4*time.Second, 0, 0, 1, nil)
	pcm := whiteNoise(1, 9000, 320)
	at := 5 * time.Second
	ts := uint32(0)
	quiet(t, "jitter buffer", func() {
		at, ts = at+FrameTime, ts+160
		if ts%1600 != 0 {
			j.Put(at, uint16(ts/160), ts, 1, pcm)
		}
		j.Pull(at, frame)
	})
}

func FuzzJitter(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 20, 160, 1, 0, 40, 0, 2, 1, 255, 255, 255, 3, 7, 0, 128, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		j, frame, pcm := NewJitter(Narrow, 8000), make(Frame, 160), whiteNoise(1, 9000, 480)
		var at time.Duration
		ts := uint32(0)
		for ; len(data) >= 5; data = data[5:] {
			at += time.Duration(data[0]) * time.Millisecond
			switch data[1] % 4 {
			case 0:
				ts += uint32(data[2])
			case 1:
				ts -= uint32(data[2])
			case 2:
				ts += uint32(data[2]) << 12
			case 3:
				ts += uint32(data[2]) << 24
			}
			j.Put(at, uint16(data[3])>>1, ts, uint32(data[3]&1), slices.Clone(pcm[:int(data[4])%len(pcm)]))
			if j.Pull(at, frame); j.Delay() > MaxDelay || j.Delay() < MinDelay {
				t.Fatalf("the delay wanted is %v", j.Delay())
			}
			if j.end > j.next && j.end-j.next > int64(len(j.ring)) {
				t.Fatalf("%d samples wait in a buffer of %d", j.end-j.next, len(j.ring))
			}
		}
		// Whatever came before, a good stream is heard within two seconds, with a bounded delay.
		heard := 0
		for i := range 150 {
			at, ts = at+FrameTime, ts+160
			j.Put(at, uint16(i), ts, 9, slices.Clone(pcm[:160]))
			if j.Pull(at, frame) {
				heard++
			}
			if delay := j.samples(at) - j.next - j.least; delay > 8*280 {
				t.Fatalf("the delay is %d ms", delay/8)
			}
		}
		if heard < 100 {
			t.Fatalf("%d frames of 150 of a good stream are heard", heard)
		}
	})
}

// TestConceal removes 20 ms from a tone and from speech, and 200 ms.
func TestConceal(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		for _, hz := range []float64{110, 200, 330} {
			n := rate.FrameSize()
			in := tone(int(rate), hz, 8000, 20*n)
			c, out := NewConceal(rate), slices.Clone(in)
			for i := range 20 {
				if f := out[i*n : (i+1)*n]; i == 9 {
					c.Lost(f)
				} else {
					c.Good(f)
				}
			}
			for i := range in {
				in[i] -= out[i]
			}
			if got := level(in[9*n:11*n]) - level(tone(int(rate), hz, 8000, n)); got > -10 {
				t.Errorf("%v Hz at %d Hz: what is made up differs by %.1f dB", hz, rate, got)
			}
			if level(in[:9*n]) > -99 || level(in[12*n:]) > -99 {
				t.Error("what arrived is changed")
			}
		}
		in := speech(t, "rms", rate)
		n := rate.FrameSize()
		c := NewConceal(rate)
		for i := n; i < 40*n; i += n {
			c.Good(in[i : i+n])
		}
		before, gap := level(in[37*n:40*n]), make([]int16, 10*n)
		c.Lost(gap)
		if got := level(gap[:n]); got > before+3 || got < before-10 {
			t.Errorf("20 ms are made up at %.1f dBFS after %.1f dBFS", got, before)
		}
		if !c.Silent() || level(gap[4*n:]) > -99 {
			t.Error("it doesn't fade away")
		}
		quiet(t, "concealment", func() { c.Good(gap[:n]); c.Lost(gap[:n]) })
	}
}

func BenchmarkJitter(b *testing.B) {
	for _, c := range []struct {
		name string
		keep uint32
	}{{"clean", 0}, {"lossy", 4}} {
		b.Run(c.name, func(b *testing.B) {
			j, frame, pcm := NewJitter(Wide, 8000), make(Frame, 320), whiteNoise(1, 9000, 320)
			at, ts := time.Duration(0), uint32(0)
			for b.Loop() {
				at, ts = at+FrameTime, ts+160
				if c.keep == 0 || ts/160%c.keep != 0 {
					j.Put(at, uint16(ts/160), ts, 1, pcm)
				}
				j.Pull(at, frame)
			}
		})
	}
}

// The running counts of delays equal a fresh count of the last 256 packets.
func TestJitterCounts(t *testing.T) {
	j := NewJitter(Narrow, 8000)
	r := rand.New(rand.NewPCG(5, 6))
	j.restart(0, 0, 0, 1)
	for n := range 5000 {
		way := int64(r.ExpFloat64()*200) + int64(n/50) // the sender's clock runs slow
		if n == 0 {
			way = 0 // as after restart
		}
		j.measure(way)
		known := j.transit[:min(j.count, len(j.transit))]
		var want [delayBins]int16
		for _, at := range known {
			want[j.bin(at-slices.Min(known))]++
		}
		if j.delays != want || j.least != j.base+int64(slices.Min(known)) {
			t.Fatalf("packet %d: %v, want %v", n, j.delays, want)
		}
	}
}
