//go:build train

package audio

import (
	"bytes"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// trainer makes the networks of VAD, one at a time: the first, or with PARLEY_TRAIN_SECOND=1 the second, which begins as a copy
// of the first with more units and inputs. They learn from conversations that it puts together, each one some seven times: people of
// testdata/real.tsv (and, one in eight, voices of espeak-ng in seven languages and two of flite's), in noises of that
// list or made here, which come through resonances by lot, 0 to 20 dB below the speech or, in one of three, much less, with sudden sounds in it, through a
// telephone's codec. In one of three the line is quiet, and the sounds are as loud as speech. PARLEY_TRAIN_MINUTES says
// how many minutes of processor it takes (30): the machine may have other things to do. Of flite, slt and awb are kept for
// the tests.
type trainer struct {
	t      *testing.T
	rand   *rand.Rand
	people map[Rate][][]int16
	voices map[Rate][][]int16
	noises map[string]map[Rate][][]int16
	shelf  []lesson // lessons to be used again
	pick   *rand.Rand
	kind   string // of the last noise
}

var sentences = map[string]string{
	"en": "I wanted to ask whether you still have a room for the weekend after next. We would arrive on Friday, around eight. Is breakfast included?",
	"de": "Guten Tag, ich möchte gerne einen Termin vereinbaren. Am besten passt mir der Donnerstag. Haben Sie da noch etwas frei?",
	"fr": "Bonjour, je voudrais réserver une table pour demain soir. Nous serons quatre personnes. Merci beaucoup.",
	"es": "Buenos días, quisiera saber a qué hora abren mañana. También necesito la dirección de la tienda.",
	"it": "Buongiorno, vorrei prenotare una camera doppia per due notti. Quanto costa la colazione?",
	"nl": "Goede morgen, ik wil graag een afspraak maken voor volgende week. Dank u wel en tot ziens.",
	"pl": "Dzień dobry, bardzo proszę o telefon jutro rano. Nie wiem, czy będę miał czas po południu.",
}

func TestVADTrain(t *testing.T) {
	tr := &trainer{t: t, rand: rand.New(rand.NewPCG(1, 1)), pick: rand.New(rand.NewPCG(1, 2)), people: map[Rate][][]int16{}, voices: map[Rate][][]int16{},
		noises: map[string]map[Rate][][]int16{}}
	for _, r := range recordings(t, "train") {
		switch {
		case r.kind != "speech":
			if tr.noises[r.kind] == nil {
				tr.noises[r.kind] = map[Rate][][]int16{}
			}
			tr.add(tr.noises[r.kind], r.pcm)
		case still(r.pcm):
			tr.add(tr.people, alone(r.pcm, Wide))
		}
	}
	for i, voice := range strings.Fields("en-us+m3 en-us+f2 en-gb+m5 en-gb+f4 de+m2 de+f3 fr+f1 es+m7 it+f2 nl+f5 pl+m6 fr+m1") {
		tr.say("espeak-ng", "-v", voice, "-s", fmt.Sprint(140+5*i), "--stdout", sentences[voice[:2]])
	}
	for _, name := range []string{"rms", "rms2", "kal", "kal2"} {
		tr.add(tr.voices, speech(t, name, Wide))
	}
	for _, place := range []string{"office", "city", "crowded_room", "cafe", "nature"} {
		a, err := NewAmbient(place, Wide, 99)
		if err != nil {
			t.Fatal(err)
		}
		tr.add(tr.noises["machines"], a.loop)
	}
	fmt.Printf("%d recordings of people\n", len(tr.people[Wide]))
	tr.learn()
}

func (tr *trainer) say(program string, args ...string) {
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		tr.t.Fatal(err)
	}
	// espeak-ng speaks at 22.05 kHz.
	cmd := exec.Command("ffmpeg", "-v", "error", "-i", "-", "-ar", "16000", "-ac", "1", "-f", "wav", "-")
	cmd.Stdin = bytes.NewReader(out)
	if out, err = cmd.Output(); err != nil {
		tr.t.Fatal(err)
	}
	_, pcm := readWAV(tr.t, out)
	tr.add(tr.voices, pcm[:min(len(pcm), 10*16000)])
}

