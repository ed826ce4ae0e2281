// Package turn decides who speaks when. Its machine is pure: events go in, each with its time, and actions come out, so
// that any order of events can be tried without a call. There is no other way in or out.
//
// There is at most one reply at a time. What the customer says is kept in segments, each an utterance of the recognizer; those
// not yet answered form the turn. A turn that has ended is taken: a reply to it begins. Anything said before that reply
// is audible goes back into the turn, together with what was taken. What is said while it is audible, and likely has
// words, pauses the playout at once (in doubt it gets fainter), and then either cuts the reply off or lets it go on.
//
// event.go has the events and actions, manner.go turns an assistant's fields into behaviour, listen.go has the
// customer's side, overlap.go decides what interrupts a reply, found.go handles recognizers that find turns, speak.go has the
// assistant's side, keys.go the keypad, and amd.go finds out whether a person or a machine took the call, and answerer.go
// what kind of machine, and gets past it.
package turn

import (
	"strings"
	"time"

	"parley/internal/lang"
	"parley/internal/parley"
)

// Machine is the turn machine of one call.
type Machine struct {
	manner Manner
	out    []Action
	now    time.Duration
	over   bool
	person bool // somebody else talks with the customer: nothing is said or answered here
	// likewise, for a while: what the customer says is taken down
	relieved bool
	bid      Purpose // the reply that is due although the customer has said nothing; Answer: none is

	open    bool // the recognizer hears
	streams bool // it tells what is being said, not only what was said
	drones  bool // what it hears is a noise that doesn't stop

	says EventKind     // what a recognizer that finds turns said last; Tick for nothing
	went time.Duration // when it last said that they go on

	last time.Duration // the last voiced frame
	next int           // number of the next segment
	turn []segment     // what is not answered yet

	reply   *reply
	ids     int
	collect collect
	amd     amd
	tones   bool   // they may matter
	armed   bool   // speech that begins now silences the reply
	partial string // what was told last of what the customer is saying
	mailbox mailbox
	far     far

	async      int           // asynchronous tools that run
	greeted    bool          // the initial message was said, or there is none
	quietAt    time.Duration // since when nobody has spoken, and nothing was thought
	asked      int           // how often the assistant has asked since then whether anybody is there
	all, fresh joined        // the turn's text; the part of it that is not queued
	gists      memo[gist]
	overs      memo[float64] // how likely the turn is over with a text
	ruled      string        // the text that an external detector has judged
	told       memo[lang.Progress]
	findGist   func(text string, open bool) gist
	findOver   func(text string, open bool) float64
	findTold   func(text string, open bool) lang.Progress
	asks       lang.Form     // what the customer was asked for
	nodded     time.Duration // when the assistant last said a word of listening

	failures int // of the model, in a row
	missed   int // turns that the recognizer lost, in a row
}

// segment is something that the customer said or pressed: an utterance of the recognizer, or keys.
type segment struct {
	n       int
	text    string
	nod     string        // what it was taken for meanwhile: words of listening
	from    time.Duration // first voiced frame
	last    time.Duration // last voiced frame, or key
	sure    bool          // it is no click, nor a hum
	words   float32       // how likely its sound over a reply has words that mean something, as a logit; 0: nothing is known
	sound   float32       // the same, at any time
	cadence float32       // how much its voice sounded like the end of a turn, in log-odds; 0: nothing is known
	closed  time.Duration // when the recognizer was told that it is over
	told    time.Duration // when its text changed, or it began
	final   bool          // the text won't change any more
	hasty   bool          // it is taken for final, as a recognizer that finds turns said it: the true one is still to come
	ended   bool          // the turn is over with it, by the word of such a recognizer
	lost    bool          // the recognizer failed
	unclear bool          // or has understood nothing, though the sound surely had words
	keypad  bool
	queued  bool // said during a reply that it didn't cut off: answered after it
}

// phase is how far a reply has come on its way to the customer's ear.
type phase uint8

// The phases, in their order. A reply begins in one of the first two.
const (
	prepared phase = iota // before the end of the turn that it answers: it waits for that, or is given up
	begun                 // nothing of it was heard yet
	audible               // its first sound has left
)

