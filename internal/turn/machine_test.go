package turn

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
)

// world is everything around a machine: it does what the machine says, and checks what must always hold.
type world struct {
	t       testing.TB
	m       *Machine
	at      time.Duration
	live    int // the reply that is being said, 0 for none
	dead    map[int]bool
	think   bool
	parts   int // parts of the live reply that have not been played
	held    bool
	armed   bool
	open    bool
	voiced  int   // frames in a row
	unheard []int // utterances whose final text is still missing
	texts   int
	ended   int
	turns   map[int]string // what each reply answers
	noted   []string
	keys    int // pressed
	got     int // in collected keys
	waits   bool
	log     []moment
	sounds  bool
	spoke   bool
}

// moment is an event, or something that the machine said.
type moment struct {
	at     time.Duration
	event  Event
	action Action
	acts   bool
}

func newWorld(t testing.TB, m Manner) *world {
	w := &world{t: t, m: New(m), dead: map[int]bool{}, turns: map[int]string{}}
	w.obey(w.m.Start(0))
	return w
}

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	var b strings.Builder
	for _, o := range w.log {
		if a := o.action; o.acts {
			fmt.Fprintf(&b, "%v     action %d id=%d what=%d text=%q join=%v %s\n", o.at, a.Kind, a.Reply, a.Purpose,
				a.Text, a.Join, string(a.Reason))
		} else {
			e := o.event
			fmt.Fprintf(&b, "%v event %d id=%d n=%d text=%q speech=%v final=%v failed=%v key=%q\n", o.at, e.Kind,
				e.Reply, e.N, e.Text, e.Speech, e.Final, e.Failed, e.Key)
		}
	}
	w.t.Fatalf("%s\nafter\n%s", fmt.Sprintf(format, args...), b.String())
}

func (w *world) send(e Event) {
	e.At = w.at
	if e.Kind != Tick && e.Kind != Voice || e.Speech && !w.spoke {
		w.log = append(w.log, moment{w.at, e, Action{}, false})
	}
	if e.Kind == Voice {
		w.spoke = e.Speech
	}
	armed := w.armed
	actions := w.m.Step(e)
	if r := w.m.reply; e.Kind == Resumed && r != nil && r.phase == prepared {
		w.failf("they go on, and reply %d is still thought of", r.id)
	}
	w.obey(actions)
	// A world that goes silent as soon as speech begins while the machine is armed does what the machine would have
	// said.
	has := func(kind ActionKind) bool {
		return slices.ContainsFunc(actions, func(a Action) bool { return a.Kind == kind })
	}
	// A reply that is prepared early is quiet from its beginning: there is nothing to silence.
	if e.Kind == Voice && e.Speech && e.Voiced && has(Hold) && !has(Think) && !armed {
		w.failf("it is held, and was not armed")
	}
}

// obey does what the machine says, and checks that the machine may say it.
func (w *world) obey(actions []Action) {
	for _, a := range actions {
		w.log = append(w.log, moment{w.at, Event{}, a, true})
		if w.ended > 0 {
			w.failf("action %d after the end", a.Kind)
		}
		switch a.Kind {
		case Think, Say, Speak:
			if w.dead[a.Reply] {
				w.failf("reply %d speaks after it was over", a.Reply)
			}
			if w.live != 0 && w.live != a.Reply {
				w.failf("reply %d begins while %d is being said", a.Reply, w.live)
			}
			if w.live == 0 {
				w.parts, w.sounds = 0, false
			}
			w.live = a.Reply
			if a.Kind == Think {
				w.think = true
				w.turns[a.Reply] = a.Text
			} else {
				w.parts++
			}
		case GiveUp:
			w.think = false
		case Cut, Finish:
			if a.Reply != w.live {
				w.failf("reply %d ends, which is not being said", a.Reply)
			}
			if a.Kind == Finish && (w.parts > 0 || w.think) {
				w.failf("reply %d is finished with %d parts to be played, thinking %v", a.Reply, w.parts, w.think)
			}
			if a.Join {
				if w.sounds && a.Reply == w.live && w.m.mailbox.on == false {
					w.failf("reply %d was heard, and its turn goes on", a.Reply)
				}
				delete(w.turns, a.Reply)
			}
			w.dead[a.Reply] = true
			w.live, w.think, w.parts, w.held, w.waits = 0, false, 0, false, false
		case Hold, Resume:
			if w.held == (a.Kind == Hold) {
				w.failf("it is held (%v) twice", w.held)
			}
			w.held = a.Kind == Hold
		case Arm, Disarm:
			if w.armed == (a.Kind == Arm) {
				w.failf("it is armed (%v) twice", w.armed)
			}
			w.armed = a.Kind == Arm
		case OpenRecognizer, CloseRecognizer:
			if w.open == (a.Kind == OpenRecognizer) {
				w.failf("the ear is open (%v) twice", w.open)
			}
			w.open = a.Kind == OpenRecognizer
			if w.open {
				w.unheard = append(w.unheard, w.m.next-1)
			}
		case Flush:
			w.parts = 0
		case Note:
			w.noted = append(w.noted, a.Text)
		case Collected:
			w.got += len(a.Text)
			if a.Pressed && len(a.Text) < MaxKeys {
				w.got++
			}
		case HangUp:
			w.ended++
		}
	}
}

