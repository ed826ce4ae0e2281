package voice_test

import (
	"math"
	"math/rand/v2"
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
// it: a voice, or a voice and music as of a television.
func backgrounds(t testing.TB, n, group int) (list []*overlap) {
	voices := customers[group]["en"]
	for i := range n {
		o := &overlap{seed: uint64(group)*3_000_000 + 500_000 + uint64(i), kind: []string{"talk", "television"}[i%2], language: "en",
			rate: []audio.Rate{audio.Narrow, audio.Wide}[i/2%2], clean: i%3 > 0}
		r := rand.New(rand.NewPCG(o.seed, 5))
		who := r.IntN(len(voices))
		loud := -26 + 12*r.Float64()
		asked := leveled(say(t, voices[who], "when are you open on Sunday"), loud)
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
		o.from = time.Duration(5000+r.IntN(2000)) * time.Millisecond
		o.fill(t, r, asked, leveled(x, loud-12-13*r.Float64()))
		list = append(list, o)
	}
	return list
}

// How often a reply goes on over talk in the background.
func TestBackgroundTalk(t *testing.T) {
	if !whole(t) {
		return // it is a measurement
	}
	talk := replySound(t)
	for group := range customers {
		list := backgrounds(t, 60, group)
		together(t, list, talk)
		all, resumed := map[string]int{}, map[string]int{}
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
		}
		for kind, n := range all {
			told(t, false, 100*float64(resumed[kind])/float64(n), 97, true, "%s: of %d replies with a background of %s, 12 to 25 dB fainter than the customer, %.0f %% go on",
				groups[group], n, kind, 100*float64(resumed[kind])/float64(n))
		}
	}
}
