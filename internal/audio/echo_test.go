package audio

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"parley/internal/turn"
)

// path is the way of an echo: a room or a telephone's hybrid, whose sound dies away by 60 dB within the tail.
func path(seed uint64, rate Rate, tail float64, level float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 9))
	h := make([]float64, max(int(tail*float64(rate)), 1))
	h[0] = 1
	sum := 1.0
	for i := 1; i < len(h); i++ {
		h[i] = 0.35 * r.NormFloat64() * math.Exp(-6.9*float64(i)/float64(len(h)))
		sum += h[i] * h[i]
	}
	for i := range h {
		h[i] *= Gain(level) / math.Sqrt(sum)
	}
	return h
}

// comesBack is what is sent, after a delay, by a path.
func comesBack(sent []int16, h []float64, delay int) []float64 {
	out := make([]float64, len(sent))
	for i := range out {
		for j, g := range h {
			if k := i - delay - j; k >= 0 {
				out[i] += g * float64(sent[k])
			} else {
				break
			}
		}
	}
	return out
}

// echoLine is a call with an echo: what is sent, what comes back and what the far end says itself, and what is made of it.
type echoLine struct {
	rate      Rate
	sent      []int16
	echo      []float64
	near      []int16
	out       []int16
	alone     []bool
	sure      []bool // somebody speaks, whom the assistant would fall silent for
	silences  []bool // likewise, if it goes by the words of the sound as a call does
	spoke     []bool // what is not the echo sounds like speech
	cancelled bool
}

func (l *echoLine) run(jitter uint64) {
	e, v, n := NewEcho(l.rate), NewVAD(l.rate), l.rate.FrameSize()
	r := rand.New(rand.NewPCG(jitter, 3))
	late, i, voiced := 0, 0, 0
	hear := func() {
		f := make(Frame, n)
		for j := range f {
			at := i*n + j
			f[j] = clip(l.echo[at] + float64(l.near[at]) + 8*r.NormFloat64())
		}
		f = DecodeULaw(nil, EncodeULaw(nil, f))
		alone, doubt := e.Clean(f)
		_, yes := v.Detect(f)
		if voiced++; !yes || alone {
			voiced = 0
		}
		l.out, l.alone = append(l.out, f...), append(l.alone, alone)
		sure := voiced >= 3 && v.Sure() && !doubt
		words := v.Words()
		l.sure, l.spoke = append(l.sure, sure), append(l.spoke, yes && !alone)
		l.silences = append(l.silences, sure && turn.StepsBack(words) && turn.Silences(words, time.Duration(voiced)*FrameTime))
		i++
	}
	for k := range len(l.sent)/n - 6 {
		e.Sent(l.sent[k*n : (k+1)*n])
		if jitter > 0 && r.IntN(4) == 0 && late < 4 { // the network's: what is late comes together
			late++
			continue
		}
		for ; late > 0; late-- {
			hear()
		}
		hear()
	}
	l.cancelled = e.filter != nil
}

// less is by how many dB the echo alone is fainter from a time on.
func (l *echoLine) less(from, to float64) float64 {
	n, in, out := l.rate.FrameSize(), 1e-9, 1e-9
	for i := int(from * 50); i < min(int(to*50), len(l.alone)); i++ {
		for j := i * n; j < (i+1)*n; j++ {
			in += l.echo[j] * l.echo[j]
			out += float64(l.out[j]) * float64(l.out[j])
		}
	}
	return 10 * math.Log10(in/out)
}

// changed is how much the far end's own voice is changed, in dB: all of it, and its frames within 20 dB of the active
// level, rms.
func (l *echoLine) changed(from float64) (all, rms float64) {
	n := l.rate.FrameSize()
	floor := 20*log10(activeLevel(l.near, l.rate)) - 20
	in, out, square, count := 0.0, 0.0, 0.0, 0.0
	for i := int(from * 50); i < len(l.alone); i++ {
		a, b := level(l.near[i*n:(i+1)*n]), level(l.out[i*n:(i+1)*n])
		if a > floor {
			in, out = in+math.Pow(10, a/10), out+math.Pow(10, b/10)
			square, count = square+(a-b)*(a-b), count+1
		}
	}
	return 10 * math.Log10(out/in), math.Sqrt(square / count)
}

// scaled is a sound whose active level is so many dBFS.
func scaled(pcm []int16, rate Rate, dB float64) []int16 {
	out := slices.Clone(pcm)
	k := Gain(dB) / activeLevel(pcm, rate)
	Fade(out, k, k)
	return out
}

// TestEcho: by paths of many delays and tails, and with packets that are late, nine of ten echoes are fainter by 25 dB
// and more a second after they first came, hardly any silences the assistant, and the far end's own voice stays.
func TestEcho(t *testing.T) { echoes(t, "", 0, "rms", "kal", "slt") }