// rest finishes whatever is under way, in a fair world: texts are recognized, the model answers, sound is played, and
// nobody says more.
func (w *world) rest() {
	for range 4000 {
		if w.ended > 0 || w.m.reply == nil && len(w.m.turn) == 0 && !w.m.open && !w.m.mailbox.on {
			return
		}
		w.at += 20 * time.Millisecond
		w.send(Event{Kind: Voice})
		w.send(Event{Kind: Tick})
		if len(w.unheard) > 0 && !(w.open && len(w.unheard) == 1) {
			n := w.unheard[0]
			w.unheard = w.unheard[1:]
			w.send(Event{Kind: Text, N: n, Final: true})
		}
		if w.think && w.live != 0 {
			w.think = false
			w.send(Event{Kind: Thought, Reply: w.live})
		}
		if w.m.reply != nil && w.m.reply.tools > 0 {
			w.send(Event{Kind: ToolEnded, Reply: w.live})
		}
		if w.parts > 0 && !w.held {
			w.play()
		}
	}
	w.failf("it is stuck: reply %+v turn %+v open %v mailbox %+v", w.m.reply, w.m.turn, w.m.open, w.m.mailbox)
}

func (w *world) play() {
	w.parts--
	if !w.sounds {
		w.sounds = true
		w.send(Event{Kind: Sounded, Reply: w.live})
	}
	w.send(Event{Kind: Played, Reply: w.live})
}

var unique = regexp.MustCompile(`w\d+x`)

// account checks that nothing that was said is answered twice, and that no key is lost or duplicated.
func (w *world) account() {
	count := map[string]int{}
	digits := 0
	for _, text := range slices.Concat(slices.Collect(func(yield func(string) bool) {
		for _, t := range w.turns {
			if !yield(t) {
				return
			}
		}
	}), w.noted) {
		for _, u := range unique.FindAllString(text, -1) {
			count[u]++
		}
		for _, k := range regexp.MustCompile(`\[keypad: ([^\]]*)\]`).FindAllStringSubmatch(text, -1) {
			digits += len(strings.Fields(k[1]))
		}
	}
	for u, n := range count {
		if n > 1 {
			w.failf("%s was answered %d times", u, n)
		}
	}
	if got := digits + w.got; got != w.keys {
		w.failf("%d keys were pressed, %d are accounted for: %v %v", w.keys, got, w.turns, w.noted)
	}
}

