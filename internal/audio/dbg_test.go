package audio

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTrain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	files, _ := filepath.Glob("/tmp/aud/train/*.raw")
	var talk [2][][]int16
	load := func(pcm []int16) {
		talk[1] = append(talk[1], pcm)
		talk[0] = append(talk[0], resampled(t, pcm, 16000, 8000))
	}
	for _, f := range files {
		b, _ := os.ReadFile(f)
		pcm := make([]int16, len(b)/2)
		for i := range pcm {
			pcm[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
		}
		load(pcm)
	}
	for range 3 { // flite's tuning voices count more
		for _, v := range []string{"rms", "rms2", "kal", "kal2"} {
			load(speech(t, v, Wide))
		}
	}
	train := voices
	_ = train
	type sample struct {
		x [vadInputs]float32
		y float32
	}
	var data []sample
	var places [2][]*Ambient
	for i, rate := range []Rate{Narrow, Wide} {
		for _, p := range []string{"office", "city", "crowded_room", "cafe", "nature"} {
			a, _ := NewAmbient(p, rate, 99)
			places[i] = append(places[i], a)
		}
	}
	for n := range 420 {
		ri := n % 2
		rate := []Rate{Narrow, Wide}[ri]
		// clean: 1-5 s silence, speech, silence ...
		var clean []int16
		level0 := 0.15 + r.Float64()
		for len(clean) < 22*int(rate) {
			if r.IntN(4) > 0 || len(clean) == 0 {
				clean = append(clean, make([]int16, int(float64(rate)*r.Float64()*5))...)
			}
			p := talk[ri][r.IntN(len(talk[ri]))]
			begin := 0
			part := append([]int16(nil), p[begin:]...)
			Fade(part, level0, level0)
			clean = append(clean, part...)
		}
		clean = append(clean, make([]int16, 2*int(rate))...)
		noise := make([]float64, len(clean))
		seed := uint64(1000 + n)
		switch k := r.IntN(12); {
		case k == 0:
			noise = noises["white"](t, seed, rate, len(clean))
		case k == 1:
			noise = noises["pink"](t, seed, rate, len(clean))
		case k < 8: // babble of the training voices
			for range 5 + r.IntN(6) {
				p := talk[ri][r.IntN(len(talk[ri]))]
				at, g := r.IntN(len(p)), (0.5+r.Float64())/(1+32768*activeLevel(p, rate))
				for i := range noise {
					noise[i] += g * float64(p[(at+i)%len(p)])
				}
			}
			unit(noise)
		case k < 10:
			a := places[ri][r.IntN(len(places[ri]))]
			at := r.IntN(len(a.loop))
			for i := range noise {
				noise[i] = float64(a.loop[(at+i)%len(a.loop)])
			}
			unit(noise)
		case k == 10: // noise that swells
			noise = pink(seed, len(noise))
			f, ph := 0.1+0.4*r.Float64(), r.Float64()*6
			for i := range noise {
				noise[i] *= math.Exp(0.8 * math.Sin(ph+2*math.Pi*f*float64(i)/float64(rate)))
			}
			unit(noise)
		default:
			noise = pink(seed, len(noise))
		}
		snr := 7 + 8*r.Float64()
		if r.IntN(5) == 0 {
			snr = 15 + 40*r.Float64()
		}
		mixed := noisy(clean, noise, rate, snr)
		v, size, since, floor := NewVAD(rate), rate.FrameSize(), 100, 20*log10(activeLevel(clean, rate))-20
		for i := 0; i+size <= len(clean); i += size {
			v.listen(mixed[i : i+size])
			since++
			if level(clean[i:i+size]) > floor {
				since = 0
			}
			if since == 0 || since > 4 && i > int(rate)/5 {
				s := sample{x: v.inputs}
				if since == 0 {
					s.y = 1
				}
				data = append(data, s)
			}
		}
	}
	fmt.Println("samples", len(data))
	for h := range vadIn {
		for i := range vadIn[h] {
			vadIn[h][i] = float32(r.NormFloat64() * 0.25)
		}
		vadOut[h] = float32(r.NormFloat64() * 0.25)
	}
	// Adam, minibatches
	const P = vadHidden*(vadInputs+1) + vadHidden + 1
	var m, s2 [P]float64
	step := 0
	const batch = 64
	epochs := 8
	for e := range epochs {
		r.Shuffle(len(data), func(i, j int) { data[i], data[j] = data[j], data[i] })
		loss := 0.0
		rate := 0.004 * math.Pow(0.6, float64(e))
		for b := 0; b+batch <= len(data); b += batch {
			var g [P]float64
			for _, d := range data[b : b+batch] {
				var act, pre [vadHidden]float32
				out := vadOut[vadHidden]
				for h := range vadHidden {
					w := &vadIn[h]
					pre[h] = w[vadInputs] + dot(d.x[:], w[:vadInputs])
					act[h] = max(pre[h], 0.1*pre[h])
					out += vadOut[h] * act[h]
				}
				p := 1 / (1 + math.Exp(-float64(out)))
				w := 1.0
				if d.y == 0 {
					w = 1.3
				}
				loss -= w * math.Log(math.Max(1e-9, math.Abs(1-float64(d.y)-p)))
				dz := w * (p - float64(d.y))
				o := vadHidden * (vadInputs + 1)
				g[o+vadHidden] += dz
				for h := range vadHidden {
					g[o+h] += dz * float64(act[h])
					dh := dz * float64(vadOut[h])
					if pre[h] < 0 {
						dh *= 0.1
					}
					base := h * (vadInputs + 1)
					for i, x := range d.x {
						g[base+i] += dh * float64(x)
					}
					g[base+vadInputs] += dh
				}
			}
			step++
			for i := range g {
				gi := g[i] / batch
				m[i] += 0.1 * (gi - m[i])
				s2[i] += 0.001 * (gi*gi - s2[i])
				up := rate * (m[i] / (1 - math.Pow(0.9, float64(step)))) / (math.Sqrt(s2[i]/(1-math.Pow(0.999, float64(step)))) + 1e-8)
				o := vadHidden * (vadInputs + 1)
				switch {
				case i < o:
					vadIn[i/(vadInputs+1)][i%(vadInputs+1)] -= float32(up)
				default:
					vadOut[i-o] -= float32(up)
				}
			}
		}
		fmt.Println("epoch", e, "loss", loss/float64(len(data)))
	}
	var sb strings.Builder
	sb.WriteString("package audio\n\n// The weights of VAD's network: for each hidden unit one per input and its bias; for the output one per unit and its bias.\n\nvar vadIn = [vadHidden][vadInputs + 1]float32{\n")
	for _, h := range vadIn {
		sb.WriteString("\t{")
		for i, w := range h {
			if i > 0 {
				sb.WriteString([]string{" ", "\n\t\t"}[btoi(i%18 == 0)])
			}
			fmt.Fprintf(&sb, "%.3f,", w)
		}
		sb.WriteString("},\n")
	}
	sb.WriteString("}\n\nvar vadOut = [vadHidden + 1]float32{")
	for _, w := range vadOut {
		fmt.Fprintf(&sb, "%.3f, ", w)
	}
	sb.WriteString("}\n")
	os.WriteFile("/tmp/aud/vad_weights.go", []byte(sb.String()), 0o644)
	for _, th := range []float32{-0.5, 0, 0.5, 1, 1.5} {
		vadThreshold = th
		for _, set := range [][]string{{"rms", "kal", "rms2", "kal2"}, {"slt", "awb", "slt2", "awb2"}} {
			fmt.Print(th, set)
			res := vadRates(t, 3, []string{"white", "pink", "car", "babble", "street"}, set...)
			for _, k := range []string{"white", "pink", "car", "babble", "street"} {
				hit, false := res[k].rates()
				fmt.Printf(" %s %.1f/%.1f", k, hit, false)
			}
			fmt.Println()
		}
	}
}
func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
