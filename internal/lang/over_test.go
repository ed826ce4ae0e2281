package lang_test

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/catalog"
	"parley/internal/lang"
	"parley/internal/turn"
)

// languages are those of the catalog.
func languages() (all []string) {
	for _, l := range catalog.New("https://example.com/", nil).Languages() {
		all = append(all, l.ISO2)
	}
	return all
}

// In every language of the catalog complete sentences are told from those that break off, without punctuation.
func TestOver(t *testing.T) {
	list, err := os.ReadFile("testdata/over.tsv")
	if err != nil {
		t.Fatal(err)
	}
	sums, counts := map[string]map[string]float64{"+": {}, "-": {}}, map[string]map[string]int{"+": {}, "-": {}}
	wrong, all := 0, 0
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSpace(line), "\t")
		p := lang.Over(f[2], f[0])
		sums[f[1]][f[0]] += p
		counts[f[1]][f[0]]++
		if all++; p > 0.5 != (f[1] == "+") {
			wrong++
			t.Logf("%s%s %q: %.2f", f[0], f[1], f[2], p)
		}
	}
	if share := float64(wrong) / float64(all); share > 0.15 {
		t.Errorf("%d of %d sentences are misjudged", wrong, all)
	}
	for _, l := range languages() {
		if counts["+"][l] < 3 || counts["-"][l] < 3 {
			t.Errorf("%s: %d complete sentences, %d that are not", l, counts["+"][l], counts["-"][l])
		}
		if a, b := sums["+"][l]/float64(counts["+"][l]), sums["-"][l]/float64(counts["-"][l]); a < b+0.03 {
			t.Errorf("%s: complete sentences are over with %.2f, others with %.2f", l, a, b)
		}
	}
}

// The network alone judges most of the same sentences right, in the languages that have spaces between words.
func TestOverNetwork(t *testing.T) {
	list, err := os.ReadFile("testdata/over.tsv")
	if err != nil {
		t.Fatal(err)
	}
	wrong, all := 0, 0
	for line := range strings.Lines(string(list)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") || slices.Contains([]string{"zh", "ja", "th"}, f[0]) {
			continue
		}
		if all++; lang.Network(f[2], f[0]) > 0 != (f[1] == "+") {
			wrong++
		}
	}
	if share := float64(wrong) / float64(all); share > 0.15 {
		t.Errorf("%d of %d sentences are misjudged", wrong, all)
	}
	// It reads marks between words, too.
	if a, b := lang.Network("no. i mean tomorrow", "en"), lang.Network("no i mean tomorrow", "en"); a == b {
		t.Errorf("a full stop between words makes no difference: %v", a)
	}
	if size := lang.OverSize(); size >= 2e6 {
		t.Errorf("the model has %d octets", size)
	}
}

// A language that was not learned is judged by what all have in common: it does not matter which one it is.
func TestOverForeign(t *testing.T) {
	for _, text := range []string{"mi volas mendi tablon por du", "did you get my order of last week", "tak, das ist wirklich alles."} {
		if a, b := lang.Over(text, "xx"), lang.Over(text, "eo"); a != b {
			t.Errorf("%q: %v and %v", text, a, b)
		}
	}
	if a, b := lang.Over("i would like to book a table for tonight", "xx"), lang.Over("i would like to book a table for", "xx"); a < b {
		t.Errorf("what is complete is over with %v, what is not with %v", a, b)
	}
}

// Of one word or two the network says nothing, as it takes what may be a whole turn for a beginning. What it is too low by is
// added where it does.
func TestOverShort(t *testing.T) {
	for _, c := range []struct {
		language, text string
		want           float64
	}{
		{"en", "when do you open", 0.473}, {"en", "that is all", 0.852}, {"en", "that would be great", 0.734}, {"en", "a table", 0.036},
		{"de", "für zwei personen", 0.302}, {"en", "i would like to book a table for two", 0.442},
	} {
		if p := lang.Over(c.text, c.language); math.Abs(p-c.want) > 0.01 {
			t.Errorf("%s %q: %.3f, want %.3f", c.language, c.text, p, c.want)
		}
	}
}