func (tr *trainer) add(to map[Rate][][]int16, pcm []int16) {
	to[Narrow] = append(to[Narrow], resampled(tr.t, pcm, 16000, 8000))
	to[Wide] = append(to[Wide], pcm[:len(pcm)/320*320])
}

// lesson is what can be learned from a conversation, frame by frame.
type lesson struct {
	x     [][vadInputs]float32
	marks []int8              // -1: it doesn't matter
	fresh []bool              // somebody has just begun to speak
	loud  []bool              // a noise is almost as loud as the speech, or louder
	kind  string              // of noise
	share [][vadBands]float32 // speech's share of each band's power, as the gain that keeps it
	sure  [][vadBands]float32 // how much that counts
}

// converse makes a conversation; every third begins with speech at once, and in one of eight nobody says anything.
func (tr *trainer) converse() lesson {
	r, rate := tr.rand, Wide
	if r.IntN(3) > 0 {
		rate = Narrow
	}
	clean := make([]int16, int(float64(rate)*4*r.Float64())*min(r.IntN(3), 1))
	length, sudden := (8+12*r.IntN(2))*int(rate), r.IntN(3) == 0
	snr := 20 * r.Float64()
	switch {
	case sudden:
		snr = 40 + 40*r.Float64()
	case r.IntN(3) == 0:
		snr = 20 + 50*r.Float64()
	}
	silent := r.IntN(7) == 0 || sudden && r.IntN(3) == 0
	voice := tr.voices[rate]
	if r.IntN(8) > 0 {
		voice = tr.people[rate]
	}
	loud := math.Pow(10, -2.3*r.Float64()*r.Float64())
	for len(clean) < length {
		part := tr.excerpt(voice, rate, 0.4+5*r.Float64()*r.Float64())
		begin, gain := len(clean), loud*(0.7+0.6*r.Float64())*0.1/(activeLevel(part, rate)+1e-4)
		if snr > 25 && r.IntN(5) == 0 { // on a quiet line one may turn away and is heard
			gain *= Gain(-6 - 6*r.Float64())
		}
		clean = append(clean, part...)
		Fade(clean[begin:], gain, gain)
		if r.IntN(5) > 0 {
			clean = append(clean, make([]int16, int(float64(rate)*4*r.Float64()*r.Float64()))...)
		}
	}
	if r.IntN(3) == 0 {
		x := make([]float64, len(clean))
		for i, v := range clean {
			x[i] = float64(v)
		}
		for i, v := range tr.coloured(x, rate, 6) {
			clean[i] = clip(v)
		}
	}
	clean = append(clean, make([]int16, int(rate))...)
	if r.IntN(20) == 0 { // a whisper has no pitch
		for i := range clean {
			if r.IntN(2) == 0 {
				clean[i] = -clean[i]
			}
		}
	}
	n := rate.FrameSize()
	clean = clean[:len(clean)/n*n]
	marks := marked(clean, rate)
	active := max(activeLevel(clean, rate)*32768, 3)
	if silent {
		clear(clean)
		clear(marks)
	}
	noise := tr.disturb(rate, len(clean), active, snr, sudden, silent)
	mixed := make([]int16, len(clean))
	for i, s := range clean {
		mixed[i] = clip(float64(s) + noise[i])
	}
	if r.IntN(3) > 0 {
		mixed = DecodeULaw(nil, EncodeULaw(nil, mixed))
	}
	return tr.lesson(rate, clean, mixed, noise, marks, active)
}

func (tr *trainer) excerpt(from [][]int16, rate Rate, seconds float64) []int16 {
	part := from[tr.rand.IntN(len(from))]
	n := min(int(seconds*float64(rate)), len(part))
	at := tr.rand.IntN(len(part) - n + 1)
	return tilted(part[at:at+n], 1.2*tr.rand.Float64()-0.6)
}

// tilted has more of the high sounds (below 0), or of the low ones: telephones and rooms differ in that.
func tilted(pcm []int16, k float64) []int16 {
	out, last := make([]int16, len(pcm)), 0.0
	for i, s := range pcm {
		if k < 0 {
			out[i], last = clip(0.7*(float64(s)+k*last)), float64(s)
		} else {
			last = (1-k)*float64(s) + k*last
			out[i] = clip(last)
		}
	}
	return out
}

