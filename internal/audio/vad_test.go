package audio

import (
	"math"
	"slices"
	"testing"
)

// hearing is the result of a detector: how many frames of speech and of pauses there were, and how many it got right or
// wrong.
type hearing struct{ speech, hit, pause, false int }

func (h *hearing) add(o hearing) {
	h.speech, h.hit, h.pause, h.false = h.speech+o.speech, h.hit+o.hit, h.pause+o.pause, h.false+o.false
}

func (h hearing) rates() (hit, false float64) {
	return 100 * float64(h.hit) / float64(h.speech), 100 * float64(h.false) / float64(max(h.pause, 1))
}

// listen runs a detector over speech in noise. Frames within 20 dB of the clean speech's active level are speech.
// Pauses are frames at least 15 dB below that, from 300 ms after the last frame of speech. Frames in between, and the
// first second, are not counted.
func listen(clean, mixed []int16, rate Rate) (h hearing) {
	v, n, since := NewVAD(rate), rate.FrameSize(), 100
	floor := 20*log10(activeLevel(clean, rate)) - 20
	for i := 0; i+n <= len(clean); i += n {
		speech, _ := v.Detect(mixed[i : i+n])
		since++
		if level(clean[i:i+n]) > floor {
			since = 0
		}
		switch {
		case i < int(rate):
		case since == 0:
			h.speech++
			if speech {
				h.hit++
			}
		case since > 15 && level(clean[i:i+n]) < floor-15:
			h.pause++
			if speech {
				h.false++
			}
		}
	}
	return h
}

// conversation is speech with pauses: 3 s, then each of the voices, with 2 s after it.
func conversation(t testing.TB, rate Rate, names ...string) []int16 {
	pieces := [][]int16{make([]int16, int(rate))}
	for _, name := range names {
		pieces = append(pieces, speech(t, name, rate))
	}
	return concat(2*int(rate), pieces...)
}

// TestVAD tests voices that the network was not trained on, in noises that it does not know, 10 dB below the speech.
// (It was trained on no street or car noise; the babble is made of these very voices.)
func TestVAD(t *testing.T) {
	for _, kind := range []string{"white", "pink", "babble", "car", "street"} {
		var all hearing
		for _, rate := range []Rate{Narrow, Wide} {
			clean := conversation(t, rate, "slt", "awb", "slt2", "awb2")
			for seed := range uint64(5) {
				all.add(listen(clean, noisy(clean, noises[kind](t, seed+70, rate, len(clean)), rate, 10), rate))
			}
		}
		hit, false := all.rates()
		t.Logf("quality: voice detection in %s at 10 dB: hit %.1f %% of %d frames (goal >= 95 %%: %s), false %.1f %% of %d (goal <= 5 %%: %s)",
			kind, hit, all.speech, verdict(hit >= 95), false, all.pause, verdict(false <= 5))
		if hit < 95 || false > 5 {
			t.Errorf("%s: hit %.1f %%, false %.1f %%, want 95 and 5", kind, hit, false)
		}
	}
}

// TestVADMusic: so it is in music of six kinds that no network has heard. The first network alone misses more, and the second
// alone takes three times as many of the pauses for speech.
func TestVADMusic(t *testing.T) {
	var all hearing
	for _, rate := range []Rate{Narrow, Wide} {
		clean := conversation(t, rate, "slt", "awb", "slt2", "awb2")
		for _, tune := range tunes {
			x := make([]float64, len(clean))
			for i := range x {
				x[i] = tune(float64(i) / float64(rate))
			}
			all.add(listen(clean, noisy(clean, unit(x), rate, 10), rate))
		}
	}
	if hit, false := all.rates(); hit < 95.8 || false > 0.9 {
		t.Errorf("hit %.1f %%, false %.1f %%, want 95.8 and 0.9", hit, false)
	}
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "MISSED"
}