// reply is what the assistant is about to say, or is saying.
type reply struct {
	id      int
	purpose Purpose
	phase   phase
	taken   []segment // what it answers
	at      time.Duration
	preface bool // it begins with the initial message

	// The model.
	thinking bool
	failed   bool
	tools    int           // running
	progress time.Duration // when it last did something

	// The playout.
	spoken  int // parts that were given to it
	played  int
	covered int           // sentences that bridged a wait
	silent  time.Duration // when the last part ended
	await   bool          // a tool waits until everything was played

	// The customer.
	held     bool      // what they say is to be decided on: the reply is silent
	deaf     bool      // there is a noise that was judged to be no interruption
	firm     bool      // they can't cut it off
	question bool      // the last sentence asks them something
	asks     lang.Form // what it asks for

	// When it has been played,
	leave parley.EndedReason // the call ends, or
	hand  *Manner            // another assistant goes on.
}

// quiet reports whether the playout is silent although there may be something to play.
func (r *reply) quiet() bool { return r.held || r.phase == prepared }

// tentative reports whether nothing of the reply was heard yet, so that the customer may go on as if it weren't there.
func (r *reply) tentative() bool { return r.phase != audible && !r.firm && r.purpose != Greeting }

// drained reports whether everything that was said has been played.
func (r *reply) drained() bool { return r.played >= r.spoken }

const (
	onsetTime = 40 * time.Millisecond // about how much was said before a detector noticed
	// ends an utterance: its text is recognized while the end of the turn is awaited
	segmentSilence = 200 * time.Millisecond
	usualConfirm   = 300 * time.Millisecond // of an assistant that doesn't say how easily it is interrupted
	sureTime       = 900 * time.Millisecond // so much speech is no cough and no "mm-hm"
	briefTime      = 700 * time.Millisecond // who says less than that says it in few words
	soundTime      = 500 * time.Millisecond // a sound of that length is taken for speech before its text is known
	wordTime       = 400 * time.Millisecond // about as long as a word
	judgeTime      = 3 * time.Second        // so long may something that holds a reply go on undecided
	holdTime       = time.Second            // so long is a text waited for before a held reply goes on,
	holdWords      = 2 * time.Second        // and so long where the sound likely has words
	patienceTime   = 3 * time.Second        // so long is a final text waited for after the newest partial one
	lostTime       = 8 * time.Second        // and so long in all
	longest        = 30 * time.Second       // of an utterance
	// in which a streaming recognizer reports nothing new about a sound: it is not the customer's
	droneTime   = 5 * time.Second
	openingTime = 2 * time.Second         // so soon after the answer people say who they are
	fillerTime  = 700 * time.Millisecond  // a reply is slow
	coverTime   = 500 * time.Millisecond  // a tool is
	coverAgain  = 8 * time.Second         // and still is
	lostFloor   = 300 * time.Millisecond  // what is shorter and was lost was a noise
	stallTime   = 20 * time.Second        // a model that does nothing for so long has failed
	keypadTime  = 2 * time.Second         // a pause that ends keys
	partTime    = 3500 * time.Millisecond // so long is the rest waited for of a number of which some digits are known
	frameTime   = 20 * time.Millisecond
	maxFailures = 2
	maxAsked    = 2
	maxMissed   = 3
)

// MaxKeys is how many keys can be collected, or pressed, at a time.
const MaxKeys = 64

// New makes the machine of a call that begins with an assistant of this manner.
func New(m Manner) *Machine {
	x := &Machine{
		manner: m, greeted: m.Initial == "", amd: amd{active: m.Outbound}, tones: m.Outbound,
		out: make([]Action, 0, 16), turn: make([]segment, 0, 8),
	}
	x.findGist = x.gistOf
	x.findOver = func(text string, _ bool) float64 { return lang.Over(text, x.manner.Language) }
	x.findTold = func(text string, _ bool) lang.Progress { return x.asks.Told(text, x.manner.Language) }
	return x
}

func (m *Machine) act(a Action) { m.out = append(m.out, a) }

// Start begins the conversation at a time since the answer. It returns actions like Step.
func (m *Machine) Start(at time.Duration) []Action {
	m.out, m.now = m.out[:0], at
	if !m.manner.Wait {
		m.greet()
	}
	m.watch()
	return m.out
}