// other is a part of a sound that is no speech, faster or slower than it was: another dog, another door.
func (tr *trainer) other(from [][]int16, rate Rate, seconds float64) []int16 {
	return paced(tr.excerpt(from, rate, seconds), math.Exp(0.5*tr.rand.Float64()-0.25))
}

// paced is a sound so many times as fast, and as high.
func paced(pcm []int16, pace float64) []int16 {
	out := make([]int16, int(float64(len(pcm)-1)/pace))
	for i := range out {
		at := float64(i) * pace
		j, share := int(at), at-math.Floor(at)
		out[i] = int16(float64(pcm[j])*(1-share) + float64(pcm[min(j+1, len(pcm)-1)])*share)
	}
	return out
}

func (tr *trainer) lesson(rate Rate, clean, mixed []int16, noise []float64, marks []int8, active float64) (l lesson) {
	v, alone, other, n := NewVAD(rate), NewVAD(rate), NewVAD(rate), rate.FrameSize()
	rest := make([]int16, n)
	for i := range marks {
		for j := range rest {
			rest[j] = clip(noise[i*n+j])
		}
		l.loud = append(l.loud, 20*log10(active/32768)-20 < level(rest))
		v.listen(mixed[i*n : (i+1)*n])
		alone.spectral(clean[i*n : (i+1)*n])
		other.spectral(rest)
		var share, sure [vadBands]float32
		for b := range share {
			s, o := alone.now[b], other.now[b]
			share[b] = float32(math.Sqrt(s / (s + o)))
			if s+o > 300 { // in silence there is no share to learn
				sure[b] = 1
			}
		}
		l.x = append(l.x, [vadInputs]float32(v.second.x[:vadInputs]))
		l.share, l.sure = append(l.share, share), append(l.sure, sure)
	}
	l.kind, l.marks, l.fresh = tr.kind, marks, make([]bool, len(marks))
	since := 100
	for i, mark := range marks {
		if since++; mark == 1 && since > 25 {
			for j := i + 1; j < min(i+6, len(marks)); j++ {
				l.fresh[j] = true
			}
		}
		if mark == 1 {
			since = 0
		}
	}
	return l
}

// disturb makes the noise of a conversation in which the speech is so loud.
func (tr *trainer) disturb(rate Rate, n int, active, snr float64, sudden, silent bool) []float64 {
	r := tr.rand
	x := make([]float64, n)
	tr.kind = ""
	often := []float64{0, 0.15, 0.3, 0.5}[r.IntN(4)]
	if sudden {
		often = 0.6
	}
	if r.IntN(12) > 0 {
		talkers := 3 + r.IntN(7)
		if silent {
			talkers += 2
		} else if talkers < 5 { // a few others are told from who calls by their level alone
			snr = max(snr, 7)
		}
		k := active * Gain(-snr)
		for i, s := range tr.noise(rate, uint64(r.Int64()), n, talkers) {
			x[i] = k * s
		}
	}
	for range int(often * float64(n) / float64(rate) * 2 * r.Float64()) {
		clip := tr.noises["clip"][rate]
		if r.IntN(4) == 0 {
			clip = tr.noises[[]string{"typing", "music", "machines"}[r.IntN(3)]][rate]
		}
		part := tr.other(clip, rate, 0.1+4*r.Float64()*r.Float64())
		if r.IntN(8) == 0 {
			part = tr.cough(rate)
		}
		gain := Gain(-20 + 30*r.Float64())
		if sudden {
			gain = Gain(-8 + 14*r.Float64())
		}
		k := active * gain / (32768*activeLevel(part, rate) + 1)
		at := r.IntN(n)
		for i := range min(len(part), n-at) {
			edge := min(1, float64(i)/float64(rate)*200, float64(len(part)-i)/float64(rate)*100)
			x[at+i] += k * edge * float64(part[i])
		}
	}
	return x
}

