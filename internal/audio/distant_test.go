package audio

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// besideShare is how many of the frames of a sound that are taken for speech are taken for somebody else's, where somebody
// spoke before, or nobody.
func besideShare(t *testing.T, rate Rate, before, sound []float64) float64 {
	from := 24000 + len(before)
	x := slices.Concat(make([]float64, 8000), before, make([]float64, 16000), sound, make([]float64, 12000))
	r := rand.New(rand.NewPCG(1, 7))
	line := make([]int16, len(x)/320*320)
	for i := range line {
		line[i] = clip(32768*Gain(-24)*x[i] + 10*r.NormFloat64())
	}
	if rate == Narrow {
		line = resampled(t, line, 16000, 8000)
	}
	v, n, beside, all := NewVAD(rate), rate.FrameSize(), 0, 0
	for i := range len(line) / n {
		_, voiced := v.Detect(line[i*n : (i+1)*n])
		if is := v.Beside(true); voiced && i*320 > from {
			all++
			if is {
				beside++
			}
		}
	}
	return float64(beside) / float64(max(all, 1))
}

// Of voices from which nothing was learned, somebody who is far from the microphone is told, and who has the telephone is
// not, even if they are much fainter now; nobody is as long as nobody has the telephone.
func TestBeside(t *testing.T) {
	p := &party{t: t, rand: rand.New(rand.NewPCG(3, 3))}
	voice := func(name string, gain, seconds float64) []float64 {
		x := unitActive(floats(speech(t, name, Wide)))
		x = x[len(x)/3:]
		for i := range x {
			x[i] *= Gain(gain)
		}
		return x[:min(len(x), int(seconds*16000))]
	}
	far := func(name string) []float64 {
		x := p.room(passed(voice(name, 0, 3), 150, 4000, 0.2), 0.5, -3)
		for i := range x {
			x[i] *= Gain(-20)
		}
		return x
	}
	own := voice("slt", 0, 5)
	for _, rate := range []Rate{Narrow, Wide} {
		for name, c := range map[string]struct {
			before, sound []float64
			least, most   float64
		}{
			"somebody else":                    {own, far("awb"), 0.4, 1},
			"somebody else, at first":          {nil, far("awb"), 0, 0},
			"the customer":                     {own, voice("slt2", 0, 3), 0, 0},
			"the customer, fainter":            {own, voice("slt2", -10, 3), 0, 0},
			"somebody else with the telephone": {own, voice("awb", -3, 3), 0, 0},
		} {
			if share := besideShare(t, rate, c.before, c.sound); share < c.least || share > c.most {
				t.Errorf("at %d Hz, %s: %.2f of the sound is taken for somebody else's", rate, name, share)
			}
		}
	}
}

// Whatever the network makes of a sound, it takes a while until it counts; who is as loud as the customer is never somebody
// else; and when only others are heard for long, one of them has the telephone now.
func TestBesideDecides(t *testing.T) {
	for name, c := range map[string]struct {
		known, loud float64 // of the customer's voice; of this sound, against it
		logits      map[int]float32
		frames      int
		sure        bool
		left        float64 // known of the customer's voice in the end
	}{
		"somebody else":            {known: 200, loud: -15, logits: map[int]float32{0: 6}, frames: 5, sure: true, left: 200},
		"too soon":                 {known: 200, loud: -15, logits: map[int]float32{0: 6}, frames: 4, left: 200},
		"once less so":             {known: 200, loud: -15, logits: map[int]float32{0: 6, 3: 2, 4: 6}, frames: 8, left: 200},
		"later less so":            {known: 200, loud: -15, logits: map[int]float32{0: 6, 8: 2}, frames: 20, sure: true, left: 200},
		"the customer after all":   {known: 200, loud: -15, logits: map[int]float32{0: 6, 8: 0}, frames: 9, left: 200},
		"as loud as the customer":  {known: 200, loud: -3, logits: map[int]float32{0: 6}, frames: 50, left: 200},
		"the customer is unknown":  {known: 20, loud: -15, logits: map[int]float32{0: 6}, frames: 50, left: 20},
		"only somebody else":       {known: 200, loud: -15, logits: map[int]float32{0: 6}, frames: distantOthers + 6},
		"the customer is here yet": {known: 200, loud: -15, logits: map[int]float32{0: 6, 100: -1, 102: 6}, frames: distantOthers + 6, sure: true, left: 200},
	} {
		d := distant{own: likeness{n: c.known, loud: 70}, now: likeness{n: 20, loud: 70 + c.loud}}
		for i := range c.frames {
			if l, ok := c.logits[i]; ok {
				d.logit = l
			}
			d.decide()
		}
		if d.sure != c.sure || d.own.n != c.left {
			t.Errorf("%s: sure %v, and %v frames of the customer's are known", name, d.sure, d.own.n)
		}
	}
}