// Step takes an event and returns what to do, in order. The slice is valid until the next step.
func (m *Machine) Step(e Event) []Action {
	m.out = m.out[:0]
	if m.over {
		return m.out
	}
	m.now = max(m.now, e.At)
	if m.person && e.Kind != End {
		e.Kind = Tick
	}
	switch e.Kind {
	case Voice:
		m.voice(e)
		m.weigh(e.Words, e.Sound)
	case Text:
		m.heard(e)
	case Lost:
		m.says = Tick
		m.lose(e.N)
	case Started, Eager, Resumed, Ended:
		m.found(e)
	case Key:
		m.digit(e.Key)
	case Beep:
		m.beep()
	case FaxTone:
		if m.amd.active {
			m.answered(Fax, "the tone of a fax machine")
		}
	case Music:
		m.music()
	case End:
		m.end(e.Reason)
	case TakenOver:
		m.giveWay()
	case Relieved:
		m.relieve()
	case Returned:
		m.back()
	case Others:
		m.overrule()
	case Underway:
		m.async++
	case Bid, Answered:
		if e.Kind == Answered {
			m.async = max(m.async-1, 0)
			m.asked, m.quietAt = 0, m.now
		}
		if !m.relieved {
			m.bid = Invited
		}
	case Speaks:
		m.spoken()
	case Language:
		m.speaks(e.Text)
	case Judged:
		m.overs, m.ruled = memo[float64]{e.Text, false, true, e.Over}, e.Text // in place of our own judgement of that text
	case Tick:
	default:
		m.ofReply(e)
	}
	if m.settle(); m.over {
		return m.out
	}
	switch e.Kind {
	case Text, Started, Eager, Resumed, Ended:
		m.tell()
	}
	m.watch()
	return m.out
}

// watch sets what to watch for from here on: speech that silences the reply at once, and tones.
func (m *Machine) watch() {
	if armed := m.reply != nil && m.holds(m.reply); armed != m.armed {
		m.armed = armed
		if armed {
			m.act(Action{Kind: Arm})
		} else {
			m.act(Action{Kind: Disarm})
		}
	}
	if m.tones && !m.amd.active && !m.mailbox.on {
		m.tones = false
		m.act(Action{Kind: IgnoreTones})
	}
}

// tell reports what the customer is saying when that has changed.
func (m *Machine) tell() {
	if text := said(m.turn); text != m.partial {
		if m.partial = text; text != "" {
			m.act(Action{Kind: Partial, Text: text})
		}
	}
}

// settle does what the state and the time call for, whatever happened.
func (m *Machine) settle() {
	if m.over {
		return
	}
	if m.now >= m.manner.MaxDuration {
		m.end(parley.MaxDuration)
		return
	}
	if m.person {
		return
	}
	m.hear()
	if m.relieved {
		m.takeDown()
		return
	}
	m.detect()
	if m.over {
		return
	}
	if m.mailbox.on {
		m.leaveMessage()
	}
	if m.far.on {
		m.attend()
	} else if m.reply != nil && !m.mailbox.on && !m.manner.Decides {
		m.overlap()
	}
	if m.over {
		return
	}
	if m.reply != nil {
		m.drive()
	}
	if m.far.on {
		if m.reply == nil {
			m.silence()
		}
		return
	}
	if m.reply == nil && !m.over && !m.mailbox.on && !m.amd.open() && !m.manner.Decides {
		m.listen()
		m.nod()
	}
	if m.reply == nil && !m.over && !m.mailbox.on {
		m.invite()
	}
	if m.reply == nil && !m.over && !m.mailbox.on {
		m.silence()
	}
}

// giveWay leaves the conversation to a person: what the assistant is saying is cut off, and what was not answered yet
// stands in the transcript. The call's longest duration still counts.
func (m *Machine) giveWay() {
	m.hushed()
	if m.open {
		m.shut()
	}
	m.note()
	m.person = true
}

// end ends the call and cuts off whoever is speaking.
func (m *Machine) end(reason parley.EndedReason) {
	m.over = true
	if m.reply != nil {
		m.stop(false)
	}
	if m.open {
		m.shut()
	}
	m.note()
	m.act(Action{Kind: HangUp, Reason: reason})
}

