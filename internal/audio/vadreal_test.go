package audio

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// detector is what the figures are measured for: VAD, and for comparison the simplest possible one, and WebRTC's.
type detector interface {
	Detect(f Frame) (speech, voiced bool)
	Sure() bool
}

// loudness takes for speech what is 9 dB above the lowest power of the last seconds.
type loudness struct {
	least [2]float64
	n     int
	hang  int
	run   int
}

// Sure is after 60 ms without a break.
func (d *loudness) Sure() bool { return d.run >= 3 }

func (d *loudness) Detect(f Frame) (speech, voiced bool) {
	l := level(f)
	if d.n == 0 {
		d.least = [2]float64{l, l}
	}
	if d.n++; d.n%100 == 0 {
		d.least = [2]float64{l, d.least[0]}
	}
	d.least[0] = min(d.least[0], l)
	if voiced = l > -60 && l > min(d.least[0], d.least[1])+9; voiced {
		d.hang = vadHang
		d.run++
	} else {
		d.run = 0
	}
	d.hang = max(d.hang-1, 0)
	return d.hang > 0, voiced
}

type named struct {
	name string
	make func() detector
}

func detectors(t *testing.T) []named {
	list := []named{
		{"the network", func() detector { return NewVAD(Narrow) }},
		{"energy alone", func() detector { return &loudness{} }},
	}
	if openWebRTC() == nil {
		t.Log("quality: WebRTC's detector: not measured; apt-get install libwebrtc-audio-processing1 python3")
		return list
	}
	return append(list, named{"WebRTC's, mode 1", func() detector { return newWebRTC(1) }},
		named{"WebRTC's, mode 3", func() detector { return newWebRTC(3) }})
}

// TestVADReal measures with recordings of people and noises that were not used for training or choosing: other readers,
// instruments, keyboards, places and kinds of sound, listed in the rows "held" of testdata/real.tsv. All of it is heard
// through G.711.
func TestVADReal(t *testing.T) { measure(t, "held") }

// TestVADChoose measures with the rows "choose", from which nothing was learned: by these the thresholds are chosen.
func TestVADChoose(t *testing.T) { measure(t, "choose") }

func measure(t *testing.T, use string) {
	var readers [][]int16
	noise, clips, crowd := map[string][][]int16{}, [][]int16{}, crowd{}
	last := ""
	for _, r := range recordings(t, use) {
		pcm := resampled(t, r.pcm, 16000, 8000)
		if r.kind == "speech" {
			crowd.join(r.who, pcm)
		}
		switch {
		case r.kind == "speech" && !still(r.pcm): // there is no telling when they speak
		case r.kind != "speech" && r.kind != "clip":
			noise[r.kind] = append(noise[r.kind], pcm)
		case r.kind == "clip":
			clips = append(clips, pcm)
		case r.who != last && len(readers) == 12: // enough
		case r.who != last: // some sentences of each reader, with pauses of 3 s
			readers = append(readers, concat(24000, make([]int16, 8000), alone(pcm, Narrow)))
			last, crowd.readers = r.who, append(crowd.readers, r.who)
		case len(readers[len(readers)-1]) < 60*8000:
			n := len(readers) - 1
			readers[n] = concat(24000, append(readers[n], alone(pcm, Narrow)...))
		}
	}
	t.Logf("%d readers, %d clips without speech", len(readers), len(clips))
	for _, kind := range []string{"machines", "office", "babble", "typing", "music"} {
		if len(noise[kind]) == 0 && kind != "babble" {
			continue
		}
		lines := disturbed(readers, noise[kind], kind, crowd)
		for _, d := range detectors(t) {
			h, each := hearing{}, make([]hearing, len(readers))
			var late []int
			for i, clean := range readers {
				one, l := heard(d.make(), clean, lines[i])
				h.add(one)
				each[i], late = one, append(late, l...)
			}
			hit, false := h.rates()
			t.Logf("quality: real people in %s at 10 dB, %s: hit %.1f %% (%s) of %d frames, false %.1f %% (%s) of %d, end late %s (goals: hit >= %d at false <= %d, late p90 <= 250)",
				kind, d.name, hit, interval(len(each), func(of []int) float64 { return share(each, of, hearing.rates) }), h.speech,
				false, interval(len(each), func(of []int) float64 {
					return share(each, of, func(h hearing) (float64, float64) { hit, false := h.rates(); return false, hit })
				}), h.pause, spread(late), goal(kind, 90, 92), goal(kind, 5, 3))
			if d.name == "the network" && (hit < 75 || false > 25 && kind != "babble") {
				t.Errorf("%s: hit %.1f %%, false %.1f %%", kind, hit, false)
			}
		}
		less := 0.0
		for i, clean := range readers {
			less += suppressed(clean, lines[i]) / float64(len(readers))
		}
		t.Logf("quality: noise suppression, real %s at 10 dB: pauses %.1f dB quieter (goal >= 12)", kind, less)
	}
	onset(t, readers)
	interrupted(t, clips, use)
	if use != "held" {
		return
	}
	var learned [][]int16
	for _, r := range recordings(t, "train", "clip") {
		learned = append(learned, resampled(t, r.pcm[:min(len(r.pcm), 10*16000)], 16000, 8000))
	}
	interrupted(t, learned, "train")
}