// TestEchoHeld measures with paths and voices by which nothing was chosen.
func TestEchoHeld(t *testing.T) { echoes(t, "held out, ", 1000, "awb2", "slt", "kal") }

// echoes of what an assistant says in two voices, while a caller has another.
func echoes(t *testing.T, what string, seed int, one, two, who string) {
	var least []float64
	var waits []int // ms, from a caller's first sound
	cases, stopped, lost, worst := 0, 0, 0, 0.0
	for _, rate := range []Rate{Narrow, Wide} {
		talk := scaled(concat(int(rate)/4, make([]int16, int(rate)/2), speech(t, one, rate), speech(t, two, rate)), rate, -20)
		length := 10 * int(rate)
		talk = slices.Concat(talk, talk, talk)[:length]
		caller := concat(0, make([]int16, 6*int(rate)), speech(t, who, rate), make([]int16, length))[:length]
		for i, delay := range []float64{0.02, 0.065, 0.12, 0.21, 0.333, 0.48} {
			for j, tail := range []float64{0.002, 0.016, 0.04, 0.064} {
				if rate == Wide && (i+j)%3 > 0 && !testing.Verbose() {
					continue
				}
				loud := []float64{-6, -12, -18}[(i+j)%3]
				h := path(uint64(seed+10*i+j), rate, tail, loud)
				l := echoLine{rate: rate, sent: talk, near: scaled(caller, rate, -20)}
				l.echo = comesBack(talk, h, int(delay*float64(rate)))
				l.run(uint64(j % 2 * (i + 1)))
				first := 0.5 + delay
				less := l.less(first+1, 5.8)
				all, rms := l.changed(6.2)
				worst = max(worst, math.Abs(all))
				cases++
				least = append(least, less)
				until := int(5.8 * 50)
				stops := slices.Contains(l.sure[:until], true)
				if stops {
					stopped++
				}
				begins, n := 300, rate.FrameSize()
				for level(l.near[begins*n:(begins+1)*n]) < -45 {
					begins++
				}
				wait := 20 * (slices.Index(l.sure[begins:], true) + 1)
				if wait <= 0 || wait > 300 {
					lost++
				}
				waits = append(waits, wait)
				t.Logf("%d Hz, %v s late, tail %v s, %v dB: %.1f dB less, caller %+.2f dB, rms %.2f dB, stops %v, heard after %d ms",
					rate, delay, tail, loud, less, all, rms, stops, wait)
			}
		}
	}
	slices.Sort(least)
	slices.Sort(waits)
	tenth := least[len(least)/10]
	t.Logf("quality: echo by %d paths, %sa second after it came it is %.1f dB fainter in nine of ten, %.1f dB in the middle (goal >= 25); "+
		"it silences a reply in %d (goal 0); the caller's voice over it is changed by %.2f dB at most (goal <= 1), missed %d times, "+
		"and heard %d ms after its first sound in the middle, %d ms at most (goal <= 150)",
		cases, what, tenth, least[len(least)/2], stopped, worst, lost, waits[len(waits)/2], waits[len(waits)-1])
	if tenth < 25 || least[len(least)/2] < 30 || stopped > 1 || worst > 1 || lost > 0 || waits[len(waits)-1] > 150 {
		t.Errorf("%.1f dB less, %d stopped, caller changed by %.2f dB, %d missed, heard after %d ms", tenth, stopped, worst, lost,
			waits[len(waits)-1])
	}
}

// TestEchoNone: where nothing comes back, whatever the far end says is left as it is, and nothing is held back of it
// for longer than a moment.
func TestEchoNone(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		talk := concat(int(rate)/4, make([]int16, int(rate)/2), speech(t, "rms", rate), speech(t, "kal", rate))
		for _, name := range []string{"slt", "awb", "slt2", "awb2"} {
			near := concat(int(rate)/2, make([]int16, 5*int(rate)/2), speech(t, name, rate), speech(t, name, rate))
			n := min(len(talk), len(near)) / rate.FrameSize() * rate.FrameSize()
			l := echoLine{rate: rate, sent: talk[:n], near: near[:n], echo: make([]float64, n)}
			l.run(0)
			held := 0
			for _, a := range l.alone {
				if a {
					held++
				}
			}
			t.Logf("%s at %d Hz: %d frames taken for an echo", name, rate, held)
			if l.cancelled || held > 12 {
				t.Errorf("%s at %d Hz: %d frames taken for an echo, cancelled %v", name, rate, held, l.cancelled)
			}
			first := slices.Index(l.sure, true)
			v, plain, voiced := NewVAD(rate), -1, 0
			for i := 0; plain < 0 && i < len(l.sure); i++ {
				_, yes := v.Detect(l.out[i*rate.FrameSize() : (i+1)*rate.FrameSize()]) // as it is left
				if voiced++; !yes {
					voiced = 0
				}
				if voiced >= 3 && v.Sure() {
					plain = i
				}
			}
			if first < 0 || first > plain+1 {
				t.Errorf("%s at %d Hz: without an echo heard in frame %d, want %d", name, rate, first, plain)
			}
		}
	}
}

