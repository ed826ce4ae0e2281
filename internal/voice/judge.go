package voice

import (
	"strings"
	"time"

	"parley"
)

// judge finds out whether a person or a machine took the call: by what it says, and by how it says it. A person greets and waits; a
// machine speaks on. It is a part of the turn machine and as pure.
type judge struct {
	active  bool // the call is outbound and the verdict may still change
	verdict parley.AnsweredBy

	from, last time.Duration // the first and last voiced frame of the present stretch of speech
	speaking   bool
	total      time.Duration // speech in all

	n       int // the utterance of latest
	earlier string
	latest  string
	score   float64       // by words: positive for a machine, negative for a person
	strict  float64       // the same without what people say too once they talk with somebody
	since   time.Duration // of the verdict
	long    bool          // it was a long greeting that was taken for a person's
	beeped  bool
}

const (
	stretchGap   = 600 * time.Millisecond // a longer pause begins another stretch
	humanPause   = 400 * time.Millisecond // who is silent for so long after a greeting waits for us
	humanMax     = 3 * time.Second        // of a greeting
	greetingTime = 5 * time.Second        // so long after a person's greeting it may turn out to be a part of a machine's
	longPause    = time.Second            // who is silent for so long waits for us, however long they greeted
	tellingScore = 0.8                    // words that add up to this are a machine's, with so much speech
	tellingWord  = 0.7                    // one of them weighs as much
	tellingTime  = 1400 * time.Millisecond
	machineMin   = 4200 * time.Millisecond // nobody greets for so long without a pause
	businessMin  = 8 * time.Second         // except who answers for a company
	machineScore = 2.0                     // words that add up to this are a machine's
	personScore  = -0.5                    // and to this, a person's who greets at length
	judgedWithin = 20 * time.Second        // later nobody is a machine
)

// voice takes a frame.
func (j *judge) voice(now time.Duration, voiced bool) {
	if !j.active || !voiced {
		return
	}
	if !j.speaking || now-j.last > stretchGap {
		j.speaking, j.from = true, now
	}
	j.last = now
	j.total += frameTime
}

// words takes the text of an utterance.
func (j *judge) words(n int, text, language string) {
	if !j.active || text == "" || n == j.n && text == j.latest {
		return
	}
	if n != j.n {
		j.earlier, j.n = strings.TrimSpace(j.earlier+" "+j.latest), n
	}
	j.latest = text
	said := strings.Join(tokenize(j.earlier+" "+j.latest), " ")
	j.score, j.strict = weigh(tokenize(j.earlier+" "+j.latest), language), 0
	if saysAny(said, machineWords, language) {
		j.score, j.strict = j.score+machineScore, machineScore
	} else if saysAny(said, greetingWords, language) {
		j.score += machineScore
	}
	if saysAny(said, personWords, language) {
		j.score, j.strict = j.score-machineScore, j.strict-machineScore
	}
}

// weigh adds up what the single words of a greeting tell: recognizers lose some, so that no phrase can be relied on. Words that tell little tell
// nothing without one that tells more.
func weigh(tokens []string, language string) float64 {
	sum, most := 0.0, 0.0
	seen := map[string]bool{}
	for _, t := range tokens {
		if w := hints[language][t]; w != 0 && !seen[t] {
			sum, most = sum+w, max(most, w)
			seen[t] = true
		}
	}
	if most < tellingWord {
		sum = min(sum, 0)
	}
	return sum
}

// rule gives the verdict, "" as long as there is none.
func (j *judge) rule(now time.Duration) parley.AnsweredBy {
	stretch, pause := j.last-j.from, now-j.last
	switch {
	case j.verdict == parley.AnsweredHuman:
		if j.strict >= machineScore || now-j.since <= greetingTime && (j.score >= machineScore || j.long && j.beeped) {
			return parley.AnsweredMachine
		}
		return ""
	case j.score >= machineScore:
		return parley.AnsweredMachine
	case j.beeped && j.total >= time.Second:
		return parley.AnsweredMachine
	case !j.speaking:
		return ""
	case j.score <= -machineScore/2:
		return parley.AnsweredHuman
	case pause <= stretchGap && (stretch >= j.enough() || j.score >= tellingScore && j.total >= j.enough()):
		return parley.AnsweredMachine
	case pause >= humanPause && stretch <= humanMax:
		return parley.AnsweredHuman
	case pause >= longPause && j.score < tellingScore/2:
		j.long = true
		return parley.AnsweredHuman
	}
	return ""
}

// enough is how much speech without a pause is a machine's, by the words in it.
func (j *judge) enough() time.Duration {
	switch {
	case j.score >= 1.2:
		return 900 * time.Millisecond
	case j.score >= tellingScore:
		return tellingTime
	case j.score >= 0.5:
		return 2900 * time.Millisecond
	case j.score > personScore:
		return machineMin
	}
	return businessMin
}

// saysAny looks for whole words.
func saysAny(said string, phrases map[string][]string, language string) bool {
	said = " " + said + " "
	for _, l := range []string{language, "en"} {
		for _, p := range phrases[l] {
			if strings.Contains(said, " "+p+" ") || spacelessIn(p) && strings.Contains(strings.ReplaceAll(said, " ", ""), p) {
				return true
			}
		}
	}
	return false
}

func spacelessIn(s string) bool {
	for _, r := range s {
		if spaceless(r) {
			return true
		}
	}
	return false
}

// judgeAnswer asks for a verdict and does what follows from it.
func (m *machine) judgeAnswer() {
	j := &m.judge
	if !j.active {
		return
	}
	v := j.rule(m.now)
	if m.now > judgedWithin && (v != parley.AnsweredMachine || j.verdict != "") {
		j.active = false
		return
	}
	if v == "" || v == j.verdict {
		return
	}
	j.verdict, j.since = v, m.now
	m.act(action{kind: acVerdict, machine: v == parley.AnsweredMachine})
	if v == parley.AnsweredHuman {
		return
	}
	j.active = false
	if !m.endOnMachine {
		return
	}
	if !m.message {
		m.end(parley.Voicemail)
		return
	}
	switch r := m.reply; {
	case r == nil:
	case r.sounded:
		m.stop(false)
	default:
		m.rejoin(r)
	}
	m.mailbox = mailbox{on: true, since: m.now, beeped: j.beeped}
}

// mailbox is the leaving of a message.
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
func (m *machine) beep() {
	m.judge.beeped = true
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

// leaveMessage waits for the moment, and says it.
func (m *machine) leaveMessage() {
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
	r := m.begin(theMailbox, nil)
	r.firm = true
	m.say(theMailbox)
}
