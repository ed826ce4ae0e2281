package turn

import (
	"strings"
	"time"

	"parley/internal/lang"
)

// What becomes of a reply that the customer speaks over. Machine.facts gathers what is known, overlap.outcome decides,
// and Machine.overlap does what was decided. It is asked again after every event, so that a decision can wait.

// outcome is what becomes of a reply, and of what the customer has said over it.
type outcome uint8

// The outcomes.
const (
	undecided    outcome = iota // nothing changes yet
	goesOn                      // the reply is heard, and may still be cut off by what was said
	mustDecide                  // the utterance has lasted for too long, and is ended, so that it can be decided on
	cutOff                      // the reply is cut off, and what was said is a new turn
	rejoined                    // nothing of the reply was heard, and it is given up: what was said goes on with the turn that it answers
	dismissed                   // the reply goes on, and what was said is forgotten: the customer listens
	later                       // the reply goes on, and what was said is answered after it, unless it is too short to be speech
	answersLater                // likewise, however short it is: it answers the question that the reply asks
)

func (o outcome) String() string {
	return [...]string{"undecided", "goes on", "must be decided", "cut off", "rejoined", "dismissed", "later",
		"later, as an answer"}[o]
}

// overlap is what is known while the customer speaks, or has spoken, over a reply.
type overlap struct {
	// What an interruption takes.
	confirm  time.Duration // so much speech
	minWords int           // of so many words

	// The reply.
	unheard  bool // nothing of it was heard yet, so that the customer may go on as if it weren't there
	cuttable bool // something was, and the customer may cut it off
	silenced bool // it has fallen silent for what they say
	deaf     bool // there is a noise that was judged to be no interruption
	greeting bool // it is the initial message
	goodbye  bool // the call ends with it
	asking   bool // it asks a question just now

	// What the customer has said since the reply began, apart from what waits for its end.
	nothing bool
	text    bool          // some of it was understood
	gist    gist          // of the text
	words   float32       // how likely its sound has words, as a logit: of the utterance that is likeliest to
	longest time.Duration // of the utterances
	certain bool          // one of them was certainly speech
	wavered bool          // the recognizer took one for a backchannel, and has changed its mind
	pickup  bool          // the customer has just picked up, and this may be the word that people say then
	sounded bool          // the model hears for itself, and they have been quiet for as long as ends a turn
	pending int           // texts that may still change
	waited  time.Duration // for them, since the newest utterance ended

	speaking bool          // the newest utterance is not over
	since    time.Duration // it began
}

// outcome decides what becomes of the reply.
func (o *overlap) outcome() outcome {
	if o.nothing {
		return goesOn
	}
	small := o.small()
	// A text that may still change counts if there is more speech behind it than a mere backchannel takes: nothing is
	// lost meanwhile, as the assistant is silent already.
	told := o.text && !small && (o.pending == 0 || o.longest >= sure(o.confirm))
	sounds := !o.text && o.sounds()
	switch {
	case o.unheard && (told || sounds):
		return rejoined
	case o.cuttable && (sounds || told && o.enough()):
		return cutOff
	case o.speaking:
		return o.meanwhile()
	}
	return o.afterwards(small)
}

// meanwhile decides on speech that is not over and interrupts nothing so far. A reply that has fallen silent for it stays
// silent as long as it lasts, whatever it seems to be: who hears the reply again while they speak is not listened to.
func (o *overlap) meanwhile() outcome {
	switch {
	case !o.silenced:
		return undecided
	case o.since >= judgeTime:
		return mustDecide
	case o.deaf && (o.pending == 1 || o.waited >= holdTime):
		return goesOn // it was: a noise that goes on; or nobody knows yet
	}
	return undecided
}

// afterwards decides on speech that is over and has interrupted nothing.
func (o *overlap) afterwards(small bool) outcome {
	switch {
	case o.pending > 0 && o.mayCut(small) && (o.waited < holdTime || o.waited < holdWords && o.words >= wordLikely):
		return undecided
	case o.pending > 0:
		return goesOn // a text that comes late may still cut it off
	case o.answers():
		return answersLater
	case small:
		return dismissed
	}
	return later
}

// mayCut reports whether the text of speech that is over may still cut the reply off, so that the reply waits for it. Where
// the sound likely has words it may, whatever the text is so far: "ah" becomes "stop". Else, most who say so little, or
// what is so far a backchannel, only listen.
func (o *overlap) mayCut(small bool) bool {
	switch {
	case o.unheard:
		return !(o.text && small)
	case !o.text && o.pickup:
		return false
	case o.words >= wordLikely:
		return true
	case o.text:
		return !small && o.longest >= o.confirm
	}
	return o.longest >= briefTime
}

// small reports whether what was said takes no turn: the customer listens, hums, or has made a noise.
func (o *overlap) small() bool {
	switch {
	case o.listens() && !o.gist.misheard(o.words):
		return true
	case o.unheard:
		return false
	case o.hums():
		return true
	}
	return o.longest < briefTime && o.words < wordSaid && (o.gist.hollow || o.gist.words <= 2 && o.wavered)
}

