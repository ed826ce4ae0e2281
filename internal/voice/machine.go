package voice

import (
	"time"

	"parley"
)

// The turn machine decides who speaks when. It is pure: time comes with its events, and what is to be done goes out as actions, so that
// any order of events can be tried without a call.
//
// There is at most one reply at a time. What the customer says is kept in segments, each an utterance of the ear; those that are not
// answered yet are the turn. A turn that has ended is taken: a reply to it begins. What is said before that reply sounds goes back into
// the turn with what was taken; what is said while it sounds holds the playout at once, and either cuts the reply off or lets it go on.

// What happens. The fields that each uses stand behind it.
type eventKind uint8

const (
	evTick      eventKind = iota // time passes
	evVoice                      // a frame was judged: speech, voiced
	evText                       // the ear understood something: n, text, final, failed
	evToken                      // the model wrote something: id
	evSentence                   // a sentence of a reply is there: id, text
	evThought                    // the model is done: id, failed
	evSounded                    // the first sound of a reply left: id
	evPlayed                     // a part of a reply was played to its end: id
	evToolBegan                  // id
	evToolEnded                  // id
	evAwait                      // somebody waits until what was said so far is played: id
	evCollect                    // keys are to be collected: id, wait, key (the one that ends it)
	evLeave                      // the call ends when the reply has been played: id, reason
	evFirm                       // whether the reply can't be cut off any more: id, final
	evHanded                     // another assistant goes on when the reply has been played: id, manner
	evDigit                      // key
	evBeep                       // a tone that answering machines make
	evEnd                        // the call is over: reason
)

type event struct {
	kind           eventKind
	speech, voiced bool
	final, failed  bool
	key            byte
	n, id          int
	at             time.Duration // since the answer
	wait           time.Duration
	text           string
	reason         parley.EndedReason
	manner         *manner
}

// What is to be done.
type actionKind uint8

const (
	acOpen      actionKind = iota // let the ear hear, from a little before
	acClose                       // the utterance is over
	acThink                       // begin a reply by thinking: id, what, text, from, last (of what is answered; of the silence that is broken)
	acSay                         // say a fixed sentence as a part of a reply: id, what
	acSpeak                       // say a sentence that was thought: id, text
	acHold                        // be silent from the next packet on
	acResume                      // go on where it stopped
	acFlush                       // leave out what was not played yet: id
	acGiveUp                      // end the thinking: id
	acCommit                      // the turn that an early reply answers has ended: id
	acStop                        // the reply is cut off: id; join: nothing of it was heard, and what it answered goes on
	acFinish                      // the reply was played to its end: id
	acDrained                     // who waits may go on: id
	acCollected                   // the keys: id, text, ended
	acNote                        // what the customer said stands in the transcript, unanswered: text, from
	acVerdict                     // who answered: machine
	acEnter                       // another assistant speaks and listens from here on
	acEnd                         // hang up: reason
)

type action struct {
	kind    actionKind
	what    what
	id      int
	text    string
	early   bool          // tools wait for acCommit
	from    time.Duration // when they began
	last    time.Duration // when they ended
	pressed bool          // a key ended it
	join    bool
	machine bool
	reason  parley.EndedReason
}

// what a reply, or a fixed sentence, is.
type what uint8

const (
	anAnswer      what = iota
	theInitial         // the initial message
	aReengagement      // the customer is silent
	anApology          // the customer was not understood
	theMailbox         // the voicemail's message
	anEntrance         // another assistant goes on
	aFiller            // the reply is slow
	aMoment            // a tool is running
	stillOn            // it is still running
	stillThere         // the fixed sentence of re-engagement
	aFailure           // the model failed
)

// segment is something that the customer said: an utterance of the ear, or keys.
type segment struct {
	n      int
	text   string
	nod    string        // what it was taken for meanwhile: words of listening
	from   time.Duration // first voiced frame
	last   time.Duration // last voiced frame, or key
	closed time.Duration // when the ear was told that it is over
	told   time.Duration // when its text changed, or it began
	final  bool          // the text won't change any more
	lost   bool          // the recognizer failed
	keypad bool
	queued bool // said during a reply that it didn't cut off: answered after it
}

// reply is what the assistant is about to say, or saying.
type reply struct {
	id       int
	what     what
	taken    []segment // what it answers
	at       time.Duration
	progress time.Duration // when the model last did something
	thinking bool
	preface  bool // it begins with the initial message
	sounded  bool
	early    bool // it was begun before the turn's end: it waits for that, or is given up
	held     bool // what the customer says is to be decided on
	quiet    bool // the playout was told to be silent, for either
	deaf     bool // there is a noise that was judged to be no interruption
	firm     bool // can't be cut off
	await    bool
	covered  int // sentences that bridged a wait
	spoken   int // parts that were given to the playout
	played   int
	silent   time.Duration // when the last part ended
	question bool          // the last sentence asks something
	tools    int           // running
	leave    parley.EndedReason
	hand     *manner
}

// drained says whether all that was said has been played.
func (r *reply) drained() bool { return r.played >= r.spoken }

