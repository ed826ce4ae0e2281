package voice

import (
	"slices"
	"testing"

	"parley/internal/audio"
)

// A playout gets fainter, silent and loud again without a click, whatever comes after what, and nothing of it is lost: what
// fades into silence is played again.
func TestBlendsWithoutClicks(t *testing.T) {
	const full, step = 16000, 16000/80 + 1
	faint := int16(full * (1 - aside))
	for _, c := range []struct {
		name string
		do   string // before each frame: g gives way, G doesn't any more, f flinches, j is judged, p is paused, r goes on
		want []int16
	}{
		{"steps back and forth", " g  G ", []int16{full, faint, faint, faint, full, full}},
		{"falls silent from there", " g f  ", []int16{full, faint, faint, 0, 0, 0}},
		{"goes on where somebody still speaks", " g p r ", []int16{full, faint, faint, 0, 0, faint, faint}},
		{"goes on as before", " g pGr ", []int16{full, faint, faint, 0, 0, full, full}},
		{"is not to be silenced", "dg   ", []int16{full, full, full, full, full}},
	} {
		o := &playout{rate: audio.Narrow, armed: true}
		o.add(&part{tape: tape{pcm: slices.Repeat([]int16{full}, 160*20), size: 160 * 20, whole: true}})
		last, played := int16(full), 0
		for i, op := range c.do {
			switch op {
			case 'g', 'G':
				o.giveWay(op == 'g')
			case 'f':
				o.flinch()
			case 'j':
				o.judged()
			case 'p', 'r':
				o.pause(op == 'p')
			case 'd':
				o.arm(false)
			}
			out := make(audio.Frame, 160)
			o.pull(out, 0)
			if out[120] != c.want[i] {
				t.Errorf("%s: frame %d has %d, want %d", c.name, i, out[120], c.want[i])
			}
			if c.want[i] > 0 {
				played += 160
			}
			for j, v := range out {
				if d := int(v) - int(last); d > step || d < -step {
					t.Errorf("%s: a click in frame %d at %d: %d, %d", c.name, i, j, last, v)
				}
				last = v
			}
		}
		if got := o.parts[0].played; got != played {
			t.Errorf("%s: %d samples were played, %d were heard", c.name, got, played)
		}
	}
}
