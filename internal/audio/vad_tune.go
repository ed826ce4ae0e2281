package audio

import "math"

// tune is what a stream has of music: notes keep their pitch and change it at once, where a voice glides, and what sounds
// does not move as that of a mouth does.
type tune struct {
	pitch, clear [vadSoon + 1]float32 // of the newest frames: halftones, and how clear

	held, tones   float32 // how often, lately, pitch and tones stayed
	tilt, moves   float32 // dB by which high sounds are weaker than low ones, and how much that changes
	quick, slowly float32 // scores, smoothed
	beats         float32 // how they go up and down, as syllables do
}

// music sets the inputs that say so.
func (v *VAD) music(inputs []float32, score float64, shape [vadBands]float64) {
	t, n := &v.sung, len(v.fine)
	inputs[0] = 2 * v.fine[v.frames%n].like(&v.fine[(v.frames+n-vadShort)%n])
	short, glide := t.stays(v.frames, vadShort)
	long, _ := t.stays(v.frames, vadSoon)
	inputs[1], inputs[2], inputs[3] = 2*short, 2*long, 2*glide
	t.held += 0.02 * (long - t.held)
	t.tones += 0.01 * (v.second.x[vadBasic-2]/2 - t.tones)
	tilt := float32(0)
	for b, db := range shape {
		if b < vadBands/2 {
			tilt += float32(db) / (vadBands / 2)
		} else {
			tilt -= float32(db) / (vadBands / 2)
		}
	}
	tilt = max(-30, min(tilt, 30))
	t.tilt += 0.04 * (tilt - t.tilt)
	t.moves += 0.02 * (max(tilt-t.tilt, t.tilt-tilt) - t.moves)
	t.quick += 0.4 * (float32(score) - t.quick)
	t.slowly += 0.12 * (float32(score) - t.slowly)
	t.beats += 0.015 * (max(t.quick-t.slowly, t.slowly-t.quick) - t.beats)
	inputs[4], inputs[5], inputs[6], inputs[7] = 4*t.held, 4*t.tones, t.moves/5-1, t.beats-1
}

// stays says how clearly the pitch is what it was so many frames before, and how clearly it is another one.
func (t *tune) stays(frame, before int) (same, other float32) {
	n := len(t.pitch)
	i, j := frame%n, (frame+n-before)%n
	clear, by := min(t.clear[i], t.clear[j]), t.pitch[i]-t.pitch[j]
	by = min(max(by, -by), 3)
	return clear * exp(-3*by), clear * by / 3
}

// sing remembers the pitch of this frame, more exactly than pitch gives it. alike says how alike the sound is to itself so
// many samples later; the shortest time after which it nearly is as alike as ever counts.
func (t *tune) sing(frame int, alike []float32, first int, most float32) {
	at := frame % len(t.pitch)
	t.clear[at] = 0
	for i := first; i+1 < len(alike); i++ {
		a, b, c := alike[i-1], alike[i], alike[i+1]
		if b < 0.85*most || b < a || b < c || b < 0.3 {
			continue
		}
		lag := float32(i)
		if bend := a - 2*b + c; bend < -1e-4 {
			lag += 0.5 * (a - c) / bend
		}
		t.clear[at], t.pitch[at] = b, float32(12*math.Log2(float64(lag)))
		return
	}
}