// In scripts without spaces, of which the network reads characters, a text is as long as half of them.
func TestOverSizes(t *testing.T) {
	zh := func(n int) []uint32 { return lang.EndClues("我想订一张桌子", n, "", "zh") }
	alike := func(a, b []uint32) (n int) {
		for _, c := range a {
			if slices.Contains(b, c) {
				n++
			}
		}
		return n
	}
	en := lang.EndClues("i would like to book a table", 7, "", "en")
	if n := alike(zh(7), en); n != len(en)-2 { // the size, and the size with the mark
		t.Errorf("%d of %d clues are those of an English text of as many words", n, len(en))
	}
	if n := alike(zh(7), zh(6)); n != len(en) {
		t.Errorf("%d of %d clues are the same with six characters and with seven", n, len(en))
	}
	if n := alike(zh(30), zh(24)); n != len(en)-2 {
		t.Errorf("%d of %d clues are the same with 24 characters and with 30", n, len(en))
	}
}

// What our rules know for certain is not left to the model.
func TestOverKnown(t *testing.T) {
	for _, c := range []struct {
		language, text string
		least, most    float64
	}{
		{"en", "my number is", 0, 0.1}, {"en", "my number is 555", 0, 0.1}, {"de", "meine Nummer ist", 0, 0.1},
		{"en", "my number is one two three", 0, 0.1}, {"en", "well,", 0, 0.1}, {"en", "so...", 0, 0.1}, {"en", "um", 0, 0.1},
		{"en", "that is all", 0.85, 1}, {"en", "No, that's all, thank you", 0.85, 1}, {"de", "nein danke das war's", 0.85, 1},
		{"fr", "c'est tout", 0.85, 1}, {"es", "nada más", 0.85, 1}, {"it", "basta così", 0.85, 1}, {"pt", "é só isso", 0.85, 1},
		{"nl", "dat was het", 0.85, 1}, {"pl", "to wszystko", 0.85, 1}, {"en", "that is all of", 0, 0.3},
		{"en", "thank you", 0.85, 1}, {"en", "thank you,", 0, 0.1},
		{"en", "yes please", 0.85, 1}, {"en", "no", 0.85, 1}, {"de", "ja bitte", 0.85, 1}, {"ja", "はい", 0.85, 1},
		{"en", "hello", 0.85, 1}, {"en", "yes it", 0, 0.3}, {"en", "can i please", 0, 0.3}, {"en", "yes it.", 0, 0.7},
		{"en", "is it open?", 0.85, 1}, {"en", "I would like a table for two.", 0.85, 1}, {"en", "could you tell me what.", 0, 0.7},
		{"en", "", 0.5, 0.5}, {"en", " ?", 0.5, 0.5},
	} {
		if p := lang.Over(c.text, c.language); p < c.least || p > c.most {
			t.Errorf("%s %q: %.2f, want %v to %v", c.language, c.text, p, c.least, c.most)
		}
	}
}

func FuzzOver(f *testing.F) {
	f.Add("I would like a table, for two.", "en")
	f.Add("你好，世界。 3 €", "zh")
	f.Fuzz(func(t *testing.T, text, language string) {
		if p := lang.Over(text, language); !(p > 0 && p < 1) || p != lang.Over(text, language) {
			t.Fatalf("%q: %v", text, p)
		}
	})
}

// Judging a text costs so little that a call's words, some five new texts a second, take far less than a percent of a
// processor.
func BenchmarkOver(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		lang.Over("hello i wanted to ask whether you still have a room for the weekend after next we would arrive on", "en")
	}
}

// judged is an utterance that was held out: its longest pause, and what the rules and the model make of its words there
// and at its end.
type judged struct {
	pause         float64
	paused, whole verdict
}

type verdict struct{ factor, over float64 }

func judge(text, language string) verdict {
	v := verdict{1, lang.Over(text, language)}
	switch lang.Completeness(text, language) {
	case lang.Finished:
		v.factor = 0.5
	case lang.Unfinished:
		v.factor = 2.5
	}
	return v
}

// ways to decide how much silence ends a turn: all the same, by the rules that there were before the model, as it is now.
var ways = []struct {
	name string
	wait func(v verdict, usual float64) float64
}{
	{"silence alone", func(_ verdict, usual float64) float64 { return usual }},
	{"the rules before", func(v verdict, usual float64) float64 { return min(max(usual*v.factor, 200), 2000) }},
	{"now", func(v verdict, usual float64) float64 {
		return float64(turn.Patience(time.Duration(usual)*time.Millisecond, v.over).Milliseconds())
	}},
}

// with is how many are cut off, and how long it takes in the mean until a turn is taken, with so much usual silence.
func with(way int, usual float64, said []judged) (cut, delay float64) {
	for i := range said {
		if said[i].pause > ways[way].wait(said[i].paused, usual) {
			cut++
		}
		delay += ways[way].wait(said[i].whole, usual)
	}
	n := float64(len(said))
	return cut / n, delay / n
}