// What is heard over a reply may be an echo: it is not taken for the customer's voice.
func TestBesideLearns(t *testing.T) {
	pcm := append(speech(t, "slt", Narrow)[:24000:24000], make([]int16, 8000)...)
	for _, learn := range []bool{true, false} {
		v := NewVAD(Narrow)
		for i := 0; i < len(pcm); i += 160 {
			v.Detect(pcm[i : i+160])
			v.Beside(learn)
		}
		if (v.distant.own.n > 0) != learn {
			t.Errorf("with learn %v, %v frames are known", learn, v.distant.own.n)
		}
	}
}

// Beside allocates nothing.
func TestBesideAllocations(t *testing.T) {
	pcm, v, i := speech(t, "slt", Narrow), NewVAD(Narrow), 0
	if n := testing.AllocsPerRun(600, func() {
		v.Detect(pcm[i : i+160])
		v.Beside(true)
		i = (i + 160) % 48000
	}); n != 0 {
		t.Errorf("%v allocations for each frame", n)
	}
	if v.distant.own.n < distantKnown {
		t.Errorf("of the customer's voice only %v frames are known", v.distant.own.n)
	}
}

// BenchmarkBeside is what a second of speech costs, besides the detector.
func BenchmarkBeside(b *testing.B) {
	v := NewVAD(Narrow)
	v.distant.own = likeness{n: distantOwn, pitch: 1, loud: 70}
	for v.hang = 1; b.Loop(); {
		for range 50 {
			v.frames++
			v.Beside(true)
		}
	}
}

// Beside is measured in calls of people from whom the network didn't learn (TestBesideChoose: those by whom its limits were
// chosen), in rooms that are simulated.
func TestBesideReal(t *testing.T)   { besides(t, "held", 21) }
func TestBesideChoose(t *testing.T) { besides(t, "choose", 22) }

// beheld is what was told of a sound.
type beheld struct {
	probe
	known  bool          // the customer's voice was known
	ever   bool          // it was taken for somebody else's at some time,
	last   bool          // at its end,
	until  time.Duration // from its beginning
	logits []float32
	own    float64
}

func besides(t *testing.T, use string, seed uint64) {
	p := newParty(t, use, seed)
	calls, _ := strconv.Atoi(os.Getenv("PARLEY_CALLS"))
	var all []beheld
	for range max(calls, 150) {
		all = append(all, p.measure()...)
	}
	report(t, use, all)
	t.Log(fmt.Sprint(curve(all)))
	if f := os.Getenv("PARLEY_DUMP"); f != "" {
		out := ""
		for _, b := range all {
			out += fmt.Sprintf("%d %.1f %.0f %v\n", b.kind, b.gain, b.own, b.logits)
		}
		os.WriteFile(f+use, []byte(out), 0o644)
	}
}

var soundNames = [soundKinds]string{"the customer", "another customer", "somebody in the room", "a television"}