// noise is a lasting noise; its rms is 1. If it is that of people, so many of them talk.
func (tr *trainer) noise(rate Rate, seed uint64, n, talkers int) []float64 {
	r := tr.rand
	x := make([]float64, n)
	fill := func(from [][]int16, gain float64) {
		for i := 0; i < n; {
			part := from[r.IntN(len(from))]
			part = part[r.IntN(max(len(part)/2, len(part)-15*int(rate))):]
			k := gain / (32768*activeLevel(part, rate) + 1)
			for at, pace := 0.0, math.Exp(0.4*r.Float64()-0.2); int(at)+1 < len(part) && i < n; at += pace {
				j, share := int(at), at-math.Floor(at)
				x[i] += k * (float64(part[j])*(1-share) + float64(part[j+1])*share)
				i++
			}
		}
	}
	places := tr.noises
	switch kind := r.IntN(28); {
	case kind == 0:
		return noises["white"](tr.t, seed, rate, n)
	case kind == 1:
		return pink(seed, n)
	case kind < 7:
		tr.kind = "babble"
		if len(places["babble"][rate]) > 0 && r.IntN(4) == 0 {
			fill(places["babble"][rate], 1)
			break
		}
		from := tr.people[rate]
		if r.IntN(5) == 0 {
			from = tr.voices[rate]
		}
		for range talkers {
			fill(from, 0.5+r.Float64())
		}
		if r.IntN(3) == 0 { // most of it comes from the walls
			x = tr.echoed(x, rate)
		}
	case kind < 10:
		tr.kind = "machines"
		fill(places["machines"][rate], 1)
	case kind < 12:
		fill(places["typing"][rate], 1)
	case kind < 18:
		tr.kind = "music"
		tr.play(x, places["music"][rate], rate)
	case kind < 20:
		tr.kind = "music"
		x = tr.tune(rate, n)
	case kind < 21:
		fill(places["clip"][rate], 1)
	case kind < 22:
		return unit(tr.keys(rate, n))
	case kind < 25:
		tr.kind = "music"
		x = tr.tune(rate, n)
		if r.IntN(4) == 0 {
			for i, v := range tr.tune(rate, n) {
				x[i] += v
			}
		}
	case kind < 26: // a place with several noises
		fill(places["machines"][rate], 0.7)
		fill(places[[]string{"typing", "clip", "music"}[r.IntN(3)]][rate], 0.7)
		fill(tr.people[rate], 0.3)
	default:
		tr.kind = "machines"
		x = pink(seed, n)
		often, begin := 0.1+0.4*r.Float64(), 6*r.Float64()
		for i := range x {
			x[i] *= math.Exp(0.8 * math.Sin(begin+2*math.Pi*often*float64(i)/float64(rate)))
		}
	}
	return unit(tr.coloured(x, rate, 12))
}

// coloured is a sound that came another way: through up to three resonances or the opposite, of so many dB at most. It is
// not heard, but keeps the network from learning what these recordings have in common.
func (tr *trainer) coloured(x []float64, rate Rate, most float64) []float64 {
	for range tr.rand.IntN(4) {
		// a peaking equalizer, as in the Audio EQ Cookbook (R. Bristow-Johnson)
		hz := 150 * math.Exp(math.Log(3600.0/150)*tr.rand.Float64())
		gain, q := math.Pow(10, most*(2*tr.rand.Float64()-1)/40), 0.4+2*tr.rand.Float64()
		w := 2 * math.Pi * hz / float64(rate)
		alpha, c := math.Sin(w)/(2*q), -2*math.Cos(w)
		b0, b2, a0, a2 := 1+alpha*gain, 1-alpha*gain, 1+alpha/gain, 1-alpha/gain
		var x1, x2, y1, y2 float64
		for i, v := range x {
			y := (b0*v + c*x1 + b2*x2 - c*y1 - a2*y2) / a0
			x1, x2, y1, y2 = v, x1, y, y1
			x[i] = y
		}
	}
	return x
}

// play adds music: pieces that are in another key and slower or faster than they were, duller or brighter, and at times two at
// once, or louder and softer by turns.
func (tr *trainer) play(x []float64, from [][]int16, rate Rate) {
	r := tr.rand
	for range 1 + r.IntN(5)/4 {
		for at := 0; at < len(x); {
			part := from[r.IntN(len(from))]
			part = part[r.IntN(max(len(part)/2, len(part)-15*int(rate))):]
			pace, tilt := math.Exp(0.7*r.Float64()-0.35), 0.0
			if r.IntN(2) == 0 {
				tilt = 1.2*r.Float64() - 0.6
			}
			part = tilted(part[:min(len(part), int(pace*float64(len(x)-at))+2)], tilt)
			k := (0.5 + r.Float64()) / (32768*activeLevel(part, rate) + 1)
			swell, often, begin := 0.0, 0.05+0.3*r.Float64(), 6*r.Float64()
			if r.IntN(3) == 0 {
				swell = 0.7 * r.Float64()
			}
			for i := 0; at < len(x); i++ {
				now := float64(i) * pace
				j, share := int(now), now-math.Floor(now)
				if j+1 >= len(part) {
					break
				}
				s := k * (float64(part[j])*(1-share) + float64(part[j+1])*share)
				if swell > 0 {
					s *= math.Exp(swell * math.Sin(begin+2*math.Pi*often*float64(i)/float64(rate)))
				}
				x[at] += s
				at++
			}
		}
	}
	if r.IntN(10) == 0 {
		copy(x, tr.echoed(x, rate))
	}
}

