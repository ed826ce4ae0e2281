package audio

import (
	"math"
	"math/rand/v2"
	"testing"
)

// humming is an "mm", or an "mm-hm": a voice behind closed lips.
func humming(r *rand.Rand, rate Rate) []int16 {
	n := int(float64(rate) * (0.25 + 0.3*r.Float64()))
	x, phase, hz := make([]int16, n), 0.0, 90+110*r.Float64()
	gap := r.IntN(2) == 0
	var a, b float64
	decay, turn := math.Exp(-math.Pi*120/float64(rate)), 2*math.Pi*(230+60*r.Float64())/float64(rate)
	for i := range x {
		at := float64(i) / float64(n)
		push := 0.02 * r.NormFloat64()
		if phase += hz * (1 + 0.25*at) / float64(rate); phase >= 1 {
			phase, push = phase-1, 1
		}
		loud := math.Min(1, 20*math.Min(at, 1-at))
		if gap && at > 0.42 && at < 0.55 {
			loud *= 0.08
		}
		a, b = push+2*decay*math.Cos(turn)*a-decay*decay*b, a
		x[i] = clip(900 * loud * a)
	}
	return x
}

// wordsOf is what the network makes of a sound on a quiet line, when it is asked with each frame, or only at its end.
func wordsOf(rate Rate, sound []int16, often bool) (logit float32) {
	v, n := NewVAD(rate), rate.FrameSize()
	r := rand.New(rand.NewPCG(1, 7))
	line := append(append(make([]int16, rate), sound...), make([]int16, int(rate)/10)...)
	for i := range line {
		line[i] = clip(float64(line[i]) + 10*r.NormFloat64())
	}
	for i := 0; i+n <= len(line); i += n {
		speech, _ := v.Detect(line[i : i+n])
		if last := i+2*n > len(line); speech && (often || last) {
			logit = v.Words()
		}
	}
	return logit
}

// Of voices that the network didn't learn from, most sentences are not taken for hums, and hums are.
func TestWords(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		said, hummed, all := 0, 0, 0
		for _, name := range []string{"slt", "awb", "slt2", "awb2"} {
			pcm := speech(t, name, rate)
			for n, quiet := rate.FrameSize(), 10; len(pcm) > int(rate); pcm = pcm[n:] {
				if level(pcm[:n]) < -45 {
					quiet++
					continue
				}
				if quiet >= 10 {
					if all++; wordsOf(rate, pcm[:int(rate)*9/10], true) > -1.5 {
						said++
					}
				}
				quiet = 0
			}
		}
		r := rand.New(rand.NewPCG(uint64(rate), 3))
		for range 40 {
			if wordsOf(rate, humming(r, rate), true) < -1.5 {
				hummed++
			}
		}
		t.Logf("at %d Hz, of %d beginnings of sentences %d are not taken for hums, and of 40 hums %d are", rate, all, said, hummed)
		if all < 5 || said*10 < all*9 || hummed < 38 {
			t.Errorf("at %d Hz, of %d beginnings of sentences %d are not taken for hums, and of 40 hums %d are", rate, all, said, hummed)
		}
	}
}

// Where nobody asks, nothing is computed; who asks later hears about the newest frames. Nothing is allocated.
func TestWordsAsked(t *testing.T) {
	pcm := speech(t, "slt", Narrow)[:8000]
	if asked, late := wordsOf(Narrow, pcm, true), wordsOf(Narrow, pcm, false); asked == 0 || late == 0 || asked == late {
		t.Errorf("%v when asked with each frame, %v at its end", asked, late)
	}
	v := NewVAD(Narrow)
	if v.Words() != 0 {
		t.Error("there are words in no sound")
	}
	i := 0
	if n := testing.AllocsPerRun(200, func() {
		v.Detect(pcm[i : i+160])
		v.Words()
		i = (i + 160) % 7840
	}); n != 0 {
		t.Errorf("%v allocations for each frame", n)
	}
}

// BenchmarkWords is what a frame costs of speech over a reply, besides the detector.
func BenchmarkWords(b *testing.B) {
	m := newMind(wordsNetwork)
	for b.Loop() {
		m.infer()
	}
}