// If the recognizer heard "sure" and then changes it to another short word, the person is only listening; if it hears
// more words, the person has said more.
func TestNod(t *testing.T) {
	for _, c := range []struct {
		partial, final string
		frames         int
		cut            bool
	}{
		{"sure", "shah", 20, false}, {"oh", "over", 20, true}, {"yeah", "yeah wait", 25, true},
		{"sure", "shah", 60, true}, {"shah", "shah", 20, true},
		{"yeah", "yet he was late", 25, true},
	} {
		w := newWorld(t, manners(0))
		w.op('S')
		w.at += time.Second
		for i := range c.frames {
			w.op('v')
			if i == c.frames/2 && c.partial != "" {
				w.send(Event{Kind: Text, N: 0, Text: c.partial})
			}
		}
		for range 12 {
			w.op('.')
		}
		w.send(Event{Kind: Text, N: 0, Text: c.final, Final: true})
		if w.dead[1] != c.cut || w.held {
			t.Errorf("%q, then %q after %d frames: cut off %v, held %v", c.partial, c.final, c.frames, w.dead[1],
				w.held)
		}
	}
}

// TestHalt: "stop", "wait" and "no" cut a reply off however short they are, once their text is known; other words as
// short don't, and neither do these where the sound was hardly speech, or where more words are asked for.
func TestHalt(t *testing.T) {
	for _, c := range []struct {
		language, text string
		sound          string
		words          int
		cut            bool
	}{
		{"en", "Stop.", "vvvvvvvv", 0, true}, {"en", "no", "vvvv", 0, true}, {"en", "no no wait", "vvvvvvvvvv", 0, true},
		{"en", "okay stop", "vvvvvvvvvv", 0, true}, {"de", "Moment mal!", "vvvvvvvvvv", 0, true}, {"ja", "待って", "vvvvvvvv", 0, true},
		{"en", "cat", "vvvvvvvv", 0, false}, {"en", "okay", "vvvvvvvv", 0, false}, {"en", "no problem", "vvvvvvvvvv", 0, false},
		{"en", "stop", "v.v", 0, false}, {"en", "stop", "vvvvvvvv", 2, false}, {"de", "stop it", "vvvvvvvv", 0, false},
		{"xx", "stop", "vvvvvvvv", 0, false},
	} {
		manner := manners(0)
		manner.Language, manner.MinWords, manner.Initial = c.language, c.words, "Hello. I am calling about your order."
		w := newWorld(t, manner)
		w.op('S')
		w.at += time.Second
		for _, op := range c.sound + "............" {
			w.op(byte(op))
		}
		if w.dead[1] || w.held {
			t.Errorf("%q: before its text is known: cut off %v, held %v", c.text, w.dead[1], w.held)
		}
		w.send(Event{Kind: Text, N: 0, Text: c.text, Final: true})
		if w.dead[1] != c.cut || w.held {
			t.Errorf("%s %q (%s): cut off %v, held %v", c.language, c.text, c.sound, w.dead[1], w.held)
		}
	}
}

// TestStaysSilent: a reply that has fallen silent stays silent while the sound lasts, whatever it is like, and in its pauses. When
// it is over the reply goes on, unless the sound is long or likely has words, or its text so far is more than listening: then
// it waits for the text. Who speaks on after that silences it once more.
func TestStaysSilent(t *testing.T) {
	for _, c := range []struct {
		partial string
		sound   string
		held    bool
	}{
		{"", "vvvvvvvvvvvvvvvvvvvv.........", true},
		{"", "vvvvvvvvvvvvvvvvvvvv..........", false},
		{"", "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv..........", true},
		{"yeah okay", "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv.........", true},
		{"yeah okay", "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv..........", false},
		{"stop", "vvvvvvvvvvvvvvvvvvvv..........", true},
		{"what", "vvvvvvvvvvvvvvvvvvvv..........", true},
		{"", "wwwwwwww..........", true},
		{"okay", "wwwwwwwwwwwwwwwwwwww..........", true},
		{"", "wwwwwuuuuuuuuuuuuuuu.........", true},
		{"", "wwwwwuuuuuuuuuuuuuuu..........", false},
		{"", "vvvvvvvvvvvvvvvvvvvv..........vv", false},
		{"", "vvvvvvvvvvvvvvvvvvvv..........vvv", true},
		{"", "vvvvvvvvvv......vvv.........", true},
	} {
		w := newWorld(t, manners(0))
		w.op('S')
		w.at += time.Second
		for i, op := range c.sound {
			if w.op(byte(op)); i == 5 && c.partial != "" {
				w.send(Event{Kind: Text, N: 0, Text: c.partial})
			}
		}
		if w.held != c.held || w.dead[1] {
			t.Errorf("%s, %q: held %v, cut off %v", c.sound, c.partial, w.held, w.dead[1])
		}
		for range 12 {
			w.op('.')
		}
		for n := range 2 {
			w.send(Event{Kind: Text, N: n, Text: "stop it please", Final: true})
		}
		if !w.dead[1] {
			t.Errorf("%s, %q: \"stop it please\" doesn't cut it off", c.sound, c.partial)
		}
	}
}

