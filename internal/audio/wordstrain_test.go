//go:build train

package audio

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// sounder makes the network of words. It learns from sounds on a line that was silent, or on which somebody spoke before:
// words of listening of internal/lang's catalog and hums, noises, and parts of sentences, by voices of eSpeak NG, among them
// some that are drawn by lot, and flite's rms and kal, and parts of what people of testdata/real.tsv say. Each time they are
// heard higher and faster, or lower and slower, so that each voice is many; and some hums are made here. The voices of
// TestOverlaps are kept for it, but for rms and kal; so are its sentences and the noises that it makes, and the hums of
// TestWords. PARLEY_TRAIN_MINUTES says how many minutes of processor it takes (20).
type sounder struct {
	*trainer
	sayings  []saying
	checkers map[Rate][][]int16 // people from whom nothing is learned
	checked  []lesson2
	shelf    []lesson2
}

// saying is something that a voice says.
type saying struct {
	voice string
	kind  string
	means bool // it has words that mean something
	pcm   map[Rate][]int16
}

// lesson2 is a sound, as the network hears it.
type lesson2 struct {
	x     [][vadBasic]float32
	kind  string
	means bool
}

func TestWordsTrain(t *testing.T) {
	s := &sounder{trainer: &trainer{t: t, rand: rand.New(rand.NewPCG(2, 1)), people: map[Rate][][]int16{},
		noises: map[string]map[Rate][][]int16{"clip": {}, "typing": {}}}, checkers: map[Rate][][]int16{}}
	for _, r := range recordings(t, "train", "speech", "clip", "typing") {
		if r.kind != "speech" {
			s.add(s.noises[r.kind], r.pcm)
		} else if still(r.pcm) {
			s.add(s.people, alone(r.pcm, Wide))
		}
	}
	for _, r := range recordings(t, "choose", "speech") {
		if still(r.pcm) {
			s.add(s.checkers, alone(r.pcm, Wide))
		}
	}
	s.record(12000)
	fmt.Printf("%d recordings of people, %d sayings\n", len(s.people[Wide]), len(s.sayings))
	for range 3000 {
		s.checked = append(s.checked, s.sound(true)...)
	}
	s.learn()
}

// sound makes a sound on a line, and gives its parts as the network hears them. Some voices are for checking only, and some
// people.
func (s *sounder) sound(check bool) []lesson2 {
	r, rate := s.rand, []Rate{Narrow, Wide}[s.rand.IntN(2)]
	var v saying
	for {
		v = s.sayings[r.IntN(len(s.sayings))]
		if check == (strings.IndexByte("mM", v.voice[0]) >= 0 && len(v.voice) > 3) {
			break
		}
	}
	pcm, before := v.pcm[rate], []int16(nil)
	people := s.people
	if check {
		people = s.checkers
	}
	switch kind := r.IntN(20); {
	case kind < 5: // somebody begins to speak
		if part := s.beginning(people[rate], rate); len(part) > int(rate)/4 {
			pcm, v.kind, v.means = part, "people", true
		}
	case kind < 8:
		kinds := [2]string{"clip", "typing"}
		pcm, v.kind, v.means = s.other(s.noises[kinds[r.IntN(8)/7]][rate], rate, 0.15+1.5*r.Float64()), "noise", false
		if r.IntN(3) == 0 {
			pcm = s.cough(rate)
		}
	case kind < 9:
		pcm, v.kind, v.means = s.hum(rate), "made", false
	}
	if r.IntN(2) == 0 { // they have spoken before
		all := s.sayings
		before = all[r.IntN(len(all))].pcm[rate]
	}
	if !check && v.kind != "noise" && v.kind != "made" {
		pcm = paced(pcm, math.Exp(0.3*r.Float64()-0.15))
	}
	l := s.line(rate, before, tilted(pcm, 0.8*r.Float64()-0.4), v.means)
	for i := range l {
		l[i].kind = v.kind
	}
	return l
}

