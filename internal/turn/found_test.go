package turn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// recognizers plays the events of a recognizer that detects turns: a script of steps separated by ";". "v12" are frames of
// speech, ".5" of silence; the other steps may be followed by a text.
func (w *world) recognizers(script string) {
	n := func() int { return w.m.next - 1 }
	for _, step := range strings.Split(script, ";") {
		verb, text, _ := strings.Cut(strings.TrimSpace(step), " ")
		count := 0
		if _, err := fmt.Sscanf(verb[1:], "%d", &count); err == nil && (verb[0] == 'v' || verb[0] == '.') {
			for range count {
				w.op(verb[0])
			}
			continue
		}
		switch verb {
		case "started":
			w.send(Event{Kind: Started, N: n(), Text: text})
		case "eager":
			w.send(Event{Kind: Eager, N: n(), Text: text})
		case "resumed":
			w.send(Event{Kind: Resumed, N: n(), Text: text})
		case "ended":
			w.send(Event{Kind: Ended, N: n(), Text: text})
		case "earlier": // an end of turn that is reported after another utterance has begun
			w.send(Event{Kind: Ended, N: n() - 1, Text: text})
		case "partial":
			w.send(Event{Kind: Text, N: n(), Text: text})
		case "final":
			w.send(Event{Kind: Text, N: n(), Text: text, Final: true})
		case "fails": // the model
			w.think = false
			w.send(Event{Kind: Thought, Reply: w.live, Failed: true})
		case "judged":
			p, text, _ := strings.Cut(text, " ")
			over, err := strconv.ParseFloat(p, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			w.send(Event{Kind: Judged, Text: text, Over: over})
		case "speaks":
			w.send(Event{Kind: Language, Text: text})
		case "heard": // the reply's first words
			w.send(Event{Kind: Sentence, Reply: w.live, Text: "A sentence of some length."})
			w.send(Event{Kind: Thought, Reply: w.live})
			w.sounds = true
			w.send(Event{Kind: Sounded, Reply: w.live})
		default:
			w.t.Fatalf("what is %q?", verb)
		}
	}
}

// said returns what the machine has said about thinking.
func (w *world) said() []string {
	var list []string
	for _, o := range w.log {
		if !o.acts {
			continue
		}
		switch a := o.action; a.Kind {
		case Think:
			name := "think"
			if a.Early {
				name = "early"
			}
			list = append(list, fmt.Sprintf("%s %q", name, a.Text))
		case Commit:
			list = append(list, "commit")
		case Cut:
			list = append(list, fmt.Sprintf("cut joined=%v", a.Join))
		}
	}
	return list
}

// The recognizer's turn events move a turn on at once, and because of them nothing is answered twice or dropped.
func TestRecognizerTurns(t *testing.T) {
	vad, smart, idle := manners(0), manners(2), manners(0)
	for _, m := range []*Manner{&vad, &smart, &idle} {
		m.Initial = ""
	}
	vad.Speculate, smart.Speculate = true, true
	for name, c := range map[string]struct {
		manner Manner
		script string
		want   []string
	}{
		"an end is taken at once":      {vad, "v30; .5; ended a table please", []string{`think "a table please"`}},
		"an eager end begins to think": {vad, "v30; .5; eager a table", []string{`early "a table"`}},
		"and the end lets it be heard": {vad, "v30; .5; eager a table; .3; ended a table",
			[]string{`early "a table"`, "commit"}},
		"an end after the utterance was closed": {vad, "v30; .5; eager a table; .10; final a table; .3; ended",
			[]string{`early "a table"`, "commit"}},
		"who goes on drops it": {vad, "v30; .5; eager a table; .3; resumed; v20; .5; eager with a view",
			[]string{`early "a table"`, "cut joined=true", `early "a table with a view"`}},
		"whoever is said to go on and doesn't is waited for": {vad, "v30; .5; eager a table; .3; resumed; .29",
			[]string{`early "a table"`, "cut joined=true"}},
		"but not for ever": {vad, "v30; .5; eager a table; .3; resumed; .31",
			[]string{`early "a table"`, "cut joined=true", `think "a table"`}},
		"an ear that says no more leaves it to the pause": {vad, "v30; .5; eager a table; .26",
			[]string{`early "a table"`, "commit"}},
		"and not before it": {vad, "v30; .5; eager a table; .23", []string{`early "a table"`}},
		"where what was said counts, the ear's end is waited for": {smart,
			"v30; started; .12; final yes please.; .86", []string{`early "yes please."`}},
		"two seconds": {smart, "v30; started; .12; final yes please.; .90", []string{`early "yes please."`, "commit"}},
		"elsewhere the pause is enough": {vad, "v30; started; .12; final a table please; .20",
			[]string{`early "a table please"`, "commit"}},
		"nothing is begun where that is not wanted": {idle, "v30; .12; final a table please; .15", nil},
		"but on the word of the ear": {idle, "v30; .5; eager a table; .3; ended",
			[]string{`early "a table"`, "commit"}},
		"the final text is what it was taken for": {vad, "v30; .5; eager a table; final A table.",
			[]string{`early "a table"`}},
		"it is not": {vad, "v30; .5; eager a table; final a cable",
			[]string{`early "a table"`, "cut joined=true", `early "a cable"`}},
		"it turns out to be in another language": {vad, "v30; .5; eager a table; .3; speaks es; .3; ended",
			[]string{`early "a table"`, "cut joined=true", `early "a table"`, "commit"}},
		"when all is decided": {vad, "v30; .5; ended a table; speaks es; .3", []string{`think "a table"`}},
		"listening in that language": {vad, "v30; .5; ended a table; heard; speaks de; .10; v20; .5; eager ja genau; .8; ended ja genau; .9",
			[]string{`think "a table"`}},
		"it comes when all is decided": {vad, "v30; .5; ended a table; final a cable", []string{`think "a table"`}},
		"an end without a text waits for it": {vad, "v30; .12; ended; .3; final a table",
			[]string{`think "a table"`}},
		"an end while a noise goes on": {vad, "v30; partial a table; v30; ended a table",
			[]string{`think "a table"`}},
		"an eager end while they speak": {vad, "v30; partial a table; v30; eager a table", nil},
		"an end of what was before":     {vad, "v30; .12; final a table please; v5; earlier", []string{`early "a table please"`}},
		"who has probably finished":     {vad, "v30; .12; final a table please", []string{`early "a table please"`}},
		"who breaks off":                {vad, "v30; .12; final my number is; .17", nil},
		"who may go on":                 {vad, "v30; .12; final on saturday; .7", nil},
		"and then is quiet for longer":  {vad, "v30; .12; final on saturday; .8", []string{`early "on saturday"`}},
		"who has said it to a detector": {vad, "v30; .12; final a table; judged 0.97 a table", []string{`early "a table"`}},
		"who has not finished, it says": {vad, "v30; .12; partial a table please; judged 0.05 a table please; final a table please; .15", nil},
		"listening to a reply": {vad, "v30; .5; ended a table; heard; .10; v20; .5; eager mm-hm; .8; ended mm-hm; .9",
			[]string{`think "a table"`}},
		"interrupting it": {vad, "v30; .5; ended a table; heard; .10; v20; .5; ended wait for me",
			[]string{`think "a table"`, "cut joined=false", `think "wait for me"`}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.manner)
			w.recognizers(c.script)
			if got := w.said(); !slices.Equal(got, c.want) {
				w.failf("got %q, want %q", got, c.want)
			}
			w.rest()
			w.account()
		})
	}
}

