package turn

import (
	"strings"
	"time"

	"parley/internal/lang"
	"parley/internal/parley"
)

// amd (answering machine detection) finds out whether a person or a machine took the call, by what it says and how. A
// person greets and waits; a machine talks on. It is part of the turn machine, and just as pure.
type amd struct {
	active bool // the call is outbound and the result may still change
	result parley.AnsweredBy

	from, last time.Duration // the first and last voiced frame of the present stretch of speech
	speaking   bool
	total      time.Duration // speech in all

	n       int // the utterance of latest
	earlier string
	latest  string
	score   float64       // by words: positive for a machine, negative for a person
	strict  float64       // the same without what people say too once they talk with somebody
	asks    bool          // what was said ends with a question
	since   time.Duration // of the result
	waited  bool          // it was taken for a person because it waited, whatever it had said
	beeped  bool

	kind    Answerer      // what kind of machine it is; Nobody as long as that is open
	suspect time.Duration // since when it is open
	convict bool          // there was enough speech for a machine's, whatever follows
	hint    hint          // what the words say about it
	done    int           // utterances before this one have been dealt with
}

const (
	stretchGap = 600 * time.Millisecond // a longer pause begins another stretch
	humanPause = 400 * time.Millisecond // who is silent for so long after a greeting waits for us
	humanMax   = 3 * time.Second        // of a greeting
	// for this long, what seemed a person's greeting may still turn out to be part of a machine's
	greetingTime = 8 * time.Second
	longPause    = time.Second     // who is silent for so long waits for us, however long they greeted
	beepAfter    = 2 * time.Second // so much speech before a beep is a machine's, whatever it seemed
	tellingScore = 0.8             // words that add up to this are a machine's, with so much speech
	tellingWord  = 0.7             // one of them weighs as much
	tellingTime  = 1400 * time.Millisecond
	suspectTime  = 600 * time.Millisecond  // with so much, they are a suspicion: it is heard out before it is answered
	machineMin   = 4200 * time.Millisecond // nobody greets for so long without a pause
	businessMin  = 8 * time.Second         // except who answers for a company
	machineScore = 2.0                     // words that add up to this are a machine's
	personScore  = -0.5                    // and to this, a person's who greets at length
	mailboxScore = 1.25                    // and to this, a machine's that says no more
	judgedWithin = 20 * time.Second        // later nobody is a machine
)

// voice takes a frame.
func (d *amd) voice(now time.Duration, voiced bool) {
	if !d.active || !voiced {
		return
	}
	if !d.speaking || now-d.last > stretchGap {
		d.speaking, d.from = true, now
	}
	d.last = now
	d.total += frameTime
}

// words takes the text of an utterance.
func (d *amd) words(n int, text, language string) {
	if !d.active || text == "" || n < d.done || n == d.n && text == d.latest {
		return
	}
	if n != d.n {
		d.earlier, d.n = strings.TrimSpace(d.earlier+"\n"+d.latest), n
	}
	d.latest = text
	text = d.earlier + "\n" + d.latest // a line without a pause
	tokens := lang.Tokens(text)
	said := strings.Join(tokens, " ")
	d.hint = hintOf(text, tokens, language)
	d.asks = lang.Asks(text)
	d.judge(tokens, said, language)
}

// judge weighs the words. What people who answer for somebody else say too ("is not available") is only a suspicion, and
// nothing beside the words of a person, unless there are some that machines alone say.
func (d *amd) judge(tokens []string, said, language string) {
	own, english := &lang.Of(language).Answering, &lang.Of("en").Answering
	d.score, d.strict = weigh(tokens, own.Weights), 0
	firm, opens, either := false, false, 0
	for _, a := range []*lang.Answering{own, english} {
		firm = firm || a.Tells(said, a.Machine)
		opens = opens || a.Tells(said, a.Opening)
		either = max(either, lang.SaysOf(said, a.Either))
	}
	person := lang.Hears(tokens, own.Person) != "" || lang.Hears(tokens, english.Person) != ""
	switch {
	case firm:
		d.score, d.strict = d.score+machineScore, machineScore
	case opens:
		d.score += machineScore
	case either > 0: // a suspicion; two of them weigh more
		d.score = max(d.score, tellingScore) + min(float64(either-1), machineScore)
	}
	switch {
	case person && !firm && !opens:
		d.score = min(d.score-machineScore, -machineScore/2)
	case person:
		d.score, d.strict = d.score-machineScore, d.strict-machineScore
	}
}

// weigh adds up the evidence of the single words of a greeting: recognizers miss some, so no phrase can be relied on.
// Weak words count only together with a stronger one.
func weigh(tokens []string, weights map[string]float64) float64 {
	sum, most := 0.0, 0.0
	seen := map[string]bool{}
	for _, t := range tokens {
		if w := weights[t]; w != 0 && !seen[t] {
			sum, most = sum+w, max(most, w)
			seen[t] = true
		}
	}
	if most < tellingWord {
		sum = min(sum, 0)
	}
	return sum
}

