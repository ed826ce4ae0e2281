package audio

import (
	"testing"
)

// hearing is how a detector did: frames of speech and of pauses, and those that it got right or wrong.
type hearing struct{ speech, hit, pause, false int }

func (h *hearing) add(o hearing) {
	h.speech, h.hit, h.pause, h.false = h.speech+o.speech, h.hit+o.hit, h.pause+o.pause, h.false+o.false
}

func (h hearing) rates() (hit, false float64) {
	return 100 * float64(h.hit) / float64(h.speech), 100 * float64(h.false) / float64(max(h.pause, 1))
}

// listen runs a detector over speech in noise. Speech are frames within 20 dB of the clean speech's active level; pauses begin 300 ms after
// the last of them; the first second is not counted.
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
		case since > 15:
			h.pause++
			if speech {
				h.false++
			}
		}
	}
	return h
}

// conversation is speech with pauses: 3 s, each of the voices, and 2 s after it.
func conversation(t testing.TB, rate Rate, names ...string) []int16 {
	pieces := [][]int16{make([]int16, int(rate))}
	for _, name := range names {
		pieces = append(pieces, speech(t, name, rate))
	}
	return concat(2*int(rate), pieces...)
}
func vadRates(t testing.TB, seed uint64, kinds []string, names ...string) map[string]hearing {
	all := map[string]hearing{}
	for _, rate := range []Rate{Narrow, Wide} {
		clean := conversation(t, rate, names...)
		for _, kind := range kinds {
			h := all[kind]
			h.add(listen(clean, noisy(clean, noises[kind](t, seed, rate, len(clean)), rate, 10), rate))
			all[kind] = h
		}
	}
	return all
}

func TestVADTune(t *testing.T) {
	for kind, h := range vadRates(t, 3, []string{"white", "pink", "car", "babble", "street"}, "rms", "kal", "rms2", "kal2") {
		hit, false := h.rates()
		t.Logf("%s: hit %.1f %%, false %.1f %%", kind, hit, false)
	}
}
