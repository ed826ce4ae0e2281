package audio

import (
	"math"
	"slices"
	"testing"
)

func TestAmbient(t *testing.T) {
	for place := range ambients {
		for _, rate := range []Rate{Narrow, Wide} {
			a, err := NewAmbient(place, rate, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := Level(a.loop); math.Abs(got-AmbientLevel) > 0.5 {
				t.Errorf("%s at %d Hz: level %.1f dBFS", place, rate, got)
			}
			if peak := Peak(a.loop); peak > -6 {
				t.Errorf("%s at %d Hz: peak %.1f dBFS", place, rate, peak)
			}
			// The seam is no steeper than the rest of the sound, and the sound around it is as loud as elsewhere.
			n := len(a.loop)
			steepest := 0
			for i := 1; i < n; i++ {
				steepest = max(steepest, absInt(int(a.loop[i])-int(a.loop[i-1])))
			}
			if seam := absInt(int(a.loop[0]) - int(a.loop[n-1])); seam > steepest/2 {
				t.Errorf("%s at %d Hz: a step of %d at the seam, %d elsewhere", place, rate, seam, steepest)
			}
			// Second differences find a kink where there is no step.
			var kinks []int
			for i := range n {
				x, y, z := int(a.loop[i]), int(a.loop[(i+1)%n]), int(a.loop[(i+2)%n])
				kinks = append(kinks, absInt(x-2*y+z))
			}
			ends := slices.Max(kinks[n-3:])
			slices.Sort(kinks)
			if ends > kinks[n*999/1000] {
				t.Errorf("%s at %d Hz: a kink of %d at the seam, 99.9 %% are below %d", place, rate, ends,
					kinks[n*999/1000])
			}
			again, _ := NewAmbient(place, rate, 1)
			other, _ := NewAmbient(place, rate, 2)
			if !slices.Equal(a.loop, again.loop) || slices.Equal(a.loop, other.loop) {
				t.Errorf("%s: the seed doesn't decide", place)
			}
			// Frames across the seam must match the loop.
			frame, position := make(Frame, rate.FrameSize()), n-100
			position = a.Mix(frame, position, 1)
			if position != rate.FrameSize()-100 || !slices.Equal(frame[:100], Frame(a.loop[n-100:])) ||
				!slices.Equal(frame[100:], Frame(a.loop[:position])) {
				t.Errorf("%s: a frame across the seam is something else", place)
			}
			quiet(t, place, func() { position = a.Mix(frame, position, 0.5) })
		}
	}
	if _, err := NewAmbient("moon", Wide, 1); err == nil {
		t.Error("there is a sound of the moon")
	}
}

func BenchmarkAmbient(b *testing.B) {
	b.Run("make", func(b *testing.B) {
		for b.Loop() {
			NewAmbient("crowded_room", Wide, 1)
		}
	})
	b.Run("mix", func(b *testing.B) {
		a, _ := NewAmbient("cafe", Wide, 1)
		frame, position := make(Frame, 320), 0
		for b.Loop() {
			clear(frame)
			position = a.Mix(frame, position, 0.5)
		}
	})
}