// echoed is a sound in a large room, far from the microphone.
func (tr *trainer) echoed(x []float64, rate Rate) []float64 {
	r, out := tr.rand, make([]float64, len(x))
	decay := 0.1 + 0.5*r.Float64()
	for range 24 {
		s := 0.4 * r.Float64()
		k, late := math.Exp(-s/decay), int(s*float64(rate))
		if r.IntN(2) == 0 {
			k = -k
		}
		for i := late; i < len(x); i++ {
			out[i] += k * x[i-late]
		}
	}
	return out
}

// keys is typing: presses and releases on a keyboard whose keys each ring in their own way.
func (tr *trainer) keys(rate Rate, n int) []float64 {
	r, x := tr.rand, make([]float64, n)
	body, decay := 300+2500*r.Float64(), 0.003+0.012*r.Float64()
	pace, loud := 0.07+0.25*r.Float64(), 0.2+0.8*r.Float64()
	stroke := func(at, gain float64) {
		begin, hz, fade := int(at*float64(rate)), body*(0.7+0.6*r.Float64()), decay*(0.6+0.8*r.Float64())
		a, b := 0.0, 0.0 // a resonance
		q := math.Exp(-1 / (fade * float64(rate)))
		c := 2 * q * math.Cos(2*math.Pi*min(hz, float64(rate)*0.45)/float64(rate))
		for i := range int(6 * fade * float64(rate)) {
			hit := r.NormFloat64() * math.Exp(-float64(i)/(0.3*fade*float64(rate)))
			a, b = hit+c*a-q*q*b, a
			if j := begin + i; j < n {
				x[j] += gain * (a*0.3 + hit)
			}
		}
	}
	for at := 0.0; at < float64(n)/float64(rate); at += pace * (0.4 + 1.2*r.Float64()) {
		if r.IntN(15) == 0 {
			at += 2 * r.Float64()
		}
		gain := 1 - loud + loud*2*r.Float64()
		stroke(at, gain)
		stroke(at+0.05+0.06*r.Float64(), gain*0.6*r.Float64())
	}
	for i := range x {
		x[i] += 0.01 * r.NormFloat64()
	}
	return x
}

// cough is one, or somebody who clears their throat: air that bursts through a mouth, once or more, and ends hoarse.
func (tr *trainer) cough(rate Rate) []int16 {
	r := tr.rand
	var x []float64
	for range 1 + r.IntN(3) {
		n, hz, voice := int(float64(rate)*(0.15+0.3*r.Float64())), 400+1200*r.Float64(), 80+150*r.Float64()
		hoarse, phase := 0.4*r.Float64(), 0.0
		var a, b, c, d float64 // two resonances
		for i := range n {
			t := float64(i) / float64(rate)
			phase += voice * (1 + 0.3*r.NormFloat64()) / float64(rate)
			push := r.NormFloat64() * (math.Exp(-t/0.03) + 0.35*math.Exp(-t/0.12))
			if phase > 1 {
				phase, push = phase-1, push+8*hoarse*math.Exp(-math.Abs(t-0.12)/0.08)
			}
			a, b = push+1.8*math.Cos(2*math.Pi*hz/float64(rate))*a-0.85*b, a
			c, d = a+1.7*math.Cos(2*math.Pi*2.2*hz/float64(rate))*c-0.75*d, c
			x = append(x, c*min(1, t*200))
		}
		x = append(x, make([]float64, int(float64(rate)*0.15*r.Float64()))...)
	}
	out := make([]int16, len(x))
	for i, s := range unit(x) {
		out[i] = clip(3000 * s)
	}
	return out
}