// beginning is where somebody begins to speak: after a silence, or within a sentence.
func (s *sounder) beginning(all [][]int16, rate Rate) []int16 {
	r, n := s.rand, rate.FrameSize()
	part, quiet, last, still := all[r.IntN(len(all))], 0, 0.0, r.IntN(3) > 0
	at := r.IntN(max(len(part)/n, 1))
	for ; at < len(part)/n; at++ {
		now := level(part[at*n : (at+1)*n])
		if now > -45 && quiet > 8 || !still && now > -40 && now > last+8 {
			break
		} else if last = now; now < -60 {
			quiet++
		} else {
			quiet = 0
		}
	}
	rest := part[min(at*n, len(part)):]
	return rest[:min(len(rest), int((0.25+1.5*r.Float64())*float64(rate)))]
}

func (s *sounder) line(rate Rate, before, pcm []int16, means bool) (all []lesson2) {
	r, n := s.rand, rate.FrameSize()
	most := 1e-9
	for i := 0; i+n <= len(pcm); i += n {
		most = max(most, math.Pow(10, level(pcm[i:i+n])/20))
	}
	gain := Gain(-32+20*r.Float64()) / most
	scaled := func(pcm []int16) []float64 {
		out := make([]float64, len(pcm))
		for i, v := range pcm {
			out[i] = gain * float64(v)
		}
		return out
	}
	var x []float64
	x = append(x, make([]float64, int(float64(rate)*(0.3+r.Float64())))...)
	if before != nil {
		x = append(x, scaled(before[:min(len(before), 2*int(rate))])...)
		x = append(x, make([]float64, int(float64(rate)*(0.6+2*r.Float64())))...)
	}
	from := len(x) / n
	x = append(append(x, scaled(pcm)...), make([]float64, int(rate)*2/5)...)
	to := (len(x)-int(rate)*2/5)/n + 8
	hiss := 32768 * Gain(-75+25*r.Float64()*r.Float64())
	line := make([]int16, len(x)/n*n)
	for i := range line {
		line[i] = clip(x[i] + hiss*r.NormFloat64())
	}
	if rate == Narrow || r.IntN(3) == 0 {
		line = DecodeULaw(nil, EncodeULaw(nil, line))
	}
	v, open := NewVAD(rate), false
	var last [wordsBefore][vadBasic]float32
	for i := range len(line) / n {
		speech, _ := v.Detect(line[i*n : (i+1)*n])
		in := [vadBasic]float32(v.mind.x[:vadBasic])
		copy(last[:], last[1:])
		last[wordsBefore-1] = in
		switch {
		case !speech || i < from || i > to+6:
			open = false
		case !open:
			open = true
			all = append(all, lesson2{means: means, x: slices.Clone(last[:])})
		default:
			if l := &all[len(all)-1]; len(l.x) < 150 {
				l.x = append(l.x, in)
			}
		}
	}
	return slices.DeleteFunc(all, func(l lesson2) bool { return len(l.x) < wordsBefore+3 })
}

// counts is how much a frame of a sound counts: the first ones tell little, and long sounds are no more than short ones.
func (l *lesson2) counts(i int) float64 {
	switch {
	case i < wordsBefore+2:
		return 0.3
	case i < 40:
		return 1
	}
	return 0.3
}

func (l *lesson2) judge(p *pass, i int) float64 {
	y, said, k := float32(0), p.says(0), float32(l.counts(i))
	if l.means {
		y = 1
	}
	p.head[0] = k * (said - y)
	return -float64(k) * math.Log(max(1e-9, math.Abs(float64(1-y-said))))
}