// solve finds the usual silence from which on something is so.
func solve(so func(usual float64) bool) float64 {
	low, high := 10.0, 20000.0
	for range 20 {
		if mid := math.Sqrt(low * high); so(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// cutAt is how many are cut off when turns are taken after so long in the mean.
func cutAt(way int, delay float64, said []judged) float64 {
	cut, _ := with(way, solve(func(u float64) bool { _, d := with(way, u, said); return d >= delay }), said)
	return cut
}

// delayAt is after how long turns are taken in the mean when so many are cut off.
func delayAt(way int, cut float64, said []judged) float64 {
	_, delay := with(way, solve(func(u float64) bool { c, _ := with(way, u, said); return c <= cut }), said)
	return delay
}

// spread is between which figures 95 of 100 resamples of the utterances are: of those cut off when turns are taken after
// 300 ms in the mean, and of the mean time until a turn is taken when one in twenty is cut off.
func spread(way int, said []judged, r *rand.Rand) (cut, delay [2]float64) {
	const resamples, points = 1000, 16
	measure := func(around float64, from func(c, d float64) float64, to func(c, d float64) float64, want float64) [2]float64 {
		var cuts, waits [points][]float32
		for p := range points {
			usual := around * math.Pow(1.03, float64(p)-(points-1)/2.)
			cuts[p], waits[p] = make([]float32, len(said)), make([]float32, len(said))
			for i := range said {
				if said[i].pause > ways[way].wait(said[i].paused, usual) {
					cuts[p][i] = 1
				}
				waits[p][i] = float32(ways[way].wait(said[i].whole, usual))
			}
		}
		found := make([]float64, resamples)
		times := make([]float32, len(said))
		for n := range found {
			clear(times)
			for range said {
				times[r.IntN(len(said))]++
			}
			var known, asked [points]float64
			for p := range points {
				c, d := 0.0, 0.0
				for i, k := range times {
					c, d = c+float64(k*cuts[p][i]), d+float64(k*waits[p][i])
				}
				c, d = c/float64(len(said)), d/float64(len(said))
				known[p], asked[p] = from(c, d), to(c, d)
			}
			p := 1
			for p < points-1 && (known[p]-want)*(known[0]-want) > 0 {
				p++
			}
			share := (want - known[p-1]) / (known[p] - known[p-1])
			found[n] = asked[p-1] + share*(asked[p]-asked[p-1])
		}
		slices.Sort(found)
		return [2]float64{found[resamples/40], found[resamples-resamples/40-1]}
	}
	cutOf, delayOf := func(c, _ float64) float64 { return c }, func(_, d float64) float64 { return d }
	three := solve(func(u float64) bool { _, d := with(way, u, said); return d >= 300 })
	twenty := solve(func(u float64) bool { c, _ := with(way, u, said); return c <= 0.05 })
	return measure(three, delayOf, cutOf, 300), measure(twenty, cutOf, delayOf, 0.05)
}

// ahead is how many replies a turn are begun in vain before its end, how many of all are used, and how much sooner than
// the turn's end they begin in the mean, with endpoint_sensitivity 0.5. The text is there 250 ms after the last word.
func ahead(smart bool, judge func(v verdict, quiet float64) bool, said []judged) (vain, used, sooner float64) {
	const usual, known = 600, 250
	begun := 0.0
	begin := func(v verdict) (at, end float64) {
		end = usual
		if smart {
			end = ways[2].wait(v, usual)
		}
		for at = known; at < end && !judge(v, at); at += 20 {
		}
		return at, end
	}
	for i := range said {
		if at, end := begin(said[i].paused); at < min(said[i].pause, end) {
			if begun++; said[i].pause < end {
				vain++
			}
		}
		if at, end := begin(said[i].whole); at < end {
			begun++
			sooner += end - at
		}
	}
	n := float64(len(said))
	return vain / n, 1 - vain/begun, sooner / n
}

// waits are how long turns take that are over, with so much usual silence: half of them, nine of ten, and the longest.
func waits(way int, usual float64, said []judged) (half, nine, all float64) {
	list := make([]float64, len(said))
	for i := range said {
		list[i] = ways[way].wait(said[i].whole, usual)
	}
	slices.Sort(list)
	return list[len(list)/2], list[len(list)*9/10], list[len(list)-1]
}

// longer is how many of 10,000 turns that are over wait for longer than that, with so much usual silence, by the rules
// of now.
func longer(usual, than float64, said []judged) float64 {
	n := 0
	for i := range said {
		if ways[2].wait(said[i].whole, usual) > than {
			n++
		}
	}
	return 1e4 * float64(n) / float64(len(said))
}

// The sentences of testdata/turns.tsv that are for testing, with pauses that we put into them: how many speakers are cut
// off, and how long the others wait. PARLEY_TURNS_PART names another part, PARLEY_TURNS_WEIGHTS a file with weights other
// than the program's, and PARLEY_TURNS_LANGUAGES some languages: those that these weights were not learned from.
func TestTurnsHeldOut(t *testing.T) {
	sources(t)
	part, chosen := "test", languages()
	if p := os.Getenv("PARLEY_TURNS_PART"); p != "" {
		part = p
	}
	if l := strings.Fields(os.Getenv("PARLEY_TURNS_LANGUAGES")); len(l) > 0 {
		chosen = l
	}
	if f := os.Getenv("PARLEY_TURNS_WEIGHTS"); f != "" {
		weights, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lang.Weigh(weights)
	}
	r := rand.New(rand.NewPCG(5, 5))
	for _, punctuated := range []bool{false, true} {
		var all []judged
		about := "words without punctuation"
		if punctuated {
			about = "words with punctuation"
		}
		worst := 1.0
		for _, l := range chosen {
			s := saidIn(t, l, part, 500)
			var said []judged
			for i := range s.turns {
				if u := s.utter(i, r); u != nil {
					a, b := u.texts(punctuated, r)
					said = append(said, judged{u.pause, judge(a, l), judge(b, l)})
				}
			}
			all = append(all, said...)
			silent, ruled, now := cutAt(0, 300, said), cutAt(1, 300, said), cutAt(2, 300, said)
			worst = min(worst, 1-now/silent)
			if now > 0.7*silent {
				t.Errorf("%s: %.1f %% are cut off, by silence alone %.1f", l, 100*now, 100*silent)
			}
			t.Logf("quality: turns, %s, %s: cut off at 300 ms in the mean: %.1f ± %.1f %% (the rules before %.1f, silence alone %.1f) of %d",
				about, l, 100*now, 196*math.Sqrt(now*(1-now)/float64(len(said))), 100*ruled, 100*silent, len(said))
		}
		for way := range ways {
			cut, delay := spread(way, all, r)
			usualCut, usualDelay := with(way, 600, all)
			maxCut, maxDelay := with(way, 1200, all)
			half, nine, longest := waits(way, 600, all)
			t.Logf("quality: turns, %s, %s: cut off at 300 ms in the mean %.1f %%, %.1f to %.1f (goal 25); delay at 5 %% cut off %.0f ms, "+
				"%.0f to %.0f (goal 850)",
				about, ways[way].name, 100*cutAt(way, 300, all), 100*cut[0], 100*cut[1], delayAt(way, 0.05, all), delay[0], delay[1])
			t.Logf("quality: turns, %s, %s: with endpoint_sensitivity 0.5 %.1f %% and %.0f ms (half %.0f, nine of ten %.0f, at most %.0f); "+
				"with 0 %.1f %% and %.0f ms; %d utterances, pauses put in by us",
				about, ways[way].name, 100*usualCut, usualDelay, half, nine, longest, 100*maxCut, maxDelay, len(all))
		}
		t.Logf("quality: turns, %s: of 10,000 that are over, with endpoint_sensitivity 0.5 %.1f wait for more than 3.5 s and %.1f for more "+
			"than 5, with 0 %.1f and %.1f",
			about, longer(600, 3500, all), longer(600, 5000, all), longer(1200, 3500, all), longer(1200, 5000, all))
		if n := longer(600, 3500, all); n > 10 {
			t.Errorf("%s: with endpoint_sensitivity 0.5 %.1f of 10,000 that are over wait for more than 3.5 s", about, n)
		}
		for _, name := range []string{"vad", "ai"} {
			for begins, judge := range map[string]func(verdict, float64) bool{
				"where the words don't break off": func(v verdict, _ float64) bool { return v.factor < 2 },
				"by P and the silence": func(v verdict, quiet float64) bool {
					return turn.Likely(v.over, time.Duration(quiet)*time.Millisecond) >= 0.5
				},
			} {
				vain, used, sooner := ahead(name == "ai", judge, all)
				t.Logf("quality: turns, %s: thinking ahead with %s, begun %s: %.1f %% of replies are used, %.0f of 100 turns have one in vain; "+
					"sooner by %.0f ms in the mean",
					about, name, begins, 100*used, 100*vain, sooner)
			}
		}
		t.Logf("quality: turns, %s: at least %.0f %% fewer are cut off in each language than by silence alone (goal 30)", about, 100*worst)
	}
}