// TestSlowRecognizer: a text that is not final is used when nothing was added to it for three seconds, and after eight
// seconds in any case.
func TestSlowRecognizer(t *testing.T) {
	for _, c := range []struct {
		texts []string // one every two seconds, the first during the speech
		text  string
		after time.Duration
	}{
		{[]string{"one"}, "one", 3 * time.Second},
		{[]string{"one", "one two"}, "one two", 5 * time.Second},
		{[]string{"one", "one two", "one two three", "one two three four", "one two three four five"}, "one two three four", 8 * time.Second},
	} {
		w := newWorld(t, manners(0))
		w.rest()
		w.turns = map[int]string{}
		for range 30 {
			w.op('v')
		}
		texts := c.texts
		began := time.Duration(0)
		for range 600 {
			if len(w.turns) > 0 {
				break
			}
			if !w.m.open && began == 0 {
				began = w.at
			}
			if len(texts) > 0 && (len(texts) == len(c.texts) || began > 0 && w.at-began >= time.Duration(len(c.texts)-len(texts))*2*time.Second) {
				w.send(Event{Kind: Text, N: 0, Text: texts[0]})
				texts = texts[1:]
			}
			w.op('.')
		}
		got := strings.Join(slices.Collect(maps.Values(w.turns)), " | ")
		if took := w.at - began; got != c.text || took < c.after-100*time.Millisecond || took > c.after+100*time.Millisecond {
			t.Errorf("%q was taken after %v, want %q after %v", got, took, c.text, c.after)
		}
	}
}

// TestClick: a reply is paused by the third frame of speech in a row, and not by the clicks of a keyboard.
func TestClick(t *testing.T) {
	w := newWorld(t, manners(0))
	w.op('S')
	w.at += time.Second
	for _, click := range []string{"v", "vv", "v.v.v", "vv.vv."} {
		for _, op := range click + ".................." {
			w.op(byte(op))
			if w.held {
				t.Fatalf("%q holds the reply", click)
			}
		}
	}
	for i := range 3 {
		w.op('v')
		if w.held != (i == 2) {
			t.Errorf("held by frame %d of speech: %v", i+1, w.held)
		}
	}
}

func manners(bits byte) Manner {
	m := Manner{
		Language: "en", Interruptible: bits&1 == 0, Confirm: 300 * time.Millisecond,
		Endpoint: 600 * time.Millisecond, Smart: bits&2 != 0,
		Reengage: 10 * time.Second, MaxSilence: 25 * time.Second, MaxDuration: 3 * time.Minute,
		Fillers: bits&4 != 0, Wait: bits&8 != 0,
		Prompted: bits&16 != 0, Speculate: bits&6 == 6, Outbound: bits&32 != 0, EndOnMachine: bits&64 != 0,
		Message: bits&128 != 0,
	}
	if bits&3 != 3 {
		m.Initial = "Hello, how can I help?"
	}
	if bits&5 == 4 {
		m.MinWords = 2
	}
	return m
}

