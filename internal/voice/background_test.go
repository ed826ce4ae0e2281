package voice_test

import (
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

// others are the people who are heard beside the customer, each with how much fainter they are, in dB, at least and at
// most. A child has a voice that is higher by a third in all its resonances, as if its mouth were smaller.
var others = map[string]struct{ least, most float64 }{
	"talk": {12, 25}, "television": {12, 25}, "child": {12, 25}, "somebody near": {0, 6},
}

// beside are calls in which somebody else is heard over the reply to a question, fainter than who asked it: a voice, or
// a voice and music as of a television.
func beside(t testing.TB, n, group int, kinds ...string) (list []*overlap) {
	voices := customers[group]["en"]
	for i := range n {
		kind := kinds[i%len(kinds)]
		o, r, who, loud := asking(t, group, i, kind)
		x := append([]float64(nil), say(t, voices[(who+1+r.IntN(len(voices)-1))%len(voices)], news[r.IntN(len(news))])...)
		switch kind {
		case "television":
			hz, most := 130+130*r.Float64(), 0.0
			for _, v := range x {
				most = max(most, math.Abs(v))
			}
			for j := range x {
				for k, ratio := range []float64{1, 1.26, 1.5, 2} {
					x[j] += 0.1 * most * math.Sin(2*math.Pi*hz*ratio*float64(j)/wide+float64(k))
				}
			}
		case "child":
			x = higher(x, 1.33)
		}
		by := others[kind]
		o.fill(t, r, o.question, leveled(x, loud-by.least-(by.most-by.least)*r.Float64()))
		list = append(list, o)
	}
	return list
}

// themselves are calls in which the customer interrupts the reply to their own question, up to 8 dB fainter than they
// have asked it.
func themselves(t testing.TB, n, group int) (list []*overlap) {
	for i := range n {
		o, r, who, loud := asking(t, group, i, "")
		o.text = wanting["en"][r.IntN(len(wanting["en"]))]
		x := leveled(say(t, customers[group]["en"][who], o.text), loud-8*r.Float64())
		o.fill(t, r, o.question, x)
		list = append(list, o)
	}
	return list
}

// asking is a call in which a customer asks a question, so loud.
func asking(t testing.TB, group, i int, kind string) (o *overlap, r *rand.Rand, who int, loud float64) {
	o = &overlap{seed: uint64(group)*3_000_000 + 500_000 + uint64(i), kind: kind, language: "en",
		rate: []audio.Rate{audio.Narrow, audio.Wide}[i/2%2], clean: i%3 > 0}
	r = rand.New(rand.NewPCG(o.seed, 5))
	voices := customers[group]["en"]
	who = r.IntN(len(voices))
	loud = -26 + 12*r.Float64()
	o.question = leveled(say(t, voices[who], "when are you open on Sunday"), loud)
	o.from = time.Duration(5000+r.IntN(2000)) * time.Millisecond
	return o, r, who, loud
}

// higher is a voice with all its frequencies higher.
func higher(x []float64, by float64) (out []float64) {
	for at := 0.0; int(at)+1 < len(x); at += by {
		k := int(at)
		out = append(out, x[k]+(x[k+1]-x[k])*(at-float64(k)))
	}
	return out
}

// How often a reply goes on over somebody else's talk, and how often the customer's own, up to 8 dB fainter than before,
// doesn't cut it off.
func TestBackgroundTalk(t *testing.T) {
	if !whole(t) {
		return // it is a measurement
	}
	talk := replySound(t)
	for group := range customers {
		list := slices.Concat(beside(t, 60, group, "talk", "television"), beside(t, 60, group, "child", "somebody near"))
		own := themselves(t, 60, group)
		together(t, slices.Concat(list, own), talk)
		all, resumed, unbroken := map[string]int{}, map[string]int{}, map[string]int{}
		for _, o := range list {
			if o.late == 0 && !o.whole {
				continue // nobody understood the question
			}
			all[o.kind]++
			if o.whole {
				resumed[o.kind]++
			} else {
				t.Logf("%s: not resumed: %q (seed %d), heard as %q", groups[group], o.kind, o.seed, o.heard)
			}
			if o.whole && o.pause == 0 {
				unbroken[o.kind]++
			}
		}
		for kind, n := range all {
			by := others[kind]
			share := 100 * float64(resumed[kind]) / float64(n)
			if by.least == 0 {
				t.Logf("quality: %s: of %d replies over which %s speaks, 0 to %.0f dB fainter than the customer, %.0f %% go on (loudness can't tell)",
					groups[group], n, kind, by.most, share)
				continue
			}
			told(t, false, share, 97, true, "%s: of %d replies with a background of %s, %.0f to %.0f dB fainter than the customer, %.0f %% go on, %.0f %% without a pause",
				groups[group], n, kind, by.least, by.most, share, 100*float64(unbroken[kind])/float64(n))
		}
		missed, n, hushes := 0, 0, []time.Duration(nil)
		for _, o := range own {
			switch n++; {
			case o.late == 0 && !o.whole:
				n-- // nobody understood the question
			case o.whole || o.late > 2*time.Second:
				missed++
				t.Logf("%s: missed: %q (seed %d), heard as %q", groups[group], o.text, o.seed, o.heard)
			default:
				hushes = append(hushes, o.hush)
			}
		}
		spread(t, groups[group], "interruptions by who has asked, up to 8 dB fainter, silenced a reply, since their first sound", hushes)
		told(t, false, 100*float64(missed)/float64(n), 1.5, false, "%s: of %d interruptions by who has asked, up to 8 dB fainter, %.1f %% missed",
			groups[group], n, 100*float64(missed)/float64(n))
	}
}