// interval is what a figure is between in 95 of 100 draws of as many files, with replacement, of these.
func interval(files int, figure func(of []int) float64) string {
	r, all, of := rand.New(rand.NewPCG(7, 7)), make([]float64, 1000), make([]int, files)
	for i := range all {
		for j := range of {
			of[j] = r.IntN(files)
		}
		all[i] = figure(of)
	}
	slices.Sort(all)
	return fmt.Sprintf("%.1f to %.1f", all[25], all[974])
}

// share is the first of the rates of all readers of a draw.
func share(each []hearing, of []int, rates func(hearing) (float64, float64)) float64 {
	var sum hearing
	for _, i := range of {
		sum.add(each[i])
	}
	first, _ := rates(sum)
	return first
}

func goal(kind string, music, other int) int {
	if kind == "music" {
		return music
	}
	return other
}

// spread is the median, the 90th and the 95th percentile of times in ms.
func spread(ms []int) string {
	slices.Sort(ms)
	at := func(share float64) int { return ms[min(int(share*float64(len(ms))), len(ms)-1)] }
	return fmt.Sprintf("p50 %d, p90 %d, p95 %d ms", at(0.5), at(0.9), at(0.95))
}

// crowd is what people of a list say one sentence after the other, by their names; readers are those who are measured.
type crowd struct {
	readers, people []string
	talk            map[string][]int16
}

func (c *crowd) join(who string, pcm []int16) {
	if c.talk == nil {
		c.talk = map[string][]int16{}
	}
	if c.talk[who] == nil {
		c.people = append(c.people, who)
	}
	c.talk[who] = append(c.talk[who], pcm...)
}

// around is eight others who talk at once while a reader reads, all as loud.
func (c *crowd) around(reader, n int, r *rand.Rand) []float64 {
	x, others := make([]float64, n), 0
	first := slices.Index(c.people, c.readers[reader])
	for i := 1; i < len(c.people) && others < 8; i++ {
		o := c.talk[c.people[(first+i)%len(c.people)]]
		k, at := 1/activeLevel(o, Narrow), r.IntN(len(o))
		for j := range x {
			x[j] += k * float64(o[(at+j)%len(o)])
		}
		others++
	}
	return x
}

// disturbed puts each reader into noise of a kind: for babble, a crowd or a recording.
func disturbed(readers, noise [][]int16, kind string, crowd crowd) (lines [][]int16) {
	for i, clean := range readers {
		r := rand.New(rand.NewPCG(uint64(i), 5))
		x := make([]float64, len(clean))
		if kind == "babble" && (i%2 == 0 || len(noise) == 0) {
			x = crowd.around(i, len(clean), r)
		} else {
			o := noise[i%len(noise)]
			for n, at := 0, r.IntN(len(o)); n < len(x); n++ {
				x[n] = float64(o[(at+n)%len(o)])
			}
		}
		lines = append(lines, DecodeULaw(nil, EncodeULaw(nil, noisy(clean, unit(x), Narrow, 10))))
	}
	return lines
}

// heard runs a detector like listen. It also returns how late the end of each sentence is detected.
func heard(d detector, clean, mixed []int16) (h hearing, late []int) {
	marks, since, end, last, open := marked(clean, Narrow), 100, -1, -1, false
	for i, mark := range marks {
		speech, voiced := d.Detect(mixed[i*160 : (i+1)*160])
		if voiced {
			last = i
		}
		since++
		if mark == 1 {
			since, end, open = 0, i, true
		}
		switch {
		case i < 50:
		case since == 0:
			h.speech++
			if speech {
				h.hit++
			}
		case since > 15 && mark == 0:
			h.pause++
			if speech {
				h.false++
			}
		}
		// By default a turn ends after 600 ms without speech. The pauses between the sentences last 3 s.
		if open && since >= 30 && (i-last >= 30 || since == 140) {
			late, open = append(late, 20*max(last-end, 0)), false
		}
	}
	return h, late
}

// suppressed is by how many dB the pauses become quieter.
func suppressed(clean, mixed []int16) float64 {
	after, in, out, since := denoised(Narrow, mixed), 0.0, 0.0, 100
	for i, mark := range marked(clean, Narrow) {
		if since++; mark == 1 {
			since = 0
		}
		if i > 100 && since > 15 && mark == 0 {
			in += math.Pow(10, level(mixed[i*160:(i+1)*160])/10)
			out += math.Pow(10, level(after[i*160:(i+1)*160])/10)
		}
	}
	return 10 * math.Log10(in/out)
}