// tune is music: chords and a melody on instruments that are plucked, struck, blown or bowed, in phrases, and sometimes a drum.
func (tr *trainer) tune(rate Rate, n int) []float64 {
	r, x := tr.rand, make([]float64, n)
	beat, key := 0.11+0.55*r.Float64()*r.Float64()+0.05*r.Float64(), 110*math.Pow(2, 3*r.Float64())
	drum, dense := r.IntN(3), 0.3+0.7*r.Float64()
	scale := []float64{0, 2, 4, 5, 7, 9, 11}
	if r.IntN(2) == 0 {
		scale = []float64{0, 2, 3, 5, 7, 8, 10}
	}
	melody, chords := tr.instrument(rate), tr.instrument(rate)
	second := float64(rate)
	step := r.IntN(14)
	for at := 0.0; at < float64(n)/second; at += beat * float64(1+r.IntN(4)/3) {
		if r.IntN(25) == 0 {
			at += 2.5 * r.Float64() // between two phrases
		}
		if r.Float64() < dense {
			if step += r.IntN(7) - 3; r.IntN(4) == 0 {
				step = r.IntN(14)
			}
			step = max(0, min(step, 13))
			melody(x, at, key*math.Pow(2, scale[step%7]/12+float64(step/7)), 1)
		}
		if r.IntN(4) == 0 {
			root := r.IntN(5)
			for _, d := range []int{0, 2, 4} {
				chords(x, at, key/2*math.Pow(2, scale[(root+d)%7]/12), 0.5)
			}
		}
		if drum == 1 {
			for i := range int(0.1 * second) {
				if j := int(at*second) + i; j < n {
					x[j] += 1.5 * r.NormFloat64() * math.Exp(-float64(i)/(0.02*second))
				}
			}
		}
	}
	for i := range x {
		x[i] += 0.003 * r.NormFloat64()
	}
	return x
}

// instrument adds notes to a piece. Its partials are harmonics, stretched ones as of a piano, or those of a bell or a bar.
func (tr *trainer) instrument(rate Rate) func(x []float64, at, hz, gain float64) {
	r, second := tr.rand, float64(rate)
	bright, hold, waver := 0.4+2.2*r.Float64(), 0.06+1.6*r.Float64()*r.Float64(), 0.006*r.Float64()*float64(r.IntN(2))
	attack, strings, most := 40+200*r.Float64(), 1+2*r.IntN(2), 1+r.IntN(10) // a few strings together are never quite in tune
	if r.IntN(3) == 0 {
		attack, hold = 4+14*r.Float64(), hold+0.7
	}
	stopped, glide := math.Inf(1), 0.0
	if r.IntN(3) == 0 {
		stopped = 0.06 + 0.3*r.Float64() // staccato
	}
	if r.IntN(5) == 0 {
		glide = 0.06 * (2*r.Float64() - 1) // as a guitar's string is bent
	}
	ratio, loud := make([]float64, most), make([]float64, most)
	stretch, bell := 0.002*r.Float64()*float64(r.IntN(2)), r.IntN(4) == 0
	for h := range ratio {
		f := float64(h + 1)
		ratio[h], loud[h] = f*math.Sqrt(1+stretch*f*f), math.Pow(f, -bright)*(0.3+r.Float64())
		if bell && h > 0 {
			ratio[h] = ratio[h-1] + 0.5 + 2.5*r.Float64()
		}
		if r.IntN(6) == 0 {
			loud[h] *= 0.1
		}
	}
	return func(x []float64, at, hz, gain float64) {
		begin, n := int(at*second), len(x)
		gain *= (0.4 + 0.8*r.Float64()) / float64(strings)
		for range strings {
			tuned := hz * (1 + 0.003*r.NormFloat64())
			for h, f := range ratio {
				if f*tuned > second*0.45 {
					break
				}
				fade := hold / math.Sqrt(f)
				turn, less, level := 2*math.Pi*f*tuned/second, math.Exp(-1/(fade*second)), gain*loud[h]
				phase, step := cmplx.Rect(1, 6*r.Float64()), cmplx.Rect(1, turn)
				for i := 0; i < int(2.5*fade*second) && begin+i < n; i++ {
					s := float64(i) / second
					if (waver > 0 || glide != 0) && i%64 == 0 {
						step = cmplx.Rect(1, turn*(1+2*math.Pi*waver*math.Cos(2*math.Pi*5*s)+glide*math.Exp(-6*s)))
					}
					if s > stopped {
						level *= 1 - 40/second
					}
					phase, level = phase*step, level*less
					x[begin+i] += min(1, s*attack) * level * imag(phase)
				}
			}
		}
	}
}

