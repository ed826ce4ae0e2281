package voice

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
)

// world is everything around a machine: it does what the machine says, and remembers what must hold.
type world struct {
	t      testing.TB
	m      *machine
	at     time.Duration
	live   int // the reply that is being said, 0 for none
	dead   map[int]bool
	think  bool
	parts  int // of the live reply that were not played
	held   bool
	open   bool
	ear    []int // utterances whose final text is not there yet
	texts  int
	ended  int
	turns  map[int]string // what each reply answers
	noted  []string
	keys   int // pressed
	got    int // in collected keys
	waits  bool
	log    []moment
	sounds bool
	spoke  bool
}

// moment is something that happened, or that the machine said.
type moment struct {
	at     time.Duration
	event  event
	action action
	acts   bool
}

func newWorld(t testing.TB, m manner) *world {
	w := &world{t: t, m: newMachine(m), dead: map[int]bool{}, turns: map[int]string{}}
	w.obey(w.m.start())
	return w
}

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	var b strings.Builder
	for _, o := range w.log {
		if a := o.action; o.acts {
			fmt.Fprintf(&b, "%v     action %d id=%d what=%d text=%q join=%v %s\n", o.at, a.kind, a.id, a.what, a.text, a.join, string(a.reason))
		} else {
			e := o.event
			fmt.Fprintf(&b, "%v event %d id=%d n=%d text=%q speech=%v final=%v failed=%v key=%q\n", o.at, e.kind, e.id, e.n, e.text, e.speech, e.final, e.failed, e.key)
		}
	}
	w.t.Fatalf("%s\nafter\n%s", fmt.Sprintf(format, args...), b.String())
}

func (w *world) send(e event) {
	e.at = w.at
	if e.kind != evTick && e.kind != evVoice || e.speech && !w.spoke {
		w.log = append(w.log, moment{w.at, e, action{}, false})
	}
	if e.kind == evVoice {
		w.spoke = e.speech
	}
	w.obey(w.m.step(e))
}

// obey does what the machine says, and checks that it may say it.
func (w *world) obey(actions []action) {
	for _, a := range actions {
		w.log = append(w.log, moment{w.at, event{}, a, true})
		if w.ended > 0 {
			w.failf("action %d after the end", a.kind)
		}
		switch a.kind {
		case acThink, acSay, acSpeak:
			if w.dead[a.id] {
				w.failf("reply %d speaks after it was over", a.id)
			}
			if w.live != 0 && w.live != a.id {
				w.failf("reply %d begins while %d is being said", a.id, w.live)
			}
			if w.live == 0 {
				w.parts, w.sounds = 0, false
			}
			w.live = a.id
			if a.kind == acThink {
				w.think = true
				w.turns[a.id] = a.text
			} else {
				w.parts++
			}
		case acGiveUp:
			w.think = false
		case acStop, acFinish:
			if a.id != w.live {
				w.failf("reply %d ends, which is not being said", a.id)
			}
			if a.kind == acFinish && (w.parts > 0 || w.think) {
				w.failf("reply %d is finished with %d parts to be played, thinking %v", a.id, w.parts, w.think)
			}
			if a.join {
				if w.sounds && a.id == w.live && w.m.mailbox.on == false {
					w.failf("reply %d was heard, and its turn goes on", a.id)
				}
				delete(w.turns, a.id)
			}
			w.dead[a.id] = true
			w.live, w.think, w.parts, w.held, w.waits = 0, false, 0, false, false
		case acHold, acResume:
			if w.held == (a.kind == acHold) {
				w.failf("it is held (%v) twice", w.held)
			}
			w.held = a.kind == acHold
		case acOpen, acClose:
			if w.open == (a.kind == acOpen) {
				w.failf("the ear is open (%v) twice", w.open)
			}
			w.open = a.kind == acOpen
			if w.open {
				w.ear = append(w.ear, w.m.next-1)
			}
		case acFlush:
			w.parts = 0
		case acNote:
			w.noted = append(w.noted, a.text)
		case acCollected:
			w.got += len(a.text)
			if a.pressed && len(a.text) < maxKeys {
				w.got++
			}
		case acEnd:
			w.ended++
		}
	}
}