// TestVADRustle: sound without a pitch, such as breath and paper, is taken for speech for at most 0.3 s at a time,
// unless it goes on. Sound with the pitch of a deep or a high voice still counts as speech.
func TestVADRustle(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		n, longest := rate.FrameSize(), 0
		for seed := range uint64(20) {
			noise, low, v := whiteNoise(seed, 3000, int(rate)*3), 0.0, NewVAD(rate)
			k := []float64{0.2, 0.5, 0.9}[seed%3]
			run := 0
			for i := 0; i+n <= len(noise); i += n {
				for j := i; j < i+n; j++ { // it begins after a second and lasts for one, in waves
					low += k * (float64(noise[j]) - low)
					at := float64(j)/float64(rate) - 1
					noise[j] = int16(low * max(0, min(1, 10*at, 10*(1-at))) * (1.2 + math.Sin(20*at+float64(seed))))
				}
				if _, voiced := v.Detect(noise[i : i+n]); voiced {
					run++
				} else {
					run = 0
				}
				longest = max(longest, run)
			}
		}
		if longest > vadBare+vadBare/2 { // allows for a frame that has a pitch by chance
			t.Errorf("%d Hz: %d frames of rustling are taken for speech", rate, longest)
		}
		whisper, v, voiced := whiteNoise(7, 3000, int(rate)*6), NewVAD(rate), 0
		for i := 0; i+n <= len(whisper); i += n {
			for j := i; j < i+n; j++ { // syllables
				whisper[j] = int16(float64(whisper[j]) * max(0, math.Sin(2*math.Pi*3*float64(j)/float64(rate))))
			}
			if _, yes := v.Detect(whisper[i : i+n]); yes && i > 3*int(rate) {
				voiced++
			}
		}
		t.Logf("%d Hz: %d frames of 150 of a whisper", rate, voiced)
		if voiced < 50 {
			t.Errorf("%d Hz: of 150 frames of a whisper, %d are speech", rate, voiced)
		}
		for _, hz := range []float64{70, 100, 150, 220, 300, 380} {
			v, voiced := NewVAD(rate), 0
			for i := range 100 {
				frame := make(Frame, n)
				for j := range frame {
					at, sum := float64(i*n+j)/float64(rate), 0.0
					for h := 1.0; h*hz < 3400; h++ {
						sum += math.Sin(2*math.Pi*hz*h*at) / h
					}
					frame[j] = int16(3000 * sum * (0.55 + 0.45*math.Sin(2*math.Pi*4*at)))
				}
				if i < 25 {
					clear(frame)
				}
				if _, yes := v.Detect(frame); yes {
					voiced++
				}
			}
			if voiced < 60 {
				t.Errorf("%d Hz: of 75 frames at a pitch of %v Hz, %d are speech", rate, hz, voiced)
			}
		}
	}
}

// TestVADClean: without noise, loud and quiet; through the telephone's codec, and from the first frame on.
func TestVADClean(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		for _, gain := range []float64{0, -10, -25} {
			clean := conversation(t, rate, "slt", "awb")
			Fade(clean, Gain(gain), Gain(gain))
			hit, false := listen(clean, DecodeULaw(nil, EncodeULaw(nil, clean)), rate).rates()
			t.Logf("%d Hz, %v dB: hit %.1f %%, false %.1f %%", rate, gain, hit, false)
			if hit < 97 || false > 5 {
				t.Errorf("%d Hz, speech at %v dB: hit %.1f %%, false %.1f %%", rate, gain, hit, false)
			}
		}
		v, n := NewVAD(rate), rate.FrameSize()
		for i := range 200 {
			if speech, voiced := v.Detect(make(Frame, n)); speech || voiced {
				t.Fatalf("speech in frame %d of silence", i)
			}
		}
		v = NewVAD(rate)
		for i := range 200 {
			if speech, _ := v.Detect(whiteNoise(uint64(i), 300, n)); speech {
				t.Fatalf("speech in frame %d of steady noise", i)
			}
		}
		// Somebody speaks as soon as the line is open.
		for _, name := range voices {
			v, pcm, first, at := NewVAD(rate), speech(t, name, rate), -1, -1
			floor := 20*log10(activeLevel(pcm, rate)) - 10
			for i := 0; i+n <= len(pcm) && at < 0; i += n {
				if first < 0 && level(pcm[i:i+n]) > floor {
					first = i / n
				}
				if speech, _ := v.Detect(pcm[i : i+n]); speech {
					at = i / n
				}
			}
			if at < 0 || first >= 0 && at > first+3 {
				t.Errorf("%s at %d Hz: speech from frame %d on is heard in frame %d", name, rate, first, at)
			}
		}
		v, frame := NewVAD(rate), Frame(whiteNoise(1, 3000, n))
		quiet(t, "voice detector", func() { v.Detect(frame) })
	}
}

