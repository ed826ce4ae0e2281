//go:build train

package audio

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// trainer makes the network of VAD. It learns from voices of espeak-ng in seven languages and two of flite's (rms,
// kal16), in white and pink noise, noise that swells, ambient sounds, and the babble of these same voices, 7 to 15 dB
// below the speech and, in one of three, much less. flite's slt and awb, and the noises of street and car, are kept
// for the tests.
type trainer struct {
	t      *testing.T
	rand   *rand.Rand
	talk   map[Rate][][]int16
	places map[Rate][]*Ambient
	data   []example
}

type example struct {
	x [vadInputs]float32
	y float32
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
	tr := &trainer{t: t, rand: rand.New(rand.NewPCG(1, 1)), talk: map[Rate][][]int16{}, places: map[Rate][]*Ambient{}}
	for i, voice := range strings.Fields("en-us+m3 en-us+f2 en-gb+m5 en-gb+f4 de+m2 de+f3 fr+f1 es+m7 it+f2 nl+f5 pl+m6 fr+m1") {
		tr.say("espeak-ng", "-v", voice, "-s", fmt.Sprint(140+5*i), "--stdout", sentences[voice[:2]])
	}
	for range 3 {
		for _, name := range []string{"rms", "rms2", "kal", "kal2"} {
			tr.add(speech(t, name, Wide), 16000)
		}
	}
	for _, rate := range []Rate{Narrow, Wide} {
		for _, place := range []string{"office", "city", "crowded_room", "cafe", "nature"} {
			a, err := NewAmbient(place, rate, 99)
			if err != nil {
				t.Fatal(err)
			}
			tr.places[rate] = append(tr.places[rate], a)
		}
	}
	for i := range 1100 {
		tr.converse([]Rate{Narrow, Wide}[i%2], uint64(1000+i))
	}
	tr.learn()
	tr.write("vad_weights.go")
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
	tr.add(pcm[:min(len(pcm), 10*16000)], 16000)
}

func (tr *trainer) add(pcm []int16, rate int) {
	for _, to := range []Rate{Narrow, Wide} {
		tr.talk[to] = append(tr.talk[to], resampled(tr.t, pcm, rate, int(to)))
	}
}

// converse adds the frames of a conversation; every third begins with speech at once.
func (tr *trainer) converse(rate Rate, seed uint64) {
	r, talk := tr.rand, tr.talk[rate]
	clean := make([]int16, int(float64(rate)*5*r.Float64())*min(r.IntN(3), 1))
	loud := 0.05 + r.Float64()
	for length := []int{4, 20}[r.IntN(2)] * int(rate); len(clean) < length; {
		part := talk[r.IntN(len(talk))]
		if r.IntN(2) == 0 {
			part = part[r.IntN(len(part)/2):]
		}
		begin := len(clean)
		clean = append(clean, part...)
		Fade(clean[begin:], loud, loud)
		if r.IntN(4) > 0 {
			clean = append(clean, make([]int16, int(float64(rate)*5*r.Float64()))...)
		}
	}
	clean = append(clean, make([]int16, 2*int(rate))...)
	snr := 7 + 8*r.Float64()
	if r.IntN(3) == 0 {
		snr = 15 + 60*r.Float64()
	}
	if r.IntN(8) == 0 {
		snr = 300 // silence is digital
	}
	mixed := noisy(clean, tr.noise(rate, seed, len(clean)), rate, snr)
	if r.IntN(3) == 0 {
		mixed = DecodeULaw(nil, EncodeULaw(nil, mixed))
	}
	v, size, since := NewVAD(rate), rate.FrameSize(), 100
	floor := 20*log10(activeLevel(clean, rate)) - 20
	for i := 0; i+size <= len(clean); i += size {
		v.listen(mixed[i : i+size])
		since++
		now := level(clean[i : i+size])
		if now > floor {
			since = 0
		}
		if since == 0 || since > 4 && now < floor-15 {
			e := example{x: v.inputs}
			if since == 0 {
				e.y = 1
			}
			tr.data = append(tr.data, e)
		}
	}
}