// FuzzMachine sends events in any order, true and false ones, and checks what must hold for every call.
func FuzzMachine(f *testing.F) {
	f.Add(byte(0), []byte("vvvvvvvvvvvvvvvvvvvvv.........................f................................s...p..d......."))
	f.Add(byte(0), []byte("p.vvvvvvvvvvvvvvvvvvvvvvvvv...............f......................................s..S.vvvvvvvvvvvvvvvvvvvvvvvvvvvvvtvvvvvvvvvvvvv.............f........"))
	f.Add(byte(1), []byte("S.vvvvvvvvvvvvvvvvvvvvvvvtvvvvvvvv...........f....p.........................d"))
	f.Add(byte(8), []byte("vvvvvvvvvvvvvvvvvvvvvvvvv...............h......................................S.p"))
	f.Add(byte(4),
		[]byte("p.123.........................................................................................................s.p4vv"))
	f.Add(byte(0xe0),
		[]byte(
			"vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvmvvvv..............................B...............................................................S.p"))
	f.Add(byte(0x40), []byte("p.vvvvvvvvvvvvvvvvvvvvv............f.............................sWc12#......d......................p"))
	f.Add(byte(0), []byte("p.vvvvvvvvvvvvvvvvvvvvv............f.............................sO.......................................o.d.p"))
	f.Add(byte(0),
		[]byte("vvvvvvvvvvvvvvvvvvvvvvvvvv............l...............................................S.p............vvvvvvvv.....ll"))
	f.Add(byte(0), []byte("p.vvvvvvvvvvvvvvvvvvvvv............f.............................sL.d.p"))
	f.Add(byte(0), []byte("p.vvvvvvvvvvvvvvvvvvvvv............f.............................sH.d.pTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT"))
	f.Add(byte(6),
		[]byte("p.avvvvvvvvvvvvvvvvvvvvvvvv.....g...r.vvvvvvvvvvvvvvv.....gf..n......................s.S.vvvvvvvvvvvvvvvn........f"))
	f.Fuzz(func(t *testing.T, bits byte, script []byte) {
		if len(script) <= 2000 {
			perform(t, bits, script)
		}
	})
}

// perform plays a script to its end, and then the call to its end.
func perform(t testing.TB, bits byte, script []byte) {
	w := newWorld(t, manners(bits))
	for _, op := range script {
		if w.op(op); w.ended > 0 {
			break
		}
	}
	w.rest()
	w.account()
	for w.ended == 0 { // nobody answers, plays or says anything any more
		w.at += time.Second
		w.send(Event{Kind: Tick})
		if w.at > w.m.manner.MaxDuration+time.Minute {
			w.failf("nothing ends it")
		}
	}
	w.account()
}

// TestMachineAnyOrder does the same with events that are likely to follow each other.
func TestMachineAnyOrder(t *testing.T) {
	const runs = 4_000
	// Runs of speech and silence of all lengths, and between them the other events of a call.
	const usual, rare = "tfhbessSSppdppdffSSppggrnna", "mlxOoWcLFGHBT012#EyzNjj\x81\x90\xf3\xf0"
	for seed := range runs {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		var script []byte
		for range 5 + r.IntN(60) {
			switch n := r.IntN(20); {
			case n < 5:
				script = append(script, bytes.Repeat([]byte{"vvuw"[r.IntN(4)]}, 1+r.IntN(1+r.IntN(200)))...)
			case n < 11:
				script = append(script, bytes.Repeat([]byte("."), 1+r.IntN(1+r.IntN(100)))...)
			case n < 18:
				script = append(script, usual[r.IntN(len(usual))])
			default:
				script = append(script, rare[r.IntN(len(rare))])
			}
		}
		perform(t, byte(r.Uint32()), script)
	}
}