// note puts speech that is not going to be answered into the transcript.
func (m *Machine) note() {
	if text := said(m.turn); text != "" || m.manner.Sound && len(m.turn) > 0 {
		m.act(Action{Kind: Note, Text: text, From: m.turn[0].from, Said: m.said(m.turn), Heard: heard(m.turn)})
	}
	m.turn = nil
}

// said joins the texts of segments.
func said(segments []segment) string {
	var j joined
	return j.of(segments, false)
}

// joined keeps a joined text, so that it is rebuilt only when it has changed: it is looked at with every frame.
type joined struct {
	text   string
	buffer []byte
}

// of joins the texts of segments; with fresh, only those that are not queued.
func (j *joined) of(segments []segment, fresh bool) string {
	j.buffer = j.buffer[:0]
	for i := range segments {
		s := &segments[i]
		if s.text == "" || fresh && s.queued {
			continue
		}
		if len(j.buffer) > 0 {
			j.buffer = append(j.buffer, ' ')
		}
		j.buffer = append(j.buffer, s.text...)
	}
	if string(j.buffer) != j.text {
		j.text = string(j.buffer)
	}
	return j.text
}

// memo keeps what was found out about a text.
type memo[T any] struct {
	text  string
	open  bool
	known bool
	value T
}

func (m *memo[T]) of(text string, open bool, find func(text string, open bool) T) T {
	if !m.known || m.text != text || m.open != open {
		*m = memo[T]{text, open, true, find(text, open)}
	}
	return m.value
}

// gist is what a text said over a reply amounts to.
type gist struct {
	words                          int
	backchannel, greeting, goodbye bool
	nod                            bool // a backchannel of words: no mere "mm" and "oh"
	hollow                         bool // words that mean nothing by themselves: what recognizers make of noise
	halting                        bool // "stop", "wait", "no"
	halts                          bool // it begins with such a word
	consents                       bool // yes or no
	finished                       lang.Completion
}

func (m *Machine) gistOf(text string, open bool) gist {
	l := m.manner.Language
	yes, no := lang.Consents(text, l)
	first, _, _ := strings.Cut(text, " ")
	return gist{
		words: lang.Count(text), backchannel: lang.IsBackchannel(text, l, open), nod: lang.IsNod(text, l),
		greeting: lang.IsGreeting(text, l, open),
		goodbye:  lang.IsFarewell(text, l, open), hollow: lang.IsHollow(text, l), halting: lang.IsInterruption(text, l),
		halts:    lang.IsInterruption(first, l),
		consents: yes || no, finished: lang.Completeness(text, l),
	}
}

// longEnough reports whether the silence after a text ends the turn.
func (m *Machine) longEnough(text string, lastly *segment, quiet time.Duration) bool {
	told := m.told.of(text, false, m.findTold)
	switch {
	case told == lang.ToldPart:
		// What the recognizer didn't understand may be a part of it, too; but noises don't keep the turn open for ever.
		wait := max(partTime, m.manner.Endpoint)
		return quiet >= wait && (m.now-m.last >= wait || quiet >= 2*wait)
	case !m.manner.Smart:
		return quiet >= m.manner.Endpoint
	case told == lang.ToldWhole:
		return quiet >= max(m.manner.Endpoint/2, shortest)
	}
	wait := Patience(m.manner.Endpoint, m.likely(text, lastly))
	if text == m.ruled { // some detectors say 0 where they only mean no
		wait = min(wait, partTime)
	}
	return quiet >= wait
}

// speaks judges words by another language from here on. A reply that was begun early to words of the former one is
// begun anew: nothing of it was heard.
func (m *Machine) speaks(language string) {
	m.manner.Language = language
	m.gists, m.overs, m.ruled, m.told = memo[gist]{}, memo[float64]{}, "", memo[lang.Progress]{}
	if r := m.reply; r != nil && r.phase == prepared {
		m.rejoin(r)
	}
}

// lacks reports whether the customer is in the middle of what they were asked for.
func (m *Machine) lacks(text string) bool { return m.told.of(text, false, m.findTold) == lang.ToldPart }

// awaits sets what the customer has been asked for.
func (m *Machine) awaits(f lang.Form) {
	if f != m.asks {
		m.asks, m.told = f, memo[lang.Progress]{}
	}
}