// listens reports whether the text is too little to cut this reply off.
func (o *overlap) listens() bool {
	return o.gist.backchannel || o.greeting && o.gist.greeting || o.goodbye && o.gist.goodbye
}

// hums reports whether the text is what the recognizer made of a hum, by the sound of it. Hums are short: a longer sound
// must be one for certain.
func (o *overlap) hums() bool {
	if o.gist.halting || o.gist.halts || o.gist.words > 2 {
		return false
	}
	return o.words < humBrief && o.longest < wordsTime || o.words < humSaid && o.longest < briefTime ||
		o.words < humSure && o.longest < sure(o.confirm)
}

// enough reports whether there are as many words, and as much speech, as an interruption takes. "Wait" is enough however
// short it is; but not where much is asked of an interruption, nor is a "no" to the question.
func (o *overlap) enough() bool {
	brief := o.gist.halting && o.certain || o.words > wordSaid && o.longest >= minWord
	return o.gist.words >= o.minWords &&
		(o.longest >= o.confirm || brief && o.confirm <= usualConfirm && !(o.gist.consents && o.asking))
}

// sounds reports whether the speech counts before its text is known: it is too long for a noise or a backchannel.
func (o *overlap) sounds() bool {
	if o.unheard {
		return o.sounded && o.longest >= soundTime
	}
	return o.sounded && o.longest >= max(sure(o.confirm), time.Duration(o.minWords)*wordTime)
}

// answers reports whether the text is a yes or a no to the question being asked, however short, or else a whole answer; but
// not the word with which people pick up a call.
func (o *overlap) answers() bool {
	picksUp := o.greeting && (o.pickup || o.gist.greeting && !o.gist.backchannel)
	return o.asking && !picksUp && (o.listens() || o.gist.finished == lang.Finished)
}

// sure is how much speech is certainly neither a cough nor an "mm-hm", whatever the recognizer makes of it so far.
func sure(confirm time.Duration) time.Duration { return max(confirm, sureTime) }

// overlap handles what the customer says during a reply.
func (m *Machine) overlap() {
	r := m.reply
	o := m.facts(r)
	switch decided := o.outcome(); decided {
	case goesOn:
		m.resume(r)
	case mustDecide:
		m.shut()
		r.deaf = true
	case cutOff:
		m.stop(false)
	case rejoined:
		m.rejoin(r)
	case dismissed, later, answersLater:
		m.resume(r)
		m.postpone(decided)
	}
}

// facts gathers what is known of what the customer says during a reply.
func (m *Machine) facts(r *reply) (o overlap) {
	o = overlap{
		confirm: m.manner.Confirm, minWords: m.manner.MinWords, unheard: r.tentative(), cuttable: m.cuttable(r),
		silenced: r.held, deaf: r.deaf, greeting: r.purpose == Greeting, goodbye: r.leave != "", asking: r.asking(), nothing: true,
	}
	var closed, began time.Duration
	heard := false
	for i := range m.turn {
		s := &m.turn[i]
		if s.queued {
			continue
		}
		if o.nothing {
			o.nothing, began = false, s.from
		}
		o.longest, closed = max(o.longest, s.last-s.from+frameTime), max(closed, s.closed)
		if !s.final {
			o.pending++
		}
		o.certain = o.certain || s.sure
		o.wavered = o.wavered || s.nod != "" && !strings.HasPrefix(s.text, s.nod)
		if !s.keypad && (!heard || s.words > o.words) {
			o.words, heard = s.words, true
		}
	}
	if o.nothing {
		return o
	}
	text := m.fresh.of(m.turn, true)
	o.text, o.gist = text != "", m.gists.of(text, o.pending > 0, m.findGist)
	if !o.certain {
		o.words = min(o.words, 0) // it may be an echo, which has words, too
	}
	o.pickup = m.manner.Outbound && o.greeting && began < openingTime && m.turn[len(m.turn)-1].last-began < sure(o.confirm)
	o.waited = m.now - closed
	o.sounded = m.manner.Sound && !m.open && o.pending > 0 && m.now-m.last >= m.manner.Endpoint
	if m.open {
		o.speaking, o.since = true, m.now-m.turn[m.latest()].from
	}
	return o
}

// postpone has what was said over a reply wait for its end, apart from what was nothing.
func (m *Machine) postpone(o outcome) {
	kept := m.turn[:0]
	for _, s := range m.turn {
		short := s.last-s.from+frameTime < m.manner.Confirm
		if !s.queued && !s.keypad && (o == dismissed || o == later && short || s.text == "" && !s.lost && !s.unclear) {
			m.forget(&s)
			continue
		}
		s.queued = true
		kept = append(kept, s)
	}
	clear(m.turn[len(kept):])
	m.turn = kept
}
