package turn

import (
	"testing"
	"time"
)

// What likely has words silences a reply, sooner where that is surer, and so does a sound of which nothing is known. For
// anything less it only steps back, and for a hum it doesn't.
func TestSilences(t *testing.T) {
	for _, c := range []struct {
		words       float32
		lasted      time.Duration
		still, back bool
	}{
		{words: 0, lasted: 60 * ms, still: true, back: true},
		{words: 2, lasted: 60 * ms, still: true, back: true},
		{words: 1.9, lasted: 120 * ms, back: true},
		{words: 1.9, lasted: 140 * ms, still: true, back: true},
		{words: 1, lasted: 140 * ms, still: true, back: true},
		{words: 0.9, lasted: time.Second, back: true},
		{words: -3, lasted: time.Second, back: true},
		{words: -3.1, lasted: time.Second},
	} {
		if still, back := Silences(c.words, c.lasted), StepsBack(c.words); still != c.still || back != c.back {
			t.Errorf("words %v after %v: silent %v, steps back %v", c.words, c.lasted, still, back)
		}
	}
}

// What the sound tells over a reply: whether the reply is silent after it, and whether it is cut off when the text comes.
func TestHum(t *testing.T) {
	type part struct {
		words  float32
		frames int
	}
	for name, c := range map[string]struct {
		sound  []part
		soon   string // the text so far, 100 ms after it began
		text   string
		held   bool
		cut    bool
		asks   bool // after the reply they are asked to say it again
		least  int  // words that interrupt
		sounds bool
	}{
		"a hum, at first":                 {sound: []part{{-2.5, 11}}, text: "yahya"},
		"a hum":                           {sound: []part{{-2.5, 14}}, text: "mm-hm"},
		"a hum, and then words":           {sound: []part{{-2.5, 14}, {1, 10}}, text: "a table for two", held: true, cut: true},
		"a hum heard as two words":        {sound: []part{{-3, 20}}, text: "and him"},
		"what may be a hum":               {sound: []part{{-1.2, 20}}, text: "yet you"},
		"hardly words":                    {sound: []part{{0.9, 20}}, text: "yet you", cut: true},
		"hardly words, at first":          {sound: []part{{0.9, 10}, {1, 1}}, held: true},
		"likely words, too soon":          {sound: []part{{1.9, 6}}},
		"likely words":                    {sound: []part{{1.9, 7}}, held: true},
		"two words that may be a hum":     {sound: []part{{-1.2, 28}}, text: "never mind", cut: true},
		"a hum heard as three":            {sound: []part{{-3, 20}}, text: "and him too", cut: true},
		"a long hum heard as two words":   {sound: []part{{-5, 36}}, text: "and him"},
		"two long words like a hum":       {sound: []part{{-3, 36}}, text: "pay later", cut: true},
		"heard soon, a hum as two words":  {sound: []part{{-3, 20}}, soon: "and", text: "and him"},
		"heard soon, stop like a hum":     {sound: []part{{-3, 16}}, soon: "stop", text: "stop", cut: true},
		"wait, what may be a hum":         {sound: []part{{-1.2, 20}}, text: "wait what", cut: true},
		"stop, like a hum":                {sound: []part{{-3, 16}}, text: "stop", cut: true},
		"words heard as nothing":          {sound: []part{{5, 20}}, held: true, asks: true},
		"words that are likely":           {sound: []part{{3, 20}}, held: true, asks: true},
		"words that may be":               {sound: []part{{2, 20}}, held: true},
		"a short word heard as nothing":   {sound: []part{{5, 12}}, held: true},
		"two words are asked for":         {sound: []part{{5, 20}}, held: true, least: 2},
		"a model that hears for itself":   {sound: []part{{5, 20}}, held: true, sounds: true},
		"a short word heard as an oh":     {sound: []part{{5, 12}}, text: "oh", held: true, cut: true},
		"a word of listening, like words": {sound: []part{{5, 20}}, text: "i see", held: true},
	} {
		m := manners(0)
		m.MinWords, m.Sound = c.least, c.sounds
		w := newWorld(t, m)
		w.op('S')
		w.at += time.Second
		for _, p := range c.sound {
			for range p.frames {
				w.at += 20 * time.Millisecond
				w.voiced++
				w.send(Event{Kind: Voice, Speech: true, Voiced: true, Words: p.words,
					Sure: w.voiced >= 3, Silences: w.voiced >= 3 && Silences(p.words, time.Duration(w.voiced)*frameTime)})
				if c.soon != "" && w.voiced == 5 {
					w.send(Event{Kind: Text, N: 0, Text: c.soon})
				}
			}
		}
		if w.held != c.held {
			t.Errorf("%s: held %v", name, w.held)
		}
		for range 12 {
			w.op('.')
		}
		w.send(Event{Kind: Text, N: 0, Text: c.text, Final: true})
		for range 60 {
			w.op('.')
		}
		if w.dead[1] != c.cut || !c.cut && w.held {
			t.Errorf("%s: cut off %v, held %v", name, w.dead[1], w.held)
		}
		if !c.cut {
			w.op('p')
		}
		if asked := w.m.reply != nil && w.m.reply.purpose == Apology; asked != c.asks {
			t.Errorf("%s: they are asked to say it again: %v", name, asked)
		}
		if w.m.missed > 0 {
			t.Errorf("%s: it counts as lost by the recognizer", name)
		}
	}
}