// rest is the end of whatever is under way, in a fair world: texts are found, the model answers, sound is played, and nobody says more.
func (w *world) rest() {
	for range 4000 {
		if w.ended > 0 || w.m.reply == nil && len(w.m.turn) == 0 && !w.m.open && !w.m.mailbox.on {
			return
		}
		w.at += 20 * time.Millisecond
		w.send(event{kind: evVoice})
		w.send(event{kind: evTick})
		if len(w.ear) > 0 && !(w.open && len(w.ear) == 1) {
			n := w.ear[0]
			w.ear = w.ear[1:]
			w.send(event{kind: evText, n: n, final: true})
		}
		if w.think && w.live != 0 {
			w.think = false
			w.send(event{kind: evThought, id: w.live})
		}
		if w.m.reply != nil && w.m.reply.tools > 0 {
			w.send(event{kind: evToolEnded, id: w.live})
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
		w.send(event{kind: evSounded, id: w.live})
	}
	w.send(event{kind: evPlayed, id: w.live})
}

var unique = regexp.MustCompile(`w\d+x`)

// account checks that nothing that was said is answered twice, and no key is lost or doubled.
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

// An ear that has heard "sure", and then makes another short word of it, has heard somebody who listens; one that hears more has heard more.
func TestNod(t *testing.T) {
	for _, c := range []struct {
		partial, final string
		frames         int
		cut            bool
	}{
		{"sure", "shah", 20, false}, {"oh", "over", 20, true}, {"yeah", "yeah wait", 25, true}, {"sure", "shah", 60, true}, {"shah", "shah", 20, true},
		{"yeah", "yet he was late", 25, true},
	} {
		w := newWorld(t, manners(0))
		w.op('S')
		w.at += time.Second
		for i := range c.frames {
			w.op('v')
			if i == c.frames/2 && c.partial != "" {
				w.send(event{kind: evText, n: 0, text: c.partial})
			}
		}
		for range 12 {
			w.op('.')
		}
		w.send(event{kind: evText, n: 0, text: c.final, final: true})
		if w.dead[1] != c.cut || w.held {
			t.Errorf("%q, then %q after %d frames: cut off %v, held %v", c.partial, c.final, c.frames, w.dead[1], w.held)
		}
	}
}

func manners(bits byte) manner {
	m := manner{
		language: "en", interruptible: bits&1 == 0, confirm: 300 * time.Millisecond, endpoint: 600 * time.Millisecond, smart: bits&2 != 0,
		reengage: 10 * time.Second, maxSilence: 25 * time.Second, maxDuration: 3 * time.Minute, fillers: bits&4 != 0, wait: bits&8 != 0,
		prompted: bits&16 != 0, speculate: bits&6 == 6, outbound: bits&32 != 0, endOnMachine: bits&64 != 0, message: bits&128 != 0,
	}
	if bits&3 != 3 {
		m.initial = "Hello, how can I help?"
	}
	if bits&5 == 4 {
		m.minWords = 2
	}
	return m
}

// FuzzMachine sends events in any order, true ones and lies, and checks what must hold of every call.
func FuzzMachine(f *testing.F) {
	f.Add(byte(0), []byte("vvvvvvvvvvvvvvvvvvvvv.........................f................................s...p..d......."))
	f.Add(byte(0), []byte("p.vvvvvvvvvvvvvvvvvvvvvvvvv...............f......................................s..S.vvvvvvvvvvvvvvvvvvvvvvvvvvvvvtvvvvvvvvvvvvv.............f........"))
	f.Add(byte(1), []byte("S.vvvvvvvvvvvvvvvvvvvvvvvtvvvvvvvv...........f....p.........................d"))
	f.Add(byte(8), []byte("vvvvvvvvvvvvvvvvvvvvvvvvv...............h......................................S.p"))
	f.Add(byte(4), []byte("p.123.........................................................................................................s.p4vv"))
	f.Add(byte(0xe0), []byte("vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvmvvvv..............................B...............................................................S.p"))
	f.Add(byte(0x40), []byte("p.vvvvvvvvvvvvvvvvvvvvv............f.............................sWc12#......d......................p"))
	f.Add(byte(0), []byte("p.vvvvvvvvvvvvvvvvvvvvv............f.............................sO.......................................o.d.p"))
	f.Add(byte(0), []byte("vvvvvvvvvvvvvvvvvvvvvvvvvv............l...............................................S.p............vvvvvvvv.....ll"))
	f.Add(byte(0), []byte("p.vvvvvvvvvvvvvvvvvvvvv............f.............................sL.d.p"))
	f.Add(byte(0), []byte("p.vvvvvvvvvvvvvvvvvvvvv............f.............................sH.d.pTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT"))
	f.Fuzz(func(t *testing.T, bits byte, script []byte) {
		if len(script) <= 2000 {
			perform(t, bits, script)
		}
	})
}

// perform plays a script to its end, and to the call's.
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
		w.send(event{kind: evTick})
		if w.at > w.m.maxDuration+time.Minute {
			w.failf("nothing ends it")
		}
	}
	w.account()
}