// op is one event. Capital letters and bytes without a meaning may make it a false one: about a reply that is over, or
// a text that nobody waits for.
func (w *world) op(op byte) {
	live := w.live
	if op >= 128 {
		live, op = int(op)%7, op%128
	}
	switch op {
	case 'v':
		w.at += 20 * time.Millisecond
		w.voiced++
		w.send(Event{Kind: Voice, Speech: true, Voiced: true, Sure: w.voiced >= 3, Silences: w.voiced >= 3})
	case 'u', 'w': // the same, by its sound a hum, or words
		w.at += 20 * time.Millisecond
		w.voiced++
		words := map[byte]float32{'u': -9, 'w': 9}[op]
		w.send(Event{Kind: Voice, Speech: true, Voiced: true, Words: words,
			Sure: w.voiced >= 3, Silences: w.voiced >= 3 && Silences(words, time.Duration(w.voiced)*frameTime)})
	case '.':
		w.at += 20 * time.Millisecond
		w.voiced = 0
		w.send(Event{Kind: Voice})
		w.send(Event{Kind: Tick})
	case 'T':
		w.at += time.Second
		w.send(Event{Kind: Tick})
	case 't', 'f', 'h', 'm', 'l', 'b', 'e':
		w.text(op)
	case 's', 'd', 'x':
		if !w.think && live == w.live {
			return
		}
		switch {
		case op == 's':
			w.send(Event{Kind: Sentence, Reply: live, Text: "A sentence."})
		default:
			if live == w.live {
				w.think = false
			}
			w.send(Event{Kind: Thought, Reply: live, Failed: op == 'x'})
		}
	case 'S':
		if live != w.live || w.parts > 0 && !w.held {
			if live == w.live {
				w.sounds = true
			}
			w.send(Event{Kind: Sounded, Reply: live})
		}
	case 'p':
		if live != w.live {
			w.send(Event{Kind: Played, Reply: live})
		} else if w.parts > 0 && !w.held {
			w.play()
		}
	case 'O':
		w.send(Event{Kind: ToolBegan, Reply: live})
	case 'o':
		w.send(Event{Kind: ToolEnded, Reply: live})
	case 'W':
		w.send(Event{Kind: Await, Reply: live})
	case 'c':
		if !w.m.collect.on {
			w.send(Event{Kind: Collect, Reply: live, Wait: time.Second, Key: '#'})
		}
	case 'L':
		w.send(Event{Kind: Leave, Reply: live, Reason: parley.AssistantHangup})
	case 'F':
		w.send(Event{Kind: Firm, Reply: live, Final: true})
	case 'G':
		w.send(Event{Kind: Firm, Reply: live})
	case 'H':
		m := manners(0)
		w.send(Event{Kind: Handed, Reply: live, Manner: &m})
	case 'B':
		w.send(Event{Kind: Beep})
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '#', '*':
		if !w.m.mailbox.on {
			w.keys++
		}
		w.send(Event{Kind: Key, Key: op})
	case 'a', 'g', 'r', 'n', 'y', 'z', 'N':
		w.finds(op)
	case 'Q':
		w.send(Event{Kind: Language, Text: "es"})
	case 'j':
		w.send(Event{Kind: Judged, Text: said(w.m.turn), Over: float64(w.at/time.Millisecond%101) / 100})
	case 'E':
		w.send(Event{Kind: End, Reason: parley.CustomerHangup})
	}
}

// finds is what a recognizer that detects turns says about its newest utterance, in any order; N is about the one
// before.
func (w *world) finds(op byte) {
	e := Event{N: w.m.next - 1}
	switch op {
	case 'a':
		e.Kind = Started
	case 'g', 'y':
		e.Kind = Eager
	case 'r':
		e.Kind = Resumed
	case 'n', 'z', 'N':
		e.Kind = Ended
	}
	if op == 'N' {
		e.N--
	}
	if (op == 'g' || op == 'n') && len(w.unheard) > 0 {
		w.texts++
		e.N, e.Text = w.unheard[len(w.unheard)-1], fmt.Sprintf("w%dx say this", w.texts)
	}
	w.send(e)
}

// text is what the recognizer says about its oldest utterance, or about an unknown one.
func (w *world) text(op byte) {
	n := 99
	if len(w.unheard) > 0 {
		n = w.unheard[0]
	}
	w.texts++
	e := Event{Kind: Text, N: n, Text: fmt.Sprintf("w%dx say this", w.texts)}
	switch op {
	case 'f':
		e.Final = true
	case 'h':
		e.Text, e.Final = "hello", true
	case 'm':
		e.Text = "please leave a message after the tone"
	case 'b':
		e.Text, e.Final = "mm-hm", true
	case 'e':
		e.Text, e.Final = "", true
	case 'l':
		e.Text, e.Final, e.Failed = "", true, true
	}
	if e.Final && !e.Failed && w.open && len(w.unheard) <= 1 {
		e.Final = false // the end of the utterance has not been reported
	}
	if e.Final && len(w.unheard) > 0 && !(w.open && len(w.unheard) == 1) {
		w.unheard = w.unheard[1:]
	}
	w.send(e)
}