// report prints what was told of each kind of sound, by how loud and how long it is.
func report(t *testing.T, use string, all []beheld) {
	for kind, name := range soundNames {
		for _, part := range [][2]float64{{-30, 10}, {-5, 10}, {-10, -5}, {-15, -10}, {-20, -15}, {-30, -20}} {
			var until []time.Duration
			n, last := 0, 0
			for _, b := range all {
				if b.kind != kind || b.gain < part[0] || b.gain >= part[1] {
					continue
				}
				if n++; b.ever {
					until = append(until, b.until)
				}
				if b.last {
					last++
				}
			}
			if n == 0 {
				continue
			}
			of := func(n, all int) string {
				return fmt.Sprintf("%.1f %% (%.1f to %.1f)", 100*float64(n)/float64(all), besideBetween(n, all, -1), besideBetween(n, all, 1))
			}
			about := fmt.Sprintf("%s: of %d sounds of %s, %g to %g dB against the customer's first, %s are taken for somebody else's at some time, %s at their end",
				use, n, name, part[0], part[1], of(len(until), n), of(last, n))
			if slices.Sort(until); len(until) > 0 {
				about += fmt.Sprintf("; half of them after %v, nine in ten within %v", until[len(until)/2], until[len(until)*9/10])
			}
			if part[0] == -30 && part[1] == 10 {
				about = "quality: " + about
			}
			t.Log(about)
		}
	}
	for kind, name := range soundNames {
		for _, size := range [][2]int{{10, 25}, {25, 50}, {50, 80}, {80, 1000}} {
			n, ever := 0, 0
			for _, b := range all {
				if b.kind == kind && len(b.logits) >= size[0] && len(b.logits) < size[1] {
					if n++; b.ever {
						ever++
					}
				}
			}
			t.Logf("%s: of %d sounds of %s with %d to %d frames taken for speech, %.1f %% are taken for somebody else's", use, n, name, size[0], size[1], 100*float64(ever)/float64(max(n, 1)))
		}
	}
}

// besideBetween is an end of where a share of which n of all were counted lies in 95 of 100 cases (Wilson).
func besideBetween(n, all int, side float64) float64 {
	const z = 1.96
	p, k := float64(n)/float64(all), float64(all)
	return 100 * (p + z*z/(2*k) + side*z*math.Sqrt(p*(1-p)/k+z*z/(4*k*k))) / (1 + z*z/k)
}

// measure makes a call and looks at its sounds.
func (p *party) measure() (all []beheld) {
	c := p.call(6)
	v, n := NewVAD(c.rate), c.rate.FrameSize()
	reply := false
	for _, pr := range c.probes {
		all = append(all, beheld{probe: pr})
	}
	at, voices := 0, make([]int, len(all))
	for i := range len(c.pcm) / n {
		for at < len(all)-1 && i*320 >= all[at].to+4800 {
			at++
			reply = p.rand.IntN(2) == 0
		}
		_, voiced := v.Detect(c.pcm[i*n : (i+1)*n])
		beside := v.Beside(!reply)
		if b := &all[at]; i*320 >= b.from+1600 && i*320 < b.to+1600 && voiced {
			b.known = v.distant.own.n >= distantKnown
			voices[at]++
			if b.last = beside; beside && !b.ever {
				b.ever, b.until = true, time.Duration(i-b.from/320)*FrameTime
			}
			b.own = v.distant.own.n
			if v.distant.now.n >= distantLeast && v.distant.now.loud <= v.distant.own.loud-distantLoud {
				b.logits = append(b.logits, v.distant.logit)
			} else {
				b.logits = append(b.logits, -9)
			}
		}
	}
	i := -1
	return slices.DeleteFunc(all, func(b beheld) bool { // what is shorter than 200 ms interrupts nobody
		i++
		return !b.known || voices[i] < 10
	})
}

// curve is how many of the customer's sounds are lost, and how many others are held, at limits of the logit.
func curve(all []beheld) (out string) {
	for _, limit := range []float32{0, 1, 2, 2.5, 3, 3.5, 4, 5, 6} {
		out += fmt.Sprintf("\n> %g:", limit)
		for kind := range soundKinds {
			ever, n := 0, 0
			for _, b := range all {
				if b.kind == kind {
					n++
					if len(b.logits) > 0 && slices.Max(b.logits) > limit {
						ever++
					}
				}
			}
			out += fmt.Sprintf(" %.1f", 100*float64(ever)/float64(max(n, 1)))
		}
	}
	return out
}