// What an external detector says of a text counts in place of our own judgement of it: nothing else does.
func TestJudged(t *testing.T) {
	smart, vad := manners(2), manners(0)
	smart.Initial, vad.Initial = "", ""
	for name, c := range map[string]struct {
		manner Manner
		script string
		want   []string
	}{
		"we wait long by ourselves":    {smart, "v30; .12; final a table; .80", nil},
		"it is over at once":           {smart, "v30; .12; final a table; judged 0.97 a table", []string{`think "a table"`}},
		"before its text is final":     {smart, "v30; .12; partial a table; judged 0.97 a table; final a table", []string{`think "a table"`}},
		"as certainly as can be":       {smart, "v30; .12; final a table; judged 1 a table", []string{`think "a table"`}},
		"it is not over":               {smart, "v30; .12; final yes please; judged 0.05 yes please; .60", nil},
		"never, it says":               {smart, "v30; .12; final yes please; judged 0 yes please; .160", nil},
		"it is waited for, not longer": {smart, "v30; .12; final yes please; judged 0 yes please; .163", []string{`think "yes please"`}},
		"another text":                 {smart, "v30; .12; final a table; judged 0.97 a cable; .80", nil},
		"who says more": {smart, "v30; .12; final yes; judged 0.05 yes; v10; .12; final please; .3",
			[]string{`think "yes please"`}},
		"in another language": {smart, "v30; .12; final yes please; judged 0.05 yes please; speaks es; speaks en; .3",
			[]string{`think "yes please"`}},
		"where only silence counts": {vad, "v30; .12; final a table; judged 0.97 a table; .17", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.manner)
			w.recognizers(c.script)
			if got := w.said(); !slices.Equal(got, c.want) {
				w.failf("got %q, want %q", got, c.want)
			}
			w.rest()
			w.account()
		})
	}
}

// A model that fails at replies which were begun early, and which nobody has heard, has not failed in a row for the customer.
func TestEarlyFailures(t *testing.T) {
	m := manners(0)
	m.Initial, m.Speculate = "", true
	w := newWorld(t, m)
	w.recognizers("v30; .5; eager a table; fails; resumed; v20; .5; eager with a view; fails; resumed; v20; .5; eager for two; fails; ended")
	if w.says(Failure) == 0 || w.m.reply == nil || w.m.reply.leave != "" || w.m.failures != 1 {
		w.failf("%d failures count, %+v", w.m.failures, w.m.reply)
	}
}
