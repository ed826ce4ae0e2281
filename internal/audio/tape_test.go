package audio

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// However often and however much is read, it is what was written, in order, utterance by utterance; samples that did
// not fit are counted.
func TestTape(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		tape := NewTape(Narrow, 200*time.Millisecond, 60*time.Millisecond, time.Second)
		type utterance struct {
			pcm  []int16
			lost int
		}
		var wrote, got []utterance
		var now, read utterance
		taken, next := 0, int16(0) // how much of the current utterance counts against the limit
		room := func() int {
			all := len(now.pcm)
			for _, u := range wrote {
				all += len(u.pcm)
			}
			for _, u := range got {
				all -= len(u.pcm)
			}
			return 1600 - (all - len(read.pcm))
		}
		take := func() bool {
			p, ok := tape.Next(nil)
			if ok {
				read.pcm = append(read.pcm, p.PCM...)
			}
			if p.End {
				read.lost = p.Lost
				got, read = append(got, read), utterance{}
			}
			return ok
		}
		for range 300 {
			switch r.IntN(8) {
			case 0:
				if len(wrote)-len(got) < 10 {
					tape.End()
					wrote, now, taken = append(wrote, now), utterance{}, 0
				}
			case 1, 2, 3:
				take()
			default:
				pcm := make([]int16, 160)
				for i := range pcm {
					next++
					pcm[i] = next
				}
				tape.Write(pcm)
				pcm = pcm[:min(160, 8000-taken)]
				taken += len(pcm)
				fits := min(len(pcm), room())
				now.pcm, now.lost = append(now.pcm, pcm[:fits]...), now.lost+len(pcm)-fits
			}
			if tape.Ending() != (len(wrote) > len(got)) {
				t.Fatalf("seed %d: Ending is %v", seed, tape.Ending())
			}
		}
		tape.End()
		wrote = append(wrote, now)
		for take() {
		}
		if !slices.EqualFunc(wrote, got, func(a, b utterance) bool { return a.lost == b.lost && slices.Equal(a.pcm, b.pcm) }) {
			t.Fatalf("seed %d: %d utterances were written, and others read", seed, len(wrote))
		}
	}
}

// When the reader keeps up, most of the tape's memory stays untouched, so that a call needs little of it.
func TestTapeStaysSmall(t *testing.T) {
	tape := NewTape(Narrow, 20*time.Second, 80*time.Millisecond, 0)
	pcm, buf := make([]int16, 160), make([]int16, 0, 640)
	for i := range pcm {
		pcm[i] = 1
	}
	n := testing.AllocsPerRun(6000, func() {
		tape.Write(pcm)
		tape.Next(buf)
	})
	if n != 0 {
		t.Errorf("a frame allocates %v times", n)
	}
	if used := slices.Index(tape.ring, 0); used > 8*160 {
		t.Errorf("%d samples of the tape were used", used)
	}
}