const (
	lessonStep  = 100   // frames between two updates of the weights
	lessonClass = 8     // conversations at a time
	lessonFirst = 300   // conversations are made before any is used again,
	lessonShelf = 2000  // and so many are kept
	lessonMean  = 15000 // updates, of which the weights are a mean
)

// learn is gradient descent with Adam through 2 s of time on the logarithmic loss. Of the first opinion, a false alarm counts as
// 1.3 misses (3 in a loud noise, 3.5 in that of machines and 5 in music, whose notes are most like voices), the first 100 ms of
// speech as 5 (1.5) and the rest of it as 1 (1.3 among other voices); of the second, a false alarm in a loud noise as 6 (7 in
// music) and the first 100 ms as 6 (3).
func (tr *trainer) learn() {
	n, file, fastest := vadNetwork, "vad.weights", 0.001
	second, on := os.Getenv("PARLEY_TRAIN_SECOND") != "", os.Getenv("PARLEY_TRAIN_ON") != ""
	if second {
		n, file, fastest = vad2Network, "vad2.weights", 0.0007
	}
	switch {
	case on:
	case second:
		n.outgrow(vadNetwork, tr.rand)
	default:
		n.forget(tr.rand)
		fastest = 0.002
	}
	mean := newGRU(n.inputs, n.units, len(n.head))
	minutes := trainMinutes(30)
	begun, down := cpu(), descend(n)
	loss, frames, told := 0.0, 0, time.Now()
	others := newGRU(n.inputs, n.units, len(n.head))
	fresh := make(chan lesson, 1)
	for {
		done := (cpu() - begun).Minutes() / minutes
		if done >= 1 {
			break
		}
		var class [lessonClass]lesson
		units := make([][]float32, lessonClass)
		longest := 0
		for i := range class {
			class[i], units[i] = tr.next(), make([]float32, n.units)
			longest = max(longest, len(class[i].x))
		}
		if len(tr.shelf) >= lessonFirst { // one for the next class, meanwhile
			go func() { fresh <- tr.converse() }()
		}
		for at := 0; at < longest; at += lessonStep {
			clear(down.g.all)
			clear(others.all)
			var next atomic.Int32
			part := func(g *gru) (loss float64, count int) {
				for {
					i := int(next.Add(1)) - 1
					if i >= lessonClass {
						return loss, count
					}
					l := class[i]
					if at >= len(l.x) {
						continue
					}
					end := min(at+lessonStep, len(l.x))
					loss += study(n, g, end-at, units[i], func(j int) []float32 { return l.x[at+j][:n.inputs] },
						func(p *pass, j int) float64 { return l.judge(p, at+j) })
					count += end - at
				}
			}
			var cost float64
			var count int
			var other sync.WaitGroup
			other.Go(func() { cost, count = part(others) })
			first, seen := part(down.g)
			other.Wait()
			for i, x := range others.all {
				down.g.all[i] += x
			}
			loss, frames, count = loss+first+cost, frames+seen+count, seen+count
			down.step(count, fastest, done)
			k := float32(max(1.0/lessonMean, 1/down.steps))
			for i, w := range n.all { // which is better than any of them
				mean.all[i] += k * (w - mean.all[i])
			}
		}
		if len(tr.shelf) >= lessonFirst {
			tr.keep(<-fresh)
		}
		if time.Since(told) > 30*time.Second {
			fmt.Printf("%s: loss %.4f over %d frames, %.0f steps\n", (cpu() - begun).Round(time.Second),
				loss/float64(frames), frames, down.steps)
			loss, frames, told = 0, 0, time.Now()
			mean.write(tr.t, file)
		}
	}
	mean.write(tr.t, file)
}