type machine struct {
	manner
	out  []action
	now  time.Duration
	over bool

	open    bool // the ear hears
	streams bool // it tells what is being said, not only what was said
	drones  bool // what it hears is a noise that doesn't stop

	last time.Duration // the last voiced frame
	next int           // number of the next segment
	turn []segment     // what is not answered yet

	reply   *reply
	ids     int
	collect collect
	judge   judge
	mailbox mailbox

	greeted    bool          // the initial message was said, or there is none
	quietAt    time.Duration // since when nobody has spoken, and nothing was thought
	asked      int           // how often the assistant has asked since then whether anybody is there
	all, fresh joined        // the turn's text; the part of it that is not queued
	gists      memo[gist]
	pauses     memo[time.Duration]
	findGist   func(text string, open bool) gist
	findPause  func(text string, open bool) time.Duration

	failures int // of the model, in a row
	missed   int // turns that the recognizer lost, in a row
}

const (
	onsetTime      = 40 * time.Millisecond  // about how much was said before a detector noticed
	segmentSilence = 200 * time.Millisecond // an utterance is over: its text is found while the turn's end is waited for
	sureTime       = 900 * time.Millisecond // so much speech is no cough and no "mm-hm"
	briefTime      = 700 * time.Millisecond // who says less than that says it in few words
	judgeTime      = 3 * time.Second        // so long may something that holds a reply go on undecided
	holdTime       = time.Second            // so long is a text waited for before a held reply goes on
	patienceTime   = 3 * time.Second        // so long is a final text waited for when there is a partial one
	lostTime       = 8 * time.Second        // and so long when there is none
	longest        = 30 * time.Second       // of an utterance
	droneTime      = 5 * time.Second        // in which an ear that streams tells nothing new of a sound: it is none of theirs
	openingTime    = 2 * time.Second        // so soon after the answer people say who they are
	fillerTime     = 700 * time.Millisecond // a reply is slow
	coverTime      = 500 * time.Millisecond // a tool is
	coverAgain     = 8 * time.Second        // and still is
	lostFloor      = 300 * time.Millisecond // what is shorter and was lost was a noise
	stallTime      = 20 * time.Second       // a model that does nothing for so long has failed
	keypadTime     = 2 * time.Second        // a pause that ends keys
	frameTime      = 20 * time.Millisecond
	maxFailures    = 2
	maxAsked       = 2
	maxMissed      = 3
	maxKeys        = 64
)

func newMachine(m manner) *machine {
	x := &machine{manner: m, greeted: m.initial == "", judge: judge{active: m.outbound}, out: make([]action, 0, 16), turn: make([]segment, 0, 8)}
	x.findGist = x.gistOf
	x.findPause = func(text string, _ bool) time.Duration { return x.pause(text) }
	return x
}

func (m *machine) act(a action) { m.out = append(m.out, a) }

// start begins the conversation. Its actions are those of a step.
func (m *machine) start() []action {
	m.out = m.out[:0]
	if !m.wait {
		m.greet()
	}
	return m.out
}

// step takes an event and returns what is to be done, in order. The slice is good until the next step.
func (m *machine) step(e event) []action {
	m.out = m.out[:0]
	if m.over {
		return m.out
	}
	m.now = max(m.now, e.at)
	switch e.kind {
	case evVoice:
		m.voice(e)
	case evText:
		m.heard(e)
	case evDigit:
		m.digit(e.key)
	case evBeep:
		m.beep()
	case evEnd:
		m.end(e.reason)
	case evTick:
	default:
		m.ofReply(e)
	}
	m.settle()
	return m.out
}

// settle does what the state and the time ask for, whatever happened.
func (m *machine) settle() {
	if m.over {
		return
	}
	if m.now >= m.maxDuration {
		m.end(parley.MaxDuration)
		return
	}
	m.hear()
	m.judgeAnswer()
	if m.over {
		return
	}
	if m.mailbox.on {
		m.leaveMessage()
	}
	if m.reply != nil && !m.mailbox.on {
		m.overlap()
	}
	if m.reply != nil {
		m.drive()
	}
	if m.reply == nil && !m.over && !m.mailbox.on {
		m.listen()
	}
	if m.reply == nil && !m.over && !m.mailbox.on {
		m.silence()
	}
}

// end is the end: whoever was speaking is cut off.
func (m *machine) end(reason parley.EndedReason) {
	m.over = true
	if m.reply != nil {
		m.stop(false)
	}
	if m.open {
		m.shut()
	}
	m.note()
	m.act(action{kind: acEnd, reason: reason})
}

// note puts what was said and is not going to be answered into the transcript.
func (m *machine) note() {
	if text := said(m.turn); text != "" {
		m.act(action{kind: acNote, text: text, from: m.turn[0].from})
	}
	m.turn = nil
}

// said joins the texts of segments.
func said(segments []segment) string {
	var j joined
	return j.of(segments, false)
}

// joined keeps a joined text, so that it is made anew only when it has changed: it is looked at with every frame.
type joined struct {
	text   string
	buffer []byte
}

// of joins the texts of segments, with fresh of those that are not queued.
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
	hollow                         bool // words that mean nothing by themselves: what recognizers make of noise
	finished                       completion
}

func (m *machine) gistOf(text string, open bool) gist {
	return gist{
		words: words(text), backchannel: isBackchannel(text, m.language, open), greeting: isGreeting(text, m.language, open), goodbye: isFarewell(text, m.language, open),
		hollow: isHollow(text, m.language), finished: completeness(text, m.language),
	}
}

// longEnough says whether the silence after a text ends the turn.
func (m *machine) longEnough(text string, quiet time.Duration) bool {
	if !m.smart {
		return quiet >= m.endpoint
	}
	return quiet >= m.pauses.of(text, false, m.findPause)
}