// learn is gradient descent with Adam; what is kept is a mean of the weights. Two threads learn from half of the sounds each,
// while a third one makes new sounds.
func (s *sounder) learn() {
	const kept, class = 5000, 16 // updates; sounds at a time
	n, minutes, fastest := wordsNetwork, trainMinutes(20), 0.002
	if os.Getenv("PARLEY_TRAIN_ON") == "" {
		n.forget(s.rand)
	}
	mean := newGRU(n.inputs, n.units, len(n.head))
	begun, told, down := cpu(), time.Now(), descend(n)
	other := newGRU(n.inputs, n.units, len(n.head))
	loss, frames, checks := 0.0, 0, 1
	for len(s.shelf) < 256 {
		s.shelf = append(s.shelf, s.sound(false)...)
	}
	for {
		done := (cpu() - begun).Minutes() / minutes
		if done >= 1 {
			break
		}
		clear(down.g.all)
		clear(other.all)
		var lessons [class]lesson2
		count := 0
		for i := range lessons {
			lessons[i] = s.shelf[s.rand.IntN(len(s.shelf))]
			count += len(lessons[i].x)
		}
		var wg sync.WaitGroup
		var losses [2]float64
		for half, g := range []*gru{down.g, other} {
			wg.Go(func() {
				for _, l := range lessons[half*class/2 : (half+1)*class/2] {
					losses[half] += study(n, g, len(l.x), make([]float32, n.units), func(i int) []float32 { return l.x[i][:] }, l.judge)
				}
			})
		}
		s.refill()
		wg.Wait()
		for i, x := range other.all {
			down.g.all[i] += x
		}
		loss, frames = loss+losses[0]+losses[1], frames+count
		down.step(count, fastest, done)
		k := float32(max(1.0/kept, 1/down.steps))
		for i, w := range n.all {
			mean.all[i] += k * (w - mean.all[i])
		}
		if time.Since(told) > 30*time.Second {
			fmt.Printf("%s: loss %.4f, %.0f steps\n", (cpu() - begun).Round(time.Second), loss/float64(frames), down.steps)
			loss, frames, told = 0, 0, time.Now()
			if mean.write(s.t, "words.weights"); (cpu() - begun).Minutes() > 5*float64(checks) {
				s.check(mean)
				checks++
			}
		}
	}
	s.check(mean)
	mean.write(s.t, "words.weights")
}

// refill makes new sounds, in place of others that were learned from often enough.
func (s *sounder) refill() {
	const most = 20000
	for range 1 + s.rand.IntN(2) {
		for _, l := range s.sound(false) {
			if len(s.shelf) < most {
				s.shelf = append(s.shelf, l)
			} else {
				s.shelf[s.rand.IntN(most)] = l
			}
		}
	}
}

// check prints what the network makes of sounds of voices and people from which it does not learn, so long after they began:
// which logits 1, 3 and 10 of 100 sounds with words have less than, and how many of each other kind have less than these.
func (s *sounder) check(n *gru) {
	for _, at := range []int{6, 8, 11, 14, 17, 20, 30, 1000} {
		logits := map[string][]float32{}
		for _, l := range s.checked {
			if len(l.x) < at && at < 1000 {
				continue
			}
			m, v := newMind(n), float32(0)
			for _, x := range l.x[:min(at, len(l.x))] {
				copy(m.x, x[:])
				v = m.infer()
			}
			logits[l.kind] = append(logits[l.kind], v)
			if l.means {
				logits["all"] = append(logits["all"], v)
			}
		}
		fmt.Printf("%5d frames:", at)
		all := logits["all"]
		slices.Sort(all)
		for _, share := range []int{1, 3, 10} {
			limit := all[len(all)*share/100]
			fmt.Printf(" |%5.1f", limit)
			for _, kind := range []string{"listening", "hum", "made", "noise", "people"} {
				low := 0
				for _, v := range logits[kind] {
					if v < limit {
						low++
					}
				}
				fmt.Printf(" %s %.0f", kind, 100*float64(low)/float64(max(len(logits[kind]), 1)))
			}
		}
		fmt.Println()
	}
}
