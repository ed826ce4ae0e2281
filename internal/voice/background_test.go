package voice_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"parley/internal/audio"
)

// What others say in the background.
var news = []string{
	"and now the weather for tomorrow", "the train to the north leaves from platform nine", "did you put the bread on the table",
	"the minister said that there will be no new taxes", "we will be back after a short break", "I told him about that last week",
	"goal for the home team in the last minute", "mum, where are my shoes", "the children are playing in the garden",
}

// backgrounds are calls in which somebody else is heard over the reply to a question, 12 to 25 dB fainter than who asked
// it: a voice, or a voice and music as of a television, as they are or as they sound in a room.
func backgrounds(t testing.TB, n, group int) (list []*overlap) {
	voices := customers[group]["en"]
	for i := range n {
		o := &overlap{seed: uint64(group)*3_000_000 + 500_000 + uint64(i), kind: []string{"talk", "television"}[i%2], language: "en",
			rate: []audio.Rate{audio.Narrow, audio.Wide}[i/2%2], clean: true}
		r := rand.New(rand.NewPCG(o.seed, 5))
		who := r.IntN(len(voices))
		loud := -26 + 12*r.Float64()
		asked := leveled(say(t, voices[who], question), loud)
		x := append([]float64(nil), say(t, voices[(who+1+r.IntN(len(voices)-1))%len(voices)], news[r.IntN(len(news))])...)
		if o.kind == "television" {
			hz, most := 130+130*r.Float64(), 0.0
			for _, v := range x {
				most = max(most, math.Abs(v))
			}
			for j := range x {
				for k, ratio := range []float64{1, 1.26, 1.5, 2} {
					x[j] += 0.1 * most * math.Sin(2*math.Pi*hz*ratio*float64(j)/wide+float64(k))
				}
			}
		}
		if i/4%2 == 1 {
			o.kind += " in a room"
			x = room(r, x)
		}
		o.from = time.Duration(6500+r.IntN(2000)) * time.Millisecond
		o.fill(t, r, asked, leveled(x, loud-12-13*r.Float64()))
		list = append(list, o)
	}
	return list
}

// question is what customers ask first, so that their voices are known.
const question = "good morning, I would like to know when you are open on Sunday"

// fainter are calls in which who has asked interrupts the reply, up to 15 dB fainter than before, or 5 dB louder.
func fainter(t testing.TB, n, group int) (list []*overlap) {
	voices, texts := customers[group]["en"], wanting["en"]
	for i := range n {
		o := &overlap{seed: uint64(group)*3_000_000 + 600_000 + uint64(i), kind: "customer", language: "en", text: texts[i%len(texts)],
			rate: []audio.Rate{audio.Narrow, audio.Wide}[i/2%2], clean: true, less: 20*float64(i)/float64(n) - 5}
		r := rand.New(rand.NewPCG(o.seed, 5))
		who, loud := voices[r.IntN(len(voices))], -26+12*r.Float64()
		asked := leveled(say(t, who, question), loud)
		o.from = time.Duration(6500+r.IntN(2000)) * time.Millisecond
		o.fill(t, r, asked, leveled(say(t, who, o.text), loud-o.less))
		list = append(list, o)
	}
	return list
}

// room is a sound in a room, some metres from the microphone: what comes from the walls is as loud as what comes straight,
// and fades by 60 dB in 0.3 to 0.7 s.
func room(r *rand.Rand, x []float64) []float64 {
	fall := 0.3 + 0.4*r.Float64()
	out, walls := make([]float64, len(x)+int(fall*wide/2)), 0.0
	echo, dull := make([]float64, len(out)), make([]float64, len(x))
	last := 0.0
	for i, v := range x {
		last += 0.6 * (v - last)
		dull[i] = last
	}
	for at := 0.004; at < fall/2; at += 0.003 * r.Float64() {
		k := r.NormFloat64() * math.Pow(10, -3*at/fall)
		walls += k * k
		for i, v := range dull {
			echo[int(at*wide)+i] += k * v
		}
	}
	for i, v := range echo {
		if out[i] = v / math.Sqrt(walls); i < len(x) {
			out[i] += x[i]
		}
	}
	return out
}

// How often a reply goes on over talk in the background, and how often it does over the customer's own words, with and
// without background_speech_cancellation.
func TestBackgroundTalk(t *testing.T) {
	if !whole(t) {
		return // it is a measurement
	}
	talk := replySound(t)
	for _, group := range measured() {
		for _, single := range []bool{false, true} {
			name := groups[group]
			if single {
				name += ", background speech cancelled"
			}
			others, own := backgrounds(t, 80, group), fainter(t, 80, group)
			for _, o := range slices.Concat(others, own) {
				o.single = single
			}
			together(t, slices.Concat(others, own), talk)
			all, resumed := map[string]int{}, map[string]int{}
			for _, o := range others {
				if o.late == 0 && !o.whole {
					continue // nobody understood the question
				}
				all[o.kind]++
				if o.whole {
					resumed[o.kind]++
				} else {
					t.Logf("%s: not resumed: %q (seed %d), heard as %q", name, o.kind, o.seed, o.heard)
				}
			}
			for _, kind := range slices.Sorted(maps.Keys(all)) {
				n, k := all[kind], resumed[kind]
				told(t, false, 100*float64(k)/float64(n), 97, true,
					"%s: of %d replies with a background of %s, 12 to 25 dB fainter than the customer, %.1f %% (%s) go on",
					name, n, kind, 100*float64(k)/float64(n), between(k, n))
			}
			customersHeard(t, name, "within 6 dB of what they were", own, func(less float64) bool { return less <= 6 })
			customersHeard(t, name, "6 to 11 dB fainter", own, func(less float64) bool { return less > 6 && less <= 11 })
			customersHeard(t, name, "11 to 15 dB fainter", own, func(less float64) bool { return less > 11 })
		}
	}
}

// customersHeard says how many of the customers who are so much fainter than before are missed when they interrupt.
func customersHeard(t *testing.T, name, which string, list []*overlap, so func(less float64) bool) {
	missed, n, hushes := 0, 0, []time.Duration(nil)
	for _, o := range list {
		if !so(o.less) || o.late == 0 && !o.whole {
			continue
		}
		if n++; o.whole || o.late > 2*time.Second {
			missed++
			t.Logf("%s: missed: %q, %.0f dB fainter (seed %d), heard as %q", name, o.text, o.less, o.seed, o.heard)
		} else {
			hushes = append(hushes, o.hush)
		}
	}
	spread(t, name, "interruptions by customers "+which+" silenced a reply, since their first sound", hushes)
	told(t, false, 100*float64(missed)/float64(n), 1.5, false, "%s: of %d interruptions by customers %s, %.1f %% (%s) missed",
		name, n, which, 100*float64(missed)/float64(n), between(missed, n))
}