// onset measures how soon the beginning of a sentence is detected on a quiet line, how much of the speech is
// found, and at what cost.
func onset(t *testing.T, readers [][]int16) {
	for _, d := range detectors(t) {
		var late, sure []int
		var h hearing
		frames, used := 0, cpu()
		for _, clean := range readers {
			x, one := d.make(), DecodeULaw(nil, EncodeULaw(nil, clean))
			a, _ := heard(d.make(), clean, one)
			h.add(a)
			since, begun, spoken := 100, -1, -1
			for i, mark := range marked(clean, Narrow) {
				_, voiced := x.Detect(one[i*160 : (i+1)*160])
				frames += 2
				if since++; mark == 1 {
					if since > 100 {
						begun, spoken = i, i
					}
					since = 0
				}
				if voiced && begun >= 0 {
					late, begun = append(late, 20*(i-begun)), -1
				}
				if x.Sure() && spoken >= 0 {
					sure, spoken = append(sure, 20*(i-spoken+1)), -1
				}
			}
		}
		hit, false := h.rates()
		t.Logf("quality: real people on a quiet line, %s: hit %.1f %%, false %.1f %%; onset of %d sentences %s (goal p50 <= 20, p95 <= 60 ms); a reply is silenced after %s (goal p95 <= 130 ms; %d never)",
			d.name, hit, false, len(late), spread(late), spread(sure), len(late)-len(sure))
		if d.name == "the network" {
			t.Logf("quality: %s: %.2f ms of processor per second of sound (goal <= 1)", d.name, (cpu()-used).Seconds()*1000/(float64(frames)/50))
		}
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano())
}

// interrupted counts the clips without speech that silence a reply, and those that seem to go on for 300 ms or more.
func interrupted(t *testing.T, clips [][]int16, what string) {
	for _, d := range detectors(t) {
		stops, long, first := make([]float64, len(clips)), make([]float64, len(clips)), make([]float64, len(clips))
		for n, clip := range clips {
			begin := slices.Concat(whiteNoise(1, 5, 2*8000), clip, whiteNoise(2, 5, 8000))
			Fade(begin[2*8000:2*8000+len(clip)], 0.1/(activeLevel(clip, Narrow)+1e-4), 0.1/(activeLevel(clip, Narrow)+1e-4))
			line, x := DecodeULaw(nil, EncodeULaw(nil, begin)), d.make()
			from, any, sure, longest := 0, false, false, 0
			for i := 0; i+160 <= len(line); i += 160 {
				speech, voiced := x.Detect(line[i : i+160])
				if !speech {
					from = 0
				}
				if voiced {
					if from == 0 {
						from = i
					}
					any = true
				}
				if x.Sure() {
					sure = true
					if voiced {
						longest = max(longest, i+160-from)
					}
				}
			}
			if any {
				first[n] = 100
			}
			if sure {
				stops[n] = 100
				if longest >= 300*8 {
					long[n] = 100
				}
			}
		}
		all := make([]int, len(clips))
		for i := range all {
			all[i] = i
		}
		mean := func(x []float64) func(of []int) float64 {
			return func(of []int) (sum float64) {
				for _, i := range of {
					sum += x[i] / float64(len(of))
				}
				return sum
			}
		}
		t.Logf("quality: %d real clips without speech (%s), %s: %.0f %% have a frame taken for speech, %.0f %% (%s) stop a reply (goal <= 10), %.0f %% (%s) and seem to go on for 300 ms or more (goal <= 5)",
			len(clips), what, d.name, mean(first)(all), mean(stops)(all), interval(len(clips), mean(stops)), mean(long)(all),
			interval(len(clips), mean(long)))
	}
}

// TestRecordings: each row of the list says what it is for, its kind, which must be known, and its licence.
func TestRecordings(t *testing.T) {
	rows := listed(t)
	if len(rows) < 100 {
		t.Errorf("%d rows", len(rows))
	}
	seen := map[string]bool{}
	for _, r := range rows {
		kinds := []string{"speech", "machines", "office", "babble", "typing", "music", "clip"}
		if len(r) != 5 || !slices.Contains([]string{"train", "choose", "held"}, r[0]) || !slices.Contains(kinds, r[1]) || seen[r[2]] {
			t.Fatalf("%q", r)
		}
		seen[r[2]] = true
		free := []string{"CC0", "CC BY", "OGA BY", "MIT", "Apache", "public domain"}
		if r[0] != "held" && !slices.ContainsFunc(free, func(f string) bool { return strings.HasPrefix(r[3], f) }) ||
			strings.Contains(r[3], "NC") || strings.Contains(r[3], "SA") {
			t.Errorf("%s: it isn't known that one may learn from it: %s", r[2], r[3])
		}
	}
}