// TestEchoMoves: an echo that stops, or comes another way, is noticed.
func TestEchoMoves(t *testing.T) {
	rate := Narrow
	talk := concat(int(rate)/4, make([]int16, int(rate)/2), speech(t, "rms", rate), speech(t, "kal", rate), speech(t, "rms2", rate))
	talk = slices.Concat(talk, talk)[:16*8000]
	l := echoLine{rate: rate, sent: talk, near: make([]int16, len(talk))}
	l.echo = comesBack(talk, path(1, rate, 0.03, -8), 900)
	other := comesBack(talk, path(2, rate, 0.03, -8), 2500)
	for i := 6 * 8000; i < len(talk); i++ {
		l.echo[i] = other[i]
		if i > 12*8000 {
			l.echo[i] = 0
		}
	}
	l.run(0)
	t.Logf("%.1f dB less, and %.1f after it moved", l.less(2, 6), l.less(8.5, 12))
	if l.less(2, 6) < 25 || l.less(8.5, 12) < 25 || l.cancelled {
		t.Errorf("%.1f dB less, and %.1f after it moved; at the end still cancelled: %v", l.less(2, 6), l.less(8.5, 12), l.cancelled)
	}
}

func TestEchoAllocates(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		e, n, i := NewEcho(rate), rate.FrameSize(), 0
		pcm, f := whiteNoise(1, 3000, 300*n), make(Frame, n)
		both := func() {
			e.Sent(pcm[i*n : (i+1)*n])
			copy(f, pcm[i*n:(i+1)*n])
			e.Clean(f)
			i++
		}
		for range 50 {
			both()
		}
		quiet(t, "echo canceller", both)
		if e.filter == nil {
			t.Errorf("%d Hz: what comes back at once is no echo", rate)
		}
	}
}

func BenchmarkEcho(b *testing.B) {
	for _, rate := range []Rate{Narrow, Wide} {
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprint(int(rate), on), func(b *testing.B) {
				e, n, i := NewEcho(rate), rate.FrameSize(), 0
				pcm, f := whiteNoise(1, 3000, 300*n), make(Frame, n)
				for b.Loop() {
					e.Sent(pcm[i*n : (i+1)*n])
					if clear(f); on {
						copy(f, pcm[i*n:(i+1)*n])
					}
					e.Clean(f)
					i = (i + 1) % 300
				}
			})
		}
	}
}

// TestEchoLooksSeldom: a caller who interrupts after much was said and nothing came back is looked at in one frame of
// ten alone. A search costs more than all else that is done with a frame, and many calls may be interrupted at once. Where
// there was an echo, which has moved or was lost, each frame is looked at.
func TestEchoLooksSeldom(t *testing.T) {
	for _, known := range []bool{false, true} {
		e, n := NewEcho(Narrow), Narrow.FrameSize()
		e.known = known
		sent, near := whiteNoise(1, 3000, 150*n), whiteNoise(2, 3000, 150*n)
		for i := range 150 {
			e.Sent(sent[i*n : (i+1)*n])
			f := make(Frame, n)
			if i >= 100 {
				copy(f, near[i*n:])
			}
			e.Clean(f)
		}
		if e.search == nil || e.search.frames < 1 || known != (e.search.frames > 6) {
			t.Errorf("of 50 frames of an interruption, after an echo %v, these were looked at: %+v", known, e.search)
		}
	}
}

// TestEchoBegins: after a pause of the assistant, in which the line has only its noise, an echo is turned down from its
// beginning on; after a voice it isn't at once, as the voice may go on.
func TestEchoBegins(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		n := rate.FrameSize()
		noise, talk := whiteNoise(1, 2000, 400*n), make([]int16, 400*n)
		for i := range 8 { // 0.6 s of sound each, and 0.4 s of none
			copy(talk[i*50*n:], noise[i*50*n:(i*50+30)*n])
		}
		for _, speaks := range []bool{false, true} {
			l := echoLine{rate: rate, sent: talk, near: make([]int16, len(talk))}
			if speaks {
				copy(l.near[340*n:], whiteNoise(2, 3000, 8*n)) // just before the last
			}
			l.echo = comesBack(talk, path(1, rate, 0.02, -10), 2*n)
			l.run(0)
			first := level(l.out[352*n : 357*n])
			t.Logf("at %d Hz, after a voice %v: it begins with %.1f dB", rate, speaks, first)
			if quiet := 20 * math.Log10(5.0/32768); first < quiet == speaks { // the line's noise has 8
				t.Errorf("at %d Hz, after a voice %v: the echo begins with %.1f dB, its limit is %.1f", rate, speaks, first, quiet)
			}
		}
	}
}