// TestMachineAnyOrder is the same for events that are likely to follow each other.
func TestMachineAnyOrder(t *testing.T) {
	runs := 4_000
	if raced {
		runs = 300
	}
	// Runs of speech and silence of all lengths, and between them what a call is made of.
	const usual, rare = "tfhbessSSppdppdffSSpp", "mlxOoWcLFGHBT012#E\x81\x90\xf3\xf0"
	for seed := range runs {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		var script []byte
		for range 5 + r.IntN(60) {
			switch n := r.IntN(20); {
			case n < 5:
				script = append(script, bytes.Repeat([]byte("v"), 1+r.IntN(1+r.IntN(200)))...)
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

// op is one thing that happens. In capitals and for bytes that mean nothing it may be a lie: about a reply that is over, or a text that
// nobody waits for.
func (w *world) op(op byte) {
	live := w.live
	if op >= 128 {
		live, op = int(op)%7, op%128
	}
	switch op {
	case 'v':
		w.at += 20 * time.Millisecond
		w.send(event{kind: evVoice, speech: true, voiced: true})
	case '.':
		w.at += 20 * time.Millisecond
		w.send(event{kind: evVoice})
		w.send(event{kind: evTick})
	case 'T':
		w.at += time.Second
		w.send(event{kind: evTick})
	case 't', 'f', 'h', 'm', 'l', 'b', 'e':
		w.text(op)
	case 's', 'd', 'x':
		if !w.think && live == w.live {
			return
		}
		switch {
		case op == 's':
			w.send(event{kind: evSentence, id: live, text: "A sentence."})
		default:
			if live == w.live {
				w.think = false
			}
			w.send(event{kind: evThought, id: live, failed: op == 'x'})
		}
	case 'S':
		if live != w.live || w.parts > 0 && !w.held {
			if live == w.live {
				w.sounds = true
			}
			w.send(event{kind: evSounded, id: live})
		}
	case 'p':
		if live != w.live {
			w.send(event{kind: evPlayed, id: live})
		} else if w.parts > 0 && !w.held {
			w.play()
		}
	case 'O':
		w.send(event{kind: evToolBegan, id: live})
	case 'o':
		w.send(event{kind: evToolEnded, id: live})
	case 'W':
		w.send(event{kind: evAwait, id: live})
	case 'c':
		if !w.m.collect.on {
			w.send(event{kind: evCollect, id: live, wait: time.Second, key: '#'})
		}
	case 'L':
		w.send(event{kind: evLeave, id: live, reason: parley.AssistantHangup})
	case 'F':
		w.send(event{kind: evFirm, id: live, final: true})
	case 'G':
		w.send(event{kind: evFirm, id: live})
	case 'H':
		m := manners(0)
		w.send(event{kind: evHanded, id: live, manner: &m})
	case 'B':
		w.send(event{kind: evBeep})
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '#', '*':
		if !w.m.mailbox.on {
			w.keys++
		}
		w.send(event{kind: evDigit, key: op})
	case 'E':
		w.send(event{kind: evEnd, reason: parley.CustomerHangup})
	}
}

// text is what the ear says of its oldest utterance, or of one that it doesn't know.
func (w *world) text(op byte) {
	n := 99
	if len(w.ear) > 0 {
		n = w.ear[0]
	}
	w.texts++
	e := event{kind: evText, n: n, text: fmt.Sprintf("w%dx say this", w.texts)}
	switch op {
	case 'f':
		e.final = true
	case 'h':
		e.text, e.final = "hello", true
	case 'm':
		e.text = "please leave a message after the tone"
	case 'b':
		e.text, e.final = "mm-hm", true
	case 'e':
		e.text, e.final = "", true
	case 'l':
		e.text, e.final, e.failed = "", true, true
	}
	if e.final && !e.failed && w.open && len(w.ear) <= 1 {
		e.final = false // it has not been told that the utterance is over
	}
	if e.final && len(w.ear) > 0 && !(w.open && len(w.ear) == 1) {
		w.ear = w.ear[1:]
	}
	w.send(e)
}