func (tr *trainer) noise(rate Rate, seed uint64, n int) []float64 {
	r := tr.rand
	switch kind := r.IntN(13); {
	case kind == 0:
		return noises["white"](tr.t, seed, rate, n)
	case kind < 3:
		return pink(seed, n)
	case kind < 9:
		x := make([]float64, n)
		for range 5 + r.IntN(6) {
			p := tr.talk[rate][r.IntN(len(tr.talk[rate]))]
			at, gain := r.IntN(len(p)), (0.5+r.Float64())/(1+32768*activeLevel(p, rate))
			for i := range x {
				x[i] += gain * float64(p[(at+i)%len(p)])
			}
		}
		return unit(x)
	case kind < 11:
		x, a := make([]float64, n), tr.places[rate][r.IntN(len(tr.places[rate]))]
		at := r.IntN(len(a.loop))
		for i := range x {
			x[i] = float64(a.loop[(at+i)%len(a.loop)])
		}
		return unit(x)
	}
	x := pink(seed, n)
	often, begin := 0.1+0.4*r.Float64(), 6*r.Float64()
	for i := range x {
		x[i] *= math.Exp(0.8 * math.Sin(begin+2*math.Pi*often*float64(i)/float64(rate)))
	}
	return unit(x)
}

// learn is gradient descent with Adam on the logarithmic loss, a false alarm counting as 1.3 misses.
func (tr *trainer) learn() {
	const outs, all, batch = vadHidden * (vadInputs + 1), vadHidden*(vadInputs+1) + vadHidden + 1, 64
	weight := func(i int) *float32 {
		if i < outs {
			return &vadIn[i/(vadInputs+1)][i%(vadInputs+1)]
		}
		return &vadOut[i-outs]
	}
	for i := range all {
		*weight(i) = float32(tr.rand.NormFloat64() * 0.25)
	}
	var mean, square [all]float64
	step := 0.0
	for epoch := range 9 {
		tr.rand.Shuffle(len(tr.data), func(i, j int) { tr.data[i], tr.data[j] = tr.data[j], tr.data[i] })
		loss, rate := 0.0, 0.004*math.Pow(0.6, float64(epoch))
		for b := 0; b+batch <= len(tr.data); b += batch {
			var g [all]float64
			for _, e := range tr.data[b : b+batch] {
				var units [vadHidden]float32
				v := VAD{inputs: e.x}
				p := 1 / (1 + math.Exp(-float64(v.infer())))
				counts := 1.3 - 0.3*float64(e.y)
				loss -= counts * math.Log(max(1e-9, math.Abs(1-float64(e.y)-p)))
				d := counts * (p - float64(e.y))
				g[all-1] += d
				for h := range units {
					w := &vadIn[h]
					sum := w[vadInputs] + dot(e.x[:], w[:vadInputs])
					back := d * float64(vadOut[h])
					if g[outs+h] += d * float64(max(sum, 0.1*sum)); sum < 0 {
						back *= 0.1
					}
					for i, x := range e.x {
						g[h*(vadInputs+1)+i] += back * float64(x)
					}
					g[h*(vadInputs+1)+vadInputs] += back
				}
			}
			step++
			for i, sum := range g {
				sum /= batch
				mean[i] += 0.1 * (sum - mean[i])
				square[i] += 0.001 * (sum*sum - square[i])
				*weight(i) -= float32(rate * mean[i] / (1 - math.Pow(0.9,
					step)) / (math.Sqrt(square[i]/(1-math.Pow(0.999, step))) + 1e-8))
			}
		}
		tr.t.Logf("epoch %d: loss %.4f over %d frames", epoch, loss/float64(len(tr.data)), len(tr.data))
	}
}

func (tr *trainer) write(file string) {
	row := func(w []float32) string {
		var s strings.Builder
		for i, x := range w {
			if fmt.Fprintf(&s, "%.3f,", x); i%18 == 17 {
				s.WriteString("\n")
			} else {
				s.WriteString(" ")
			}
		}
		return strings.TrimRight(s.String(), ", \n")
	}
	text := "package audio\n\n// The weights of VAD's network, made by TestVADTrain: of each hidden unit for every input, and its bias; of the output for every unit,\n" +
		"// and its bias.\n\nvar vadIn = [vadHidden][vadInputs + 1]float32{\n"
	for _, w := range vadIn {
		text += "{" + row(w[:]) + "},\n"
	}
	text += "}\n\nvar vadOut = [vadHidden + 1]float32{" + row(vadOut[:]) + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		tr.t.Fatal(err)
	}
	if out, err := exec.Command("gofmt", "-w", file).CombinedOutput(); err != nil {
		tr.t.Fatalf("gofmt: %v: %s", err, out)
	}
}