// TestVADSure: what slams, hisses or rings on a quiet line, as loud as speech, is not certainly speech, and a voice is
// within a quarter of a second.
func TestVADSure(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		n := rate.FrameSize()
		sure := func(sound []int16) (first int) {
			v := NewVAD(rate)
			line := concat(0, whiteNoise(1, 5, 2*int(rate)), sound, whiteNoise(2, 5, int(rate)))
			for i := 0; i+n <= len(line); i += n {
				if v.Detect(line[i : i+n]); v.Sure() {
					return 20 * (i/n - 99)
				}
			}
			return -1
		}
		stops := 0
		for seed := range uint64(12) {
			sound, decay := whiteNoise(seed, 6000, int(rate)), []float64{0.02, 0.08, 0.3}[seed%3]
			ring := 600 + 300*float64(seed)
			for i := range sound {
				at := float64(i) / float64(rate)
				x := float64(sound[i])
				if seed%2 == 0 {
					x = 9000 * math.Sin(2*math.Pi*ring*at)
				}
				sound[i] = int16(x * math.Exp(-at/decay))
			}
			if sure(sound) >= 0 {
				stops++
			}
		}
		var late []int
		for _, name := range []string{"slt", "awb", "slt2", "awb2"} {
			pcm := scaled(speech(t, name, rate), rate, -20)
			for len(pcm) > n && level(pcm[:n]) < -40 {
				pcm = pcm[n:]
			}
			late = append(late, sure(pcm))
		}
		t.Logf("%d Hz: %d of 12 sounds are taken for a voice; voices are known after %v ms", rate, stops, late)
		if stops > 2 || slices.Min(late) < 0 || slices.Max(late) > 250 {
			t.Errorf("%d Hz: %d of 12 sounds are taken for a voice; voices are known after %v ms", rate, stops, late)
		}
	}
}

// TestVADTiming: when the beginning and the end of speech are detected, in noise.
func TestVADTiming(t *testing.T) {
	var late, hang []int
	for _, name := range []string{"slt", "awb", "slt2", "awb2"} {
		clean := conversation(t, Narrow, name)
		mixed := noisy(clean, noises["pink"](t, 9, Narrow, len(clean)), Narrow, 15)
		floor := 20*log10(activeLevel(clean, Narrow)) - 20
		v, begin, end, on, off := NewVAD(Narrow), -1, 0, -1, 0
		for i := 0; i+160 <= len(clean); i += 160 {
			if level(clean[i:i+160]) > floor {
				if end = i / 160; begin < 0 {
					begin = end
				}
			}
			if speech, _ := v.Detect(mixed[i : i+160]); speech {
				if off = i / 160; on < 0 {
					on = off
				}
			}
		}
		late, hang = append(late, (on-begin)*20), append(hang, (off-end)*20)
	}
	t.Logf("speech is seen %v ms after its begin, and until %v ms after its end", late, hang)
	for i := range late {
		if late[i] < -200 || late[i] > 100 || hang[i] < 80 || hang[i] > 400 {
			t.Errorf("speech is seen %d ms after its begin, and until %d ms after its end", late[i], hang[i])
		}
	}
}

func BenchmarkVAD(b *testing.B) {
	v, frame := NewVAD(Wide), Frame(whiteNoise(1, 3000, 320))
	for b.Loop() {
		v.Detect(frame)
	}
}
