package audio

import (
	"math"
	"slices"
	"testing"
)

func TestLevel(t *testing.T) {
	for _, c := range []struct {
		name        string
		pcm         []int16
		level, peak float64
	}{
		{"nothing", nil, -100, -100},
		{"silence", make([]int16, 160), -100, -100},
		{"full sine", tone(8000, 1000, 32767, 160), -3.01, 0},
		{"sine 20 dB down", tone(8000, 1000, 3276.7, 160), -23.01, -20},
		{"square", slices.Repeat([]int16{-32768, 32767}, 80), 0, 0},
		{"one step", slices.Repeat([]int16{1, -1}, 80), -90.3, -90.3},
	} {
		if got := Level(c.pcm); math.Abs(got-c.level) > 0.05 {
			t.Errorf("%s: level %.2f dBFS, want %.2f", c.name, got, c.level)
		}
		if got := Peak(c.pcm); math.Abs(got-c.peak) > 0.05 {
			t.Errorf("%s: peak %.2f dBFS, want %.2f", c.name, got, c.peak)
		}
	}
}

func TestMix(t *testing.T) {
	dst := []int16{0, 1000, 32000, -32000, 5}
	Mix(dst, []int16{1000, 1000, 10000, -10000}, 0.5)
	if want := []int16{500, 1500, 32767, -32768, 5}; !slices.Equal(dst, want) {
		t.Errorf("mixed: %v, want %v", dst, want)
	}
	Mix(dst, []int16{32767, 32767, 32767, 32767}, 1e9)
	if want := []int16{32767, 32767, 32767, 32767, 5}; !slices.Equal(dst, want) {
		t.Errorf("mixed much too loud: %v", dst)
	}
	f := slices.Repeat([]int16{10000}, 5)
	Fade(f, 0, 1)
	if want := []int16{2000, 4000, 6000, 8000, 10000}; !slices.Equal(f, want) {
		t.Errorf("faded in: %v", f)
	}
	Fade(f, 4, 4)
	if want := []int16{8000, 16000, 24000, 32000, 32767}; !slices.Equal(f, want) {
		t.Errorf("louder: %v", f)
	}
	a, b := whiteNoise(1, 9000, 320), whiteNoise(2, 9000, 320)
	quiet(t, "mixing", func() { Mix(a, b, 0.3); Fade(a, 0.9, 1); Level(a) })
}

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		f    Format
		name string
		pt   uint8
		rate Rate
	}{{PCMU, "PCMU", 0, Narrow}, {PCMA, "PCMA", 8, Narrow}, {G722, "G722", 9, Wide}} {
		if c.f.String() != c.name || c.f.PayloadType() != c.pt || c.f.Rate() != c.rate || c.f.ClockRate() != 8000 {
			t.Errorf("%v: payload type %d, %d Hz, clock %d Hz", c.f, c.f.PayloadType(), c.f.Rate(), c.f.ClockRate())
		}
	}
	if Narrow.FrameSize() != 160 || Wide.FrameSize() != 320 || MaxFrame != 320 {
		t.Error("a frame is 20 ms")
	}
}

func BenchmarkMix(b *testing.B) {
	x, y := whiteNoise(1, 9000, 320), whiteNoise(2, 9000, 320)
	for b.Loop() {
		Mix(x, y, 0.3)
	}
}
