package turn

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/lang"
)

// script is how something takes a call, by language, half and kind: testdata/answerers.txt.
type scripts map[string][]string

func readScripts(t *testing.T) scripts {
	text, err := os.ReadFile("testdata/answerers.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := scripts{}
	for line := range strings.Lines(string(text)) {
		if key, said, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.HasPrefix(key, "#") {
			out[key] = append(out[key], said)
		}
	}
	return out
}

// farEnd takes a call of ours: it speaks in time, word by word, and hears what we say and press. What it says is voiced
// by the lengths of the words, and recognition is imitated: one word in ten is lost, and a word is known 300 ms after it
// was said.
type farEnd struct {
	m        *Machine
	r        *rand.Rand
	language string
	at       time.Duration
	known    []knownWord
	texts    map[int]string // of utterances
	open     int            // the one that is open, -1
	replies  []reaction

	keys    string
	named   int // how often we said who we are
	greeted bool
	over    bool
	kinds   []Answerer
	times   []time.Duration
}

type knownWord struct {
	at   time.Duration
	n    int
	text string // "": the utterance is over
}

type reaction struct {
	at time.Duration
	e  Event
}

func newFarEnd(seed uint64, language, goal string) *farEnd {
	m := New(Manner{Language: language, Interruptible: true, Confirm: 300 * time.Millisecond, Endpoint: 600 * time.Millisecond,
		Initial: "Hello.", Wait: true, Reengage: time.Minute, MaxSilence: time.Minute, MaxDuration: time.Hour, Outbound: true,
		EndOnMachine: true, Keys: true, Goal: goal})
	f := &farEnd{m: m, r: rand.New(rand.NewPCG(seed, 41)), language: language, texts: map[int]string{}, open: -1}
	f.do(m.Start(0))
	return f
}

func (f *farEnd) do(actions []Action) {
	for _, a := range slices.Clone(actions) {
		switch a.Kind {
		case OpenEar:
			f.open = a.N
		case CloseEar:
			f.known = append(f.known, knownWord{f.at + 300*time.Millisecond, f.open, ""})
			f.open = -1
		case AnsweredBy:
			f.kinds, f.times = append(f.kinds, a.Who), append(f.times, f.at)
		case Press:
			f.keys += a.Text
		case HangUp:
			f.over = true
		case Think:
			if a.Purpose == Screened {
				f.named++
			} else {
				f.greeted = true
			}
			f.say(a.Reply, true)
		case Say:
			f.greeted = f.greeted || a.Purpose == Greeting
			f.say(a.Reply, false)
		case Speak:
			f.replies = append(f.replies, reaction{f.at + 100*time.Millisecond, Event{Kind: Sounded, Reply: a.Reply}},
				reaction{f.at + 2*time.Second, Event{Kind: Played, Reply: a.Reply}})
		}
	}
}

// say has a reply thought, or a sentence of it played.
func (f *farEnd) say(reply int, thinks bool) {
	if thinks {
		f.replies = append(f.replies, reaction{f.at + 300*time.Millisecond, Event{Kind: Sentence, Reply: reply, Text: "Well."}},
			reaction{f.at + 320*time.Millisecond, Event{Kind: Thought, Reply: reply}})
		return
	}
	f.replies = append(f.replies, reaction{f.at + 40*time.Millisecond, Event{Kind: Sounded, Reply: reply}},
		reaction{f.at + 1500*time.Millisecond, Event{Kind: Played, Reply: reply}})
}

// frame is 20 ms.
func (f *farEnd) frame(voiced bool) {
	if f.over {
		return
	}
	step := func(e Event) {
		e.At = f.at
		f.do(f.m.Step(e))
	}
	step(Event{Kind: Voice, Speech: voiced, Voiced: voiced, Sure: voiced})
	step(Event{Kind: Tick})
	for len(f.known) > 0 && f.known[0].at <= f.at {
		w := f.known[0]
		f.known = f.known[1:]
		f.texts[w.n] = strings.TrimSpace(f.texts[w.n] + " " + w.text)
		step(Event{Kind: Text, N: w.n, Text: f.texts[w.n], Final: w.text == "" || w.n != f.open})
	}
	for i := 0; i < len(f.replies); i++ {
		if r := f.replies[i]; r.at <= f.at {
			f.replies = slices.Delete(f.replies, i, i+1)
			step(r.e)
			i = -1
		}
	}
	f.at += frameTime
}

func (f *farEnd) wait(d time.Duration) {
	for end := f.at + d; f.at < end && !f.over; {
		f.frame(false)
	}
}

// until waits for something, not for ever.
func (f *farEnd) until(d time.Duration, ok func() bool) bool {
	for end := f.at + d; f.at < end && !f.over && !ok(); {
		f.frame(false)
	}
	return ok()
}

// music is sound in which nothing is understood.
func (f *farEnd) music(d time.Duration) {
	for end := f.at + d; f.at < end && !f.over; {
		f.frame(f.r.IntN(3) > 0)
	}
}

// speak says a text; when stop holds, it breaks off.
func (f *farEnd) speak(text string, stop func() bool) {
	for _, w := range strings.Fields(text) {
		if stop != nil && stop() {
			return
		}
		word := strings.Trim(strings.ToLower(w), ".,?!¿¡:")
		length := time.Duration(120+45*len([]rune(word))+f.r.IntN(80)) * time.Millisecond
		for end := f.at + length; f.at < end && !f.over; {
			f.frame(true)
		}
		if f.r.IntN(10) > 0 && word != "" && f.open >= 0 {
			f.known = append(f.known, knownWord{f.at + 300*time.Millisecond, f.open, word})
			slices.SortStableFunc(f.known, func(a, b knownWord) int { return int(a.at - b.at) })
		}
		switch w[len(w)-1] {
		case ',':
			f.wait(time.Duration(100+f.r.IntN(150)) * time.Millisecond)
		case '.', '?', '!':
			f.wait(time.Duration(250+f.r.IntN(450)) * time.Millisecond)
		}
	}
}

// answering is a run of the scripts of one half.
type answering struct {
	scripts
	half  string
	times []time.Duration
	known []time.Duration // that it is a person, or a machine of whatever kind
	kind  map[string][]time.Duration
}

func (a *answering) pick(r *rand.Rand, language, kind string) string {
	list := a.scripts[language+" "+a.half+" "+kind]
	text := list[r.IntN(len(list))]
	names := []string{"Alex Turner", "Maria Lopez", "Jonas Weber", "Sophie Martin", "Chiara Russo", "Rui Costa", "Daan Visser"}
	companies := []string{"Northwind", "City Dental", "Hotel Riviera", "Acme", "Bakker en Zonen", "Café Central"}
	if a.half == "held" {
		names = []string{"Priya Nair", "Oscar Lind", "Tomasz Zielinski", "Amélie Roux", "Ken Sato", "Lucía Ferrer"}
		companies = []string{"Bluebird Travel", "Kowalczyk Logistics", "Praxis Sommer", "Green Valley", "Studio Nove"}
	}
	return strings.NewReplacer("{n}", names[r.IntN(len(names))], "{c}", companies[r.IntN(len(companies))]).Replace(text)
}

// picksUp is a person who takes the call after a machine; they must be greeted.
func (a *answering) picksUp(f *farEnd, r *rand.Rand) bool {
	f.greeted = false
	f.wait(300 * time.Millisecond)
	for range 2 {
		f.speak(a.pick(r, f.language, "person"), nil)
		if f.until(4*time.Second, func() bool { return f.greeted }) {
			return true
		}
	}
	return false
}

// first notes when a verdict of a kind came, from the answer on.
func (a *answering) first(f *farEnd, name string, kinds ...Answerer) bool {
	a.known = append(a.known, append(slices.Clone(f.times), time.Minute)[0])
	for i, k := range f.kinds {
		if slices.Contains(kinds, k) {
			a.times, a.kind[name] = append(a.times, f.times[i]), append(a.kind[name], f.times[i])
			return true
		}
	}
	a.times, a.kind[name] = append(a.times, time.Minute), append(a.kind[name], time.Minute)
	return false
}

// menu is the far end's menu of one to three levels; it says whether the goal was reached.
func (a *answering) menu(f *farEnd, r *rand.Rand, language string) (reached bool) {
	depts := strings.Split(a.pick(r, language, "dept"), ", ")
	parts := strings.Split(a.pick(r, language, "menu"), " | ")
	goal := ""
	levels := 1 + r.IntN(2)
	for level := range levels {
		r.Shuffle(len(depts), func(i, k int) { depts[i], depts[k] = depts[k], depts[i] })
		numeral := func(k int) string {
			if r.IntN(2) == 0 {
				return fmt.Sprint(k)
			}
			return strings.Split(lang.Of(language).Dictation.Numerals[k], "|")[0]
		}
		want := byte('0')
		prompt := ""
		if level == 0 {
			prompt = parts[0]
		}
		for i, d := range depts {
			label, meant, _ := strings.Cut(d, "=")
			if level == 0 && i == 1 {
				goal, want = meant, byte('1'+i)
			}
			if level > 0 && label == "" {
				continue
			}
			prompt += " " + strings.NewReplacer("{o}", label, "{k}", numeral(i+1)).Replace(parts[1])
		}
		if level > 0 { // nothing fits: a person is wanted
			f.m.manner.Goal = "zzz"
		} else if r.IntN(3) == 0 {
			f.m.manner.Goal, want = "", '0'
		} else {
			f.m.manner.Goal = goal
		}
		prompt += " " + strings.ReplaceAll(parts[2], "{k}", numeral(0))
		pressed := false
		for range 3 {
			n := len(f.keys)
			is := func() bool { return len(f.keys) > n }
			f.speak(prompt, is)
			if f.until(5*time.Second, is) {
				if f.keys[n] != want {
					if level == 0 && os.Getenv("PARLEY_SCRIPTS") != "" {
						fmt.Printf("%s goal %q: %c, not %c: %q\n", language, f.m.manner.Goal, f.keys[n], want, prompt)
					}
					return false
				}
				pressed = true
				break
			}
		}
		if !pressed {
			return false
		}
		f.wait(time.Second)
	}
	return true
}

// TestAnswerers: three hundred scripts of each kind, in seven languages, of the half that the rules were not made with.
// Nobody is lost, no screener is taken for a voicemail, and menus are got through. The scripts were written by us, and
// both sound and recognition are imitated; TestWhoAnswered has voices.
func TestAnswerers(t *testing.T) {
	halves, each := []string{"held"}, 100
	if os.Getenv("PARLEY_QUALITY") == "all" {
		halves, each = []string{"tuned", "held"}, 300
	}
	for _, half := range halves {
		answerers(t, &answering{scripts: readScripts(t), half: half, kind: map[string][]time.Duration{}}, each)
	}
}

func answerers(t *testing.T, a *answering, each int) {
	languages := []string{"en", "en", "de", "es", "fr", "it", "pt", "nl"}
	count := map[string]int{}
	miss := func(what, language string, f *farEnd, text string) {
		if count[what]++; count[what] <= 12 && testing.Verbose() {
			t.Logf("%s: %s: %s %q: %v %v", a.half, what, language, text, f.kinds, f.times)
		}
	}
	for i := range each {
		language := languages[i%len(languages)]
		r := rand.New(rand.NewPCG(uint64(i), 43))
		begin := func() *farEnd {
			f := newFarEnd(uint64(i), language, "")
			f.wait(time.Duration(200+r.IntN(700)) * time.Millisecond)
			return f
		}
		f, text := begin(), a.pick(r, language, "person")
		f.speak(text, nil)
		if !f.until(4*time.Second, func() bool { return f.greeted }) {
			f.speak(text, nil) // nothing was understood: they say it again
		}
		if f.until(4*time.Second, func() bool { return f.greeted }); !f.greeted || f.over {
			miss("people lost", language, f, text)
		}
		a.first(f, "person", Person)

		f, text = begin(), a.pick(r, language, "voicemail")
		f.speak(text, nil)
		f.wait(4 * time.Second)
		if !a.first(f, "voicemail", Mailbox) {
			miss("voicemails not found", language, f, text)
		}

		f, text = begin(), a.pick(r, language, "screener")
		f.speak(text, nil)
		f.until(4*time.Second, func() bool { return f.named > 0 || f.greeted })
		if !a.first(f, "screener", Screener) {
			miss("screeners not found", language, f, text)
		}
		if slices.Contains(f.kinds, Mailbox) {
			miss("screeners taken for voicemail", language, f, text)
		}
		f.wait(3 * time.Second)
		f.speak(a.pick(r, language, "hold"), nil)
		f.wait(time.Duration(2+r.IntN(20)) * time.Second)
		if f.named != 1 && !f.greeted || !a.picksUp(f, r) {
			miss("people lost behind a screener", language, f, text)
		}

		f = begin()
		if reached := a.menu(f, r, language); !reached || !a.picksUp(f, r) {
			miss("menus not got through", language, f, f.keys)
		}
		a.first(f, "menu", Menu)

		f, text = begin(), a.pick(r, language, "hold")
		f.speak(text, nil)
		f.wait(time.Second)
		f.music(time.Duration(5+r.IntN(20)) * time.Second)
		f.wait(500 * time.Millisecond)
		f.speak(a.pick(r, language, "hold"), nil)
		f.wait(2 * time.Second)
		a.first(f, "hold", OnHold)
		if !a.picksUp(f, r) {
			miss("people lost behind hold music", language, f, text)
		}
	}
	share := func(what string) float64 { return 100 * float64(count[what]) / float64(each) }
	half := map[string]string{"tuned": "the half they were made with", "held": "held out"}[a.half]
	for _, g := range []struct {
		what string
		most float64
	}{{"people lost", 1}, {"voicemails not found", 10}, {"screeners taken for voicemail", 2},
		{"people lost behind a screener", 5}, {"menus not got through", 5}, {"people lost behind hold music", 5}} {
		t.Logf("quality: who answers, %s: %s, of %d: %.1f %% (goal <= %.0f %%: %s)", half, g.what, each, share(g.what), g.most,
			result(share(g.what) <= g.most))
		if a.half == "held" && share(g.what) > g.most {
			t.Errorf("%s: %.1f %%", g.what, share(g.what))
		}
	}
	for _, k := range []string{"person", "voicemail", "screener", "menu", "hold"} {
		slices.Sort(a.kind[k])
		t.Logf("quality: who answers, %s: %s: the median verdict comes %v after the answer", half, k, a.kind[k][each/2])
	}
	slices.Sort(a.known)
	t.Logf("quality: who answers, %s: %.1f %% of the screeners are answered as people are, which tells them the name, too", half, share("screeners not found"))
	t.Logf("quality: who answers, %s: whether it is a person or a machine is known %v after the answer (median)", half, a.known[len(a.known)/2])
	slices.Sort(a.times)
	t.Logf("quality: who answers, %s: all: the median verdict comes %v after the answer (goal <= 2.5s: %s)", half,
		a.times[len(a.times)/2], result(a.times[len(a.times)/2] <= 2500*time.Millisecond))
}
