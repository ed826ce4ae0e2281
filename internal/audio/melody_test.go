package audio

import (
	"math"
	"slices"
	"testing"
	"time"
)

// tunes are music made in several ways, by the time in seconds. The measure was made with recordings, and not with these.
var tunes = map[string]func(at float64) float64{
	"an organ": func(at float64) (x float64) {
		for _, n := range [][]float64{{48, 60, 64, 67}, {53, 57, 60, 65}, {55, 59, 62, 67}}[int(at/1.2)%3] {
			for h := 1.0; h < 7; h++ {
				x += math.Sin(2*math.Pi*h*hertz(n)*at) / h
			}
		}
		return x / 6
	},
	"strings that tremble": func(at float64) (x float64) {
		for i, n := range [][]float64{{57, 64, 69}, {55, 62, 67}}[int(at/2)%2] {
			phase := hertz(n)*at + 0.15*math.Sin(2*math.Pi*5.5*at+float64(i))
			for h := 1.0; h < 9; h++ {
				x += math.Sin(2*math.Pi*h*phase) / h
			}
		}
		return x / 4
	},
	"a piano": func(at float64) (x float64) {
		for back := range 4 { // notes sound on
			i := int(at/0.35) - back
			if i < 0 {
				break
			}
			since := at - 0.35*float64(i)
			f := hertz([]float64{60, 64, 67, 72, 67, 64, 62, 65, 69, 65}[i%10])
			for h := 1.0; h < 6; h++ {
				x += math.Sin(2*math.Pi*h*f*since) / (h * h) * math.Exp(-1.5*h*since)
			}
		}
		return x / 2
	},
	"bells": func(at float64) float64 {
		i := int(at / 0.6)
		since, f := at-0.6*float64(i), hertz([]float64{72, 79, 76, 74}[i%4])
		return math.Sin(2*math.Pi*f*since+2*math.Exp(-3*since)*math.Sin(2*math.Pi*3.5*f*since)) * math.Exp(-1.2*since)
	},
	"a flute over a chord": func(at float64) float64 {
		tune := hertz([]float64{76, 74, 72, 74, 76, 76, 76}[int(at/0.4)%7])
		x := math.Sin(2*math.Pi*tune*at) + 0.3*math.Sin(4*math.Pi*tune*at)
		for _, n := range []float64{48, 55, 64} {
			x += 0.4 * math.Sin(2*math.Pi*hertz(n)*at)
		}
		return x / 2
	},
	"a tone for those who wait": func(at float64) float64 { return math.Sin(2 * math.Pi * 425 * at) },
}

func hertz(note float64) float64 { return 440 * math.Pow(2, (note-69)/12) }

// TestMelody: music that is made in several ways is known within five seconds, whenever a call is answered in it, and
// speech and noise are never taken for music.
func TestMelody(t *testing.T) {
	var late []time.Duration
	for _, rate := range []Rate{Narrow, Wide} {
		n := rate.FrameSize()
		first := func(pcm []int16) time.Duration {
			d := NewSignalDetector(rate)
			for i := 0; i+n <= len(pcm); i += n {
				if d.Detect(DecodeULaw(nil, EncodeULaw(nil, pcm[i:i+n]))) == Music {
					return time.Duration(i/n) * FrameTime
				}
			}
			return -1
		}
		music := func(name string, at float64, pcm []int16) {
			known := first(pcm)
			late = append(late, known)
			if known < 0 || known > 5*time.Second {
				t.Errorf("%s from %v s on, at %d Hz: known after %v", name, at, rate, known)
			}
		}
		for _, at := range []float64{0, 1.3, 2.9} {
			for name, tune := range tunes {
				pcm := make([]int16, 6*int(rate))
				for i := range pcm {
					pcm[i] = int16(6000 * tune(at+float64(i)/float64(rate)))
				}
				music(name, at, pcm)
			}
			pcm := make([]int16, 6*int(rate))
			NewMusic(rate).Mix(pcm, int(at*float64(rate)), 1)
			music("our own music", at, pcm)
		}
		for _, v := range voices {
			if known := first(speech(t, v, rate)); known >= 0 {
				t.Errorf("%s at %d Hz is taken for music after %v", v, rate, known)
			}
		}
		for name, make := range noises {
			noise := make(t, 5, rate, 10*int(rate))
			pcm := whiteNoise(1, 0, len(noise))
			for i, x := range noise {
				pcm[i] = clip(2000 * x)
			}
			if known := first(pcm); known >= 0 {
				t.Errorf("noise (%s) at %d Hz is taken for music after %v", name, rate, known)
			}
		}
	}
	slices.Sort(late)
	t.Logf("quality: music at the beginning of a call, made here: known after %v (median), %v at most", late[len(late)/2], late[len(late)-1])
}

// TestMelodyReal measures with recordings: the measure was made with the rows "train" of testdata/real.tsv, and these
// are "held".
func TestMelodyReal(t *testing.T) {
	var heard, told [2]int // speech, music
	for _, r := range recordings(t, "held", "speech", "music") {
		pcm := resampled(t, r.pcm, 16000, 8000)
		kind := 0
		if r.kind == "music" {
			kind = 1
		}
		const call = 8 * 8000 // as if one were answered in the middle of it
		for at := 0; at+call/2 <= len(pcm); at += call {
			heard[kind]++
			d := NewSignalDetector(Narrow)
			for i := at; i+160 <= min(at+call, len(pcm)); i += 160 {
				if d.Detect(DecodeULaw(nil, EncodeULaw(nil, pcm[i:i+160]))) == Music {
					told[kind]++
					break
				}
			}
		}
	}
	t.Logf("quality: music at the beginning of a call, real recordings held out: known within 8 s: %d of %d; speech taken for it: %d of %d",
		told[1], heard[1], told[0], heard[0])
	if told[0]*200 > heard[0] {
		t.Errorf("speech is taken for music: %d of %d", told[0], heard[0])
	}
}
