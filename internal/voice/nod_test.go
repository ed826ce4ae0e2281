package voice

import (
	"slices"
	"testing"

	"parley/internal/audio"
)

// A word of listening is heard once, to its end, and a reply that begins meanwhile is heard in its place.
func TestNodGivesWay(t *testing.T) {
	word := &sound{pcm: slices.Repeat([]int16{7}, 400)}
	for _, c := range []struct {
		name    string
		replies int // the frame in which a reply begins
		want    []int16
	}{
		{"alone", 9, []int16{7, 7, 7, 0, 0}},
		{"a reply begins", 1, []int16{7, 9, 9, 9, 9}},
	} {
		p, got := &peer{}, []int16(nil)
		p.word.Store(word)
		for i := range c.want {
			out, replies := make(audio.Frame, 160), i >= c.replies
			if replies {
				out[0] = 9
			}
			if w := p.word.Load(); w != nil {
				if sounds := p.nod(w, out, replies); sounds != (out[0] != 0) {
					t.Errorf("%s: frame %d sounds: %v", c.name, i, sounds)
				}
			}
			got = append(got, out[0])
		}
		if !slices.Equal(got, c.want) || p.word.Load() != nil || p.nodded != 0 {
			t.Errorf("%s: heard %v, want %v", c.name, got, c.want)
		}
	}
}