// next is a lesson of those that were made; while they are few, a new one.
func (tr *trainer) next() lesson {
	if len(tr.shelf) < lessonFirst {
		tr.keep(tr.converse())
		return tr.shelf[len(tr.shelf)-1]
	}
	return tr.shelf[tr.pick.IntN(len(tr.shelf))]
}

// keep puts a lesson on the shelf, in place of another if that is full: each is used some eight times, so that making
// lessons takes less time than learning.
func (tr *trainer) keep(l lesson) {
	if len(tr.shelf) < lessonShelf {
		tr.shelf = append(tr.shelf, l)
	} else {
		tr.shelf[tr.pick.IntN(lessonShelf)] = l
	}
}

// judge compares the network's outputs with the targets.
func (l *lesson) judge(p *pass, at int) (loss float64) {
	if y := l.marks[at]; y >= 0 {
		counts := [2]float32{1, 1}
		switch {
		case y == 0 && l.loud[at] && l.kind == "music":
			counts = [2]float32{5, 7}
		case y == 0 && l.loud[at] && l.kind == "machines":
			counts = [2]float32{3.5, 6}
		case y == 0 && l.loud[at]:
			counts = [2]float32{3, 6}
		case y == 0:
			counts = [2]float32{1.3, 1.3}
		case l.fresh[at] && l.loud[at]:
			counts = [2]float32{1.5, 3}
		case l.fresh[at]:
			counts = [2]float32{5, 6}
		case l.loud[at] && l.kind == "babble":
			counts = [2]float32{1.3, 1}
		}
		for h, k := range counts {
			said := p.says(h)
			p.head[h] = k * (said - float32(y))
			loss -= float64(k) * math.Log(max(1e-9, math.Abs(1-float64(y)-float64(said))))
		}
	}
	for b := range vadBands {
		if k := 0.05 * l.sure[at][b]; k > 0 {
			p.head[headShare+b] = k * (p.says(headShare+b) - l.share[at][b])
		}
	}
	return loss
}

// TestVADGradient compares the backward pass with the effect of small changes of the weights on the loss.
func TestVADGradient(t *testing.T) {
	r, n := rand.New(rand.NewPCG(3, 3)), newGRU(vadInputs, vadUnits, vadHeads)
	for i := range n.all {
		n.all[i] = float32(r.NormFloat64() * 0.3)
	}
	l := lesson{}
	for i := range 12 {
		var x [vadInputs]float32
		for j := range x {
			x[j] = float32(r.NormFloat64())
		}
		l.x, l.marks = append(l.x, x), append(l.marks, int8(i/3%2))
		l.fresh, l.loud = append(l.fresh, i == 4), append(l.loud, i%4 == 1)
		l.share, l.sure = append(l.share, [vadBands]float32{}), append(l.sure, [vadBands]float32{})
	}
	g := newGRU(vadInputs, vadUnits, vadHeads)
	look := func(g *gru) float64 {
		return study(n, g, 12, make([]float32, vadUnits), func(i int) []float32 { return l.x[i][:] }, l.judge)
	}
	look(g)
	for range 200 {
		i := r.IntN(len(n.all) - vadBands*(vadUnits+1))
		was := n.all[i]
		n.all[i] = was + 0.01
		more := look(newGRU(vadInputs, vadUnits, vadHeads))
		n.all[i] = was - 0.01
		less := look(newGRU(vadInputs, vadUnits, vadHeads))
		n.all[i] = was
		if slope := (more - less) / 0.02; math.Abs(slope-float64(g.all[i])) > 0.01+0.03*math.Abs(slope) {
			t.Errorf("weight %d: slope %v, gradient %v", i, slope, g.all[i])
		}
	}
}

// TestVADOutgrow: a network that has just outgrown another says nearly the same.
func TestVADOutgrow(t *testing.T) {
	r, n := rand.New(rand.NewPCG(4, 4)), newGRU(vadInputs, vad2Units, vadHeads)
	n.outgrow(vadNetwork, r)
	small, large := newMind(vadNetwork), newMind(n)
	for range 50 {
		for i := range large.x[:vadInputs] {
			large.x[i] = float32(r.NormFloat64() / 2)
		}
		copy(small.x, large.x[:vadTuned])
		if a, b := small.infer(), large.infer(); math.Abs(float64(a-b)) > 1 {
			t.Errorf("%v, and before %v", b, a)
		}
	}
}