// rule says whether it is a person or a machine, and why; "" while it says nothing.
func (d *amd) rule(now time.Duration) (by parley.AnsweredBy, why string) {
	stretch, pause := d.last-d.from, now-d.last
	switch {
	case d.result == parley.AnsweredHuman:
		soon := now-d.since <= greetingTime
		words := d.strict >= machineScore && d.score > -machineScore/2 || soon && d.score >= machineScore
		if words || soon && d.beeped && (d.waited || d.total >= beepAfter) {
			return parley.AnsweredMachine, "words of a machine after a greeting"
		}
		return "", ""
	case d.score >= machineScore:
		return parley.AnsweredMachine, "words of a machine"
	case d.beeped && d.total >= time.Second:
		return parley.AnsweredMachine, "a beep after speech"
	case !d.speaking:
		return "", ""
	case d.score <= -machineScore/2:
		return parley.AnsweredHuman, "words of a person"
	case pause <= stretchGap && d.convincing():
		return parley.AnsweredMachine, "speech without a pause"
	case pause <= stretchGap && d.suspicious() && d.total >= suspectTime:
		return parley.AnsweredMachine, "words that machines begin with"
	case pause >= humanPause && stretch <= humanMax:
		return parley.AnsweredHuman, "a greeting, then silence"
	case pause >= longPause && d.score < tellingScore/2:
		d.waited = true
		return parley.AnsweredHuman, "a long greeting, then silence"
	}
	return "", ""
}

// convincing says whether there is so much speech that it is a machine's, given its words.
func (d *amd) convincing() bool {
	return d.last-d.from >= d.enough() || d.score >= tellingScore && d.total >= d.enough()
}

// suspicious says whether there is a word that machines begin with, or one of waiting: nobody who asks to wait wants to
// be greeted.
func (d *amd) suspicious() bool {
	return d.score >= tellingScore || d.hint.kind == OnHold && !d.hint.human
}

// enough is how much speech without a pause points to a machine, given the words in it.
func (d *amd) enough() time.Duration {
	switch {
	case d.score >= machineScore:
		return 0
	case d.score >= 1.2:
		return 900 * time.Millisecond
	case d.score >= tellingScore:
		return tellingTime
	case d.score >= 0.5:
		return 2900 * time.Millisecond
	case d.score > personScore:
		return machineMin
	}
	return businessMin
}

// detect asks for a verdict and acts on it.
func (m *Machine) detect() {
	d := &m.amd
	if !d.active || m.far.on {
		return
	}
	if d.result == parley.AnsweredMachine { // of an open kind
		if kind, why := d.sort(m.now); kind != Nobody {
			m.answered(kind, why)
		}
		return
	}
	if k := d.hint.kind; d.hint.firm && (k == Screener || k == Menu || k == OnHold) && m.now <= judgedWithin+greetingTime {
		m.answered(k, d.hint.why)
		return
	}
	v, why := d.rule(m.now)
	if m.now > judgedWithin && (v != parley.AnsweredMachine || d.result != "") {
		d.active = false
		return
	}
	switch {
	case v == "" || v == d.result:
		return
	case v == parley.AnsweredHuman:
		d.result, d.since = v, m.now
		m.act(Action{Kind: AnsweredBy, Who: Person, Text: why})
		return
	}
	d.result, d.since, d.suspect = v, m.now, m.now
	if kind, told := d.sort(m.now); kind != Nobody {
		if told != "" {
			why = told
		}
		m.answered(kind, why)
		return
	}
	m.act(Action{Kind: AnsweredBy, Machine: true, Who: Nobody, Text: why})
}

// meet deals with a voicemail, or another machine that nobody can talk with.
func (m *Machine) meet() {
	d := &m.amd
	d.active = false
	if !m.manner.EndOnMachine {
		return
	}
	if !m.manner.Message {
		m.end(parley.Voicemail)
		return
	}
	m.breakOff()
	m.mailbox = mailbox{on: true, since: m.now, beeped: d.beeped}
}

// breakOff gives up the reply that a machine would hear.
func (m *Machine) breakOff() {
	switch r := m.reply; {
	case r == nil:
	case r.phase == audible:
		m.stop(false)
	default:
		m.rejoin(r)
	}
}

// mailbox is the state of leaving a message.
type mailbox struct {
	on     bool
	since  time.Duration
	beeped bool
	again  bool // the beep came while the message was being said: it is said once more
}

const (
	mailboxSilence  = 2 * time.Second // so much of it after the greeting is as good as a beep
	mailboxPatience = time.Minute     // a greeting that doesn't end
)

// beep takes a tone.
func (m *Machine) beep() {
	m.amd.beeped = true
	if m.far.on {
		m.far.beeped, m.far.since = true, m.now
	}
	b := &m.mailbox
	if !b.on {
		return
	}
	if m.reply != nil && !b.again { // too early: what was said before the beep is not on the tape
		b.again = true
		m.stop(true)
	}
	b.beeped = true
}

// leaveMessage waits for the right moment, and says the message.
func (m *Machine) leaveMessage() {
	b := &m.mailbox
	if m.reply != nil {
		return
	}
	if !b.beeped && m.now-max(m.last, b.since) < mailboxSilence && m.now-b.since < mailboxPatience {
		return
	}
	if m.open {
		m.shut()
	}
	m.note()
	r := m.begin(Voicemail, nil)
	r.firm = true
	m.say(Voicemail)
}
