//go:build train

package audio

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// placer makes the network of distant. It learns from calls that party puts together of the recordings of
// testdata/real.tsv and, one customer in six, of voices of eSpeak NG and two of flite's (rms and kal). PARLEY_TRAIN_MINUTES
// says how long (10).
type placer struct {
	*party
	shelf, checked []placed
}

// placed is a sound, as the network hears it.
type placed struct {
	x     [][distantInputs]float32
	marks []int8 // 1: of somebody else; 0: of who has the telephone; -1: it doesn't matter
}

const placedText = "I wanted to ask whether you still have a room for the weekend after next. We would arrive on Friday, around eight. " +
	"Could you tell me how much is the delivery, and when it will be here? I am calling about my order from last week. "

func TestDistantTrain(t *testing.T) {
	s := &placer{party: newParty(t, "train", 1)}
	fmt.Printf("%d people, %d others, %d pieces of music, %d noises\n", len(s.people), len(s.others), len(s.music), len(s.noises))
	s.synthetic()
	check := &placer{party: newParty(t, "choose", 2)}
	for range 400 {
		s.checked = append(s.checked, check.sounds()...)
	}
	s.learn()
}

// synthetic adds voices that are made.
func (s *placer) synthetic() {
	for i, name := range humVoices {
		language := []string{"en-us", "en-gb", "de", "fr"}[i%4]
		text := placedText
		if i%4 > 1 {
			text = sentences[language] + " " + sentences[language]
		}
		out, err := exec.Command("espeak-ng", "-b", "1", "-v", language+"+"+name, "-s", fmt.Sprint(135+i%5*10), "--stdout", text).Output()
		if err != nil {
			s.t.Fatal(err)
		}
		w, err := NewWAVReader(bytes.NewReader(out))
		if err != nil {
			s.t.Fatal(err)
		}
		pcm := make([]int16, 25*w.Rate)
		n, _ := w.Read(pcm)
		s.people = append(s.people, unitActive(floats(resampled(s.t, pcm[:n], w.Rate, 16000))))
	}
	for _, name := range []string{"rms", "kal"} {
		s.people = append(s.people, unitActive(append(floats(speech(s.t, name, Wide)), floats(speech(s.t, name+"2", Wide))...)))
	}
}

// sounds makes a call, and gives its sounds as the network hears them.
func (s *placer) sounds() (all []placed) {
	c := s.call(6)
	v, n, open := NewVAD(c.rate), c.rate.FrameSize(), false
	near, beside, came := 100, 100, 0
	for i := range len(c.pcm) / n {
		speech, _ := v.Detect(c.pcm[i*n : (i+1)*n])
		v.Beside(near < 50)
		if near, beside = near+1, beside+1; c.near[i] {
			if near > 25 {
				came = i
			}
			near = 0
		}
		if c.beside[i] {
			beside = 0
		}
		mark := int8(-1)
		switch {
		case near < 8 && i-came >= 3:
			mark = 0
		case beside < 8 && near > 25:
			mark = 1
		}
		switch {
		case !speech || v.distant.own.n < distantKnown:
			open = false
			continue
		case !open:
			open = true
			all = append(all, placed{})
		}
		if l := &all[len(all)-1]; len(l.x) < 200 {
			l.x, l.marks = append(l.x, [distantInputs]float32(v.distant.mind.x[:distantInputs])), append(l.marks, mark)
		}
	}
	return slices.DeleteFunc(all, func(l placed) bool { return len(l.x) < 5 || slices.Max(l.marks) < 0 })
}

// judge compares the network's output with the target. The first frames tell little, and a customer who is not heard is
// worse than a television that is.
func (l *placed) judge(p *pass, i int) float64 {
	if l.marks[i] < 0 {
		return 0
	}
	y, said, k := float32(l.marks[i]), p.says(0), float32(1)
	if i < 10 {
		k = 0.3
	}
	if y == 0 {
		k *= 2
	}
	p.head[0] = k * (said - y)
	return -float64(k) * math.Log(max(1e-9, math.Abs(float64(1-y-said))))
}

func (s *placer) learn() {
	n, minutes := distantNetwork, trainMinutes(10)
	if os.Getenv("PARLEY_TRAIN_ON") == "" {
		n.forget(rand.New(rand.NewPCG(8, 8)))
	}
	begun, told, down := time.Now(), time.Now(), descend(n)
	loss, frames, checks := 0.0, 0, 1
	for {
		done := time.Since(begun).Minutes() / minutes
		if done >= 1 {
			break
		}
		clear(down.g.all)
		count := 0
		for range 16 {
			l := s.next()
			loss += study(n, down.g, len(l.x), make([]float32, n.units), func(i int) []float32 { return l.x[i][:] }, l.judge)
			count += len(l.x)
		}
		frames += count
		down.step(count, 0.003, done)
		if time.Since(told) > 20*time.Second {
			fmt.Printf("%s: loss %.4f, %.0f steps, %d sounds\n", time.Since(begun).Round(time.Second), loss/float64(frames), down.steps, len(s.shelf))
			loss, frames, told = 0, 0, time.Now()
			if n.write(s.t, "distant.weights"); time.Since(begun) > time.Duration(checks)*2*time.Minute {
				s.check()
				checks++
			}
		}
	}
	n.write(s.t, "distant.weights")
	s.check()
}

func (s *placer) next() placed {
	const most = 20000
	for len(s.shelf) < 64 || s.rand.IntN(30) == 0 {
		for _, l := range s.sounds() {
			if len(s.shelf) < most {
				s.shelf = append(s.shelf, l)
			} else {
				s.shelf[s.rand.IntN(most)] = l
			}
		}
	}
	return s.shelf[s.rand.IntN(len(s.shelf))]
}

// check prints how well the network tells sounds of people from whom it does not learn, so long after they began.
func (s *placer) check() {
	for _, at := range []int{15, 25, 40, 60, 1000} {
		var logits [2][]float32
		for _, l := range s.checked {
			if len(l.x) < at && at < 1000 || slices.Contains(l.marks, 0) && slices.Contains(l.marks, 1) {
				continue
			}
			m, v := newMind(distantNetwork), float32(0)
			for _, x := range l.x[:min(at, len(l.x))] {
				copy(m.x, x[:])
				v = m.infer()
			}
			logits[slices.Max(l.marks)] = append(logits[slices.Max(l.marks)], v)
		}
		slices.Sort(logits[0])
		fmt.Printf("   %4d frames, %d and %d:", at, len(logits[0]), len(logits[1]))
		for _, lost := range []float64{0.005, 0.01, 0.02, 0.05, 0.1} {
			limit := logits[0][len(logits[0])-1-int(lost*float64(len(logits[0])))]
			held := 0
			for _, v := range logits[1] {
				if v > limit {
					held++
				}
			}
			fmt.Printf("  lost %g %%: %.1f %% held (> %.1f)", 100*lost, 100*float64(held)/float64(len(logits[1])), limit)
		}
		fmt.Println()
	}
}
