package audio

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// cadenceOf is what is made of somebody who says syllables of an eighth of a second, 120 Hz high. The last two go by so many
// semitones and dB, and the last is so many frames long.
func cadenceOf(syllables int, semitones, db float64, last int) float32 {
	var c cadence
	for s := range syllables {
		nucleus, share := 6, 0.0
		switch s {
		case syllables - 2:
			share = 0.5
		case syllables - 1:
			nucleus, share = last, 1
		}
		high := float32(61-4000/(120*math.Exp2((share*semitones+math.Sin(float64(s)))/12))) / 51 // as the VAD gives a pitch
		for range nucleus {
			c.hear(true, 0.9, high, 60+share*db)
		}
		for range 2 {
			c.hear(true, 0.2, high, 45+share*db)
		}
	}
	c.hear(false, 0, 0.5, 20)
	return c.score
}

// A voice that falls and gets faint sounds like the end, one that stays up and draws out its last syllable doesn't, and of
// one word nothing is known.
func TestCadence(t *testing.T) {
	over, more, word := cadenceOf(14, -6, -8, 6), cadenceOf(14, 2, 1, 13), cadenceOf(2, -6, -8, 6)
	if over < 0.25 || more > -0.5 || word != 0 {
		t.Errorf("over %.2f, more to come %.2f, one word %.2f", over, more, word)
	}
	if far := cadenceOf(14, 16, 20, 100); far != -maxCadence {
		t.Errorf("%v is not as much as a voice may count", far)
	}
	want := cadenceWeights[2] * float32(math.Log(14./7))
	if got := cadenceOf(14, 0, 0, 13) - cadenceOf(14, 0, 0, 6); got < want-0.1 || got > want+0.1 {
		t.Errorf("a syllable of twice the length adds %.3f, want %.3f", got, want)
	}
}

// The detector says it of speech, in pauses alone, and from the first frame on.
func TestCadenceOfSpeech(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		v, n, judged, was := NewVAD(rate), rate.FrameSize(), 0, false
		for line := conversation(t, rate, "slt", "awb"); len(line) >= n; line = line[n:] {
			_, voiced := v.Detect(line[:n])
			if voiced && v.Cadence() != 0 {
				t.Fatalf("%d Hz: %v while they speak", rate, v.Cadence())
			}
			if was && !voiced && v.Cadence() != 0 {
				judged++
			}
			was = voiced
		}
		if judged < 2 {
			t.Errorf("%d Hz: %d ends were judged", rate, judged)
		}
		frame, none := Frame(tone(int(rate), 120, 8000, n)), make(Frame, n)
		quiet(t, "cadence", func() {
			v.Detect(frame)
			v.Detect(none)
			v.Cadence()
		})
	}
}

// What is usual is forgotten, and counts are not too many for their places.
func TestCadenceForgets(t *testing.T) {
	var c cadence
	for i := range 20 * cadenceMemory {
		level := 60.0
		if i > 15*cadenceMemory {
			level = 40
		}
		c.hear(i%20 != 0, 0.9, 0.5, level)
	}
	if n := c.spoken; n >= cadenceMemory || quantile(c.levels[:], n, 0.5) > 42 {
		t.Errorf("after a change the usual level of %d frames is %v, want 40", n, quantile(c.levels[:], n, 0.5))
	}
}

// ending is a pause of 160 ms and more, or the end of a recording.
type ending struct {
	traits cadenceTraits
	score  float32
	over   bool
}

// endings are those of a sound, with a detector that has heard of its speaker what it has.
func endings(v *VAD, rate Rate, pcm []int16) (all []ending) {
	n, silent, spoke := rate.FrameSize(), 0, false
	var last ending
	for ; len(pcm) >= n; pcm = pcm[n:] {
		if _, voiced := v.Detect(pcm[:n]); voiced {
			if silent >= 8 && spoke {
				all = append(all, last)
			}
			silent, spoke = 0, true
			continue
		}
		if silent++; silent == 1 {
			last = ending{traits: v.cadence.ending, score: v.Cadence()}
		}
	}
	if spoke {
		last.over = true
		all = append(all, last)
	}
	return all
}

// readEndings are the ends of what people read in those recordings whose path has this in it, and the pauses within, as
// they sound over a telephone. The noise of each recording goes on before and behind it.
func readEndings(t *testing.T, from []recording, path string) (all []ending) {
	for i, r := range from {
		if !strings.Contains(r.who, path) {
			continue
		}
		pcm, levels := resampled(t, r.pcm, 16000, 8000), []float64(nil)
		for at := 0; at+160 <= len(pcm); at += 160 {
			levels = append(levels, level(pcm[at:at+160]))
		}
		slices.Sort(levels)
		rms := 32768 * math.Pow(10, max(levels[len(levels)/20], -75)/20)
		seed := uint64(2 * i)
		pcm = concat(0, whiteNoise(seed, rms, 4000), pcm, whiteNoise(seed+1, rms, 8000))
		for _, e := range endings(NewVAD(Narrow), Narrow, DecodeULaw(nil, EncodeULaw(nil, pcm))) {
			if e.traits != (cadenceTraits{}) { // of one word nothing is known
				all = append(all, e)
			}
		}
	}
	return all
}

// area is how often an end has a higher score than a pause, which is half of the times by chance.
func area(all []ending, score func(ending) float32) float64 {
	wins, pairs := 0.0, 0.0
	for _, a := range all {
		for _, b := range all {
			if !a.over || b.over {
				continue
			}
			pairs++
			switch x, y := score(a), score(b); {
			case x > y:
				wins++
			case x == y:
				wins += 0.5
			}
		}
	}
	return wins / max(pairs, 1)
}

// TestCadenceReal measures with readers of LibriSpeech from whom nothing was learned, and who are not among those it
// was. Their recordings end where a sentence does.
func TestCadenceReal(t *testing.T) {
	all := readEndings(t, recordings(t, "held", "speech"), "librispeech_test-other")
	if len(all) == 0 {
		t.Skip("no recordings of LibriSpeech")
	}
	got, over := area(all, func(e ending) float32 { return e.score }), 0
	for _, e := range all {
		if e.over {
			over++
		}
	}
	t.Logf("quality: by the voice alone the end of a sentence is told from a pause in %.1f %% of pairs (by chance 50): %d ends, %d pauses of 10 readers (goal >= 60 %%)",
		100*got, over, len(all)-over)
	if got < 0.6 {
		t.Errorf("of ends and pauses %.1f %% are told apart", 100*got)
	}
}

// The worst case: each frame of speech is followed by a pause.
func BenchmarkCadence(b *testing.B) {
	var c cadence
	for i := 0; b.Loop(); i++ {
		c.hear(i%2 == 0, 0.9, 0.5, float64(50+i%20))
	}
}
