package turn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/lang"
	"parley/internal/parley"
)

// Answerer is who or what took an outgoing call.
type Answerer uint8

// Who answers.
const (
	Nobody Answerer = iota // not known, or only that it is a machine
	Person
	Mailbox  // a voicemail, or an announcement
	Screener // asks who is calling and why, and puts the call through, or doesn't
	Menu     // offers keys
	OnHold   // asks to wait, with music or without
	Fax
)

// hint is what words say about the kind of a machine.
type hint struct {
	kind  Answerer
	why   string
	firm  bool // nothing else says these words
	human bool // words of a person
}

// hintOf reads words. Those of a screener come first: it may say "after the tone", too.
func hintOf(all string, tokens []string, language string) (h hint) {
	own, english := &lang.Of(language).Answering, &lang.Of("en").Answering
	hears := func(a, b []string) string {
		if p := lang.Hears(tokens, a); p != "" {
			return p
		}
		return lang.Hears(tokens, b)
	}
	said := strings.Join(tokens, " ")
	text := func(p string) string { return fmt.Sprintf("words: %q", p) }
	h.human = lang.Says(said, own.Person) || lang.Says(said, english.Person)
	options := lang.Options(all, language)
	mailbox, shared := firmly(said, own, english)
	if p := hears(own.Screener, english.Screener); p != "" {
		return hint{kind: Screener, why: text(p), firm: true}
	}
	if mailbox != "" && len(options) < 2 {
		return hint{kind: Mailbox, why: text(mailbox), firm: true, human: h.human}
	}
	if len(options) > 0 {
		return hint{kind: Menu, why: fmt.Sprintf("words: a key %c", options[0].Key), firm: true}
	}
	if p := hears(own.Menu, english.Menu); strings.Contains(p, " ") {
		return hint{kind: Menu, why: text(p), firm: true}
	}
	if p := hears(own.Naming, english.Naming); p != "" && mails(tokens, own.Weights) < 2 {
		return hint{kind: Screener, why: text(p), human: h.human}
	}
	if p := hears(own.Hold, english.Hold); p != "" {
		same := func(q string) bool { return strings.Contains(q, p) || strings.Contains(p, q) }
		several := func(list []string) bool { return lang.Hears(tokens, slices.DeleteFunc(slices.Clone(list), same)) != "" }
		return hint{kind: OnHold, why: text(p), human: h.human, firm: !h.human && (several(own.Hold) || several(english.Hold))}
	}
	if shared != "" {
		return hint{kind: Mailbox, why: text(shared), human: h.human}
	}
	return h
}

// mails counts the words that tell a voicemail by themselves.
func mails(tokens []string, weights map[string]float64) (n int) {
	const telling = 1.2
	for _, t := range tokens {
		if weights[t] >= telling {
			n++
		}
	}
	return n
}

// firmly finds words that voicemails alone say, and words that screeners say too.
func firmly(said string, books ...*lang.Answering) (firm, shared string) {
	for _, a := range books {
		for _, p := range a.Machine {
			switch {
			case !lang.Says(said, []string{p}):
			case lang.Says(p, a.Shared), slices.Contains(a.Either, p):
				shared = p
			case firm == "":
				firm = p
			}
		}
	}
	return firm, shared
}

const (
	sortPause = time.Second      // after which it says no more about itself
	sortTime  = 20 * time.Second // menus come to their keys late
	waitTime  = 2 * time.Second  // so much silence without a beep is somebody's who waits
)

// sort says what kind of machine it is, once that is clear, or no more can be hoped for.
func (d *amd) sort(now time.Duration) (Answerer, string) {
	h := &d.hint
	d.convict = d.convict || d.convincing()
	// People say "one moment please", too: such words tell something only together with others.
	mere := h.kind == OnHold && !h.firm && d.score < tellingScore && !d.convict
	tells := h.kind != Nobody && !mere || d.score >= tellingScore/2 && d.convict
	quiet, said := now-d.last, d.latest != "" || d.earlier != ""
	switch {
	case h.firm:
		return h.kind, h.why
	case d.beeped:
		return Mailbox, "a beep after speech"
	case d.score <= -machineScore/2:
		return Person, "words of a person"
	case d.asks && quiet >= humanPause && h.kind != Screener && d.strict < machineScore:
		return Person, "a question, then silence"
	case now-d.suspect >= sortTime && d.convict: // it never stops
		return Mailbox, cmp.Or(h.why, "it says nothing else")
	case !tells && quiet >= longPause && said: // it was the length of it alone, or a word
		return d.waits("a long greeting, then silence")
	case h.kind == OnHold && d.score >= tellingScore: // until it says that it is something else
		return h.kind, h.why
	case h.kind == Screener && quiet >= askedPause:
		return h.kind, h.why
	case quiet < sortPause:
		return Nobody, ""
	case h.kind == OnHold, h.kind == Screener:
		return h.kind, h.why
	case d.score >= mailboxScore || d.strict >= machineScore:
		return Mailbox, cmp.Or(h.why, "words of a machine, and it said no more")
	case quiet < waitTime: // a beep may still come
		return Nobody, ""
	}
	return d.waits("it waits")
}

// waits is the verdict on who says no more, and nothing that machines alone say: a person waits for an answer. A greeting
// that a machine hears costs little, and its beep may still follow.
func (d *amd) waits(why string) (Answerer, string) {
	d.waited = true
	return Person, why
}

// open reports whether a machine is there of which nobody knows yet what kind it is: it is not answered.
func (d *amd) open() bool { return d.active && d.result == parley.AnsweredMachine && d.kind == Nobody }

// answered acts on a verdict.
func (m *Machine) answered(kind Answerer, why string) {
	d := &m.amd
	d.kind, d.since = kind, m.now
	m.act(Action{Kind: AnsweredBy, Machine: kind != Person, Who: kind, Text: why})
	d.result = parley.AnsweredMachine
	switch kind {
	case Person:
		d.result = parley.AnsweredHuman
		if m.far.on {
			d.active, m.far = false, far{}
			m.greeted = m.manner.Initial == ""
		}
	case Mailbox:
		m.far = far{}
		m.meet()
	case Fax:
		d.active, m.far = false, far{}
		m.end(parley.Voicemail)
	case Menu:
		if !m.manner.Keys { // there is no way through it
			m.far = far{}
			m.meet()
			return
		}
		m.wait(kind)
	default:
		m.wait(kind)
	}
}

// music takes music: who plays it wants us to wait. Somebody who was understood has it in the background.
func (m *Machine) music() {
	d := &m.amd
	if f := &m.far; f.on { // nobody waits for us, and what seemed a beep was a note
		f.since, f.beeped = m.now, f.beeped && f.kind != OnHold
		return
	}
	soon := d.result != parley.AnsweredHuman || m.now-d.since <= greetingTime
	if d.active && soon && m.now <= judgedWithin && d.latest == "" && d.earlier == "" {
		m.answered(OnHold, "music")
	}
}

// far is the state of a call in which a machine stands between us and a person.
type far struct {
	on      bool
	kind    Answerer
	since   time.Duration // of the last thing that was done about it
	beeped  bool
	answers int // to a screener
	presses int
	heard   int           // of a menu: how often, without a key that fits
	until   time.Duration // it was heard until then
}

const (
	askedPause  = 900 * time.Millisecond // after which a screener, or a menu, waits for us
	offerPause  = 700 * time.Millisecond
	menuPause   = 1200 * time.Millisecond
	pickupPause = time.Second
	pickupMax   = 6 * time.Second // of what a person says who takes the call
	farPatience = time.Minute     // of silence
	maxAnswers  = 3
	maxPresses  = 8
	maxHeard    = 3
	againTime   = 8 * time.Second // in which a menu that gets no key begins again
)

// wait begins, or goes on, to deal with a machine that may lead to a person.
func (m *Machine) wait(kind Answerer) {
	if !m.far.on {
		m.breakOff()
		m.far.on = true
	}
	m.far.kind, m.far.since = kind, m.now
}

// attend deals with such a machine.
func (m *Machine) attend() {
	f, d := &m.far, &m.amd
	if m.now-max(m.last, f.since) < farPatience {
		m.asked, m.quietAt = 0, m.now
	}
	if m.reply != nil || d.latest == "" && !f.beeped {
		return
	}
	quiet := m.now - max(m.last, f.since)
	h := d.hint
	switch {
	case f.kind == OnHold && d.latest == "":
		if quiet >= mailboxSilence { // the music was behind a greeting
			m.answered(Mailbox, "a beep, then silence")
		}
	case h.firm && h.kind == Mailbox, h.kind == Mailbox && f.kind != Screener && quiet >= askedPause:
		m.answered(Mailbox, h.why)
	case h.kind == Screener && (h.firm || f.kind == Screener), f.kind == Screener && f.answers == 0: // people ask who calls, too
		if (quiet >= askedPause && !m.open || f.beeped) && f.answers < maxAnswers {
			m.introduce(h)
		}
	case h.kind == Menu && m.manner.Keys:
		m.choose(h, quiet)
	case h.human && quiet >= humanPause:
		m.answered(Person, "words of a person, after a "+f.kind.String())
	case quiet < pickupPause || m.open:
	case h.kind == OnHold:
		if f.kind != OnHold {
			m.act(Action{Kind: AnsweredBy, Machine: true, Who: OnHold, Text: h.why})
			f.kind = OnHold
		}
		m.past()
	case f.kind == OnHold && d.last-d.from > pickupMax: // an announcement
		m.past()
	default:
		m.answered(Person, "somebody speaks, after a "+f.kind.String())
	}
}

// past puts what the machine has said so far behind us.
func (m *Machine) past() {
	if m.open {
		m.shut()
	}
	d := &m.amd
	d.earlier, d.latest, d.hint, d.done, d.score, d.strict = "", "", hint{}, m.next, 0, 0
	m.far.since, m.far.beeped = m.now, false
	m.note()
}

// introduce tells a screener who calls, and why.
func (m *Machine) introduce(h hint) {
	f := &m.far
	if f.kind != Screener {
		m.act(Action{Kind: AnsweredBy, Machine: true, Who: Screener, Text: h.why})
		f.kind = Screener
	}
	f.answers++
	m.past()
	r := m.begin(Screened, nil)
	r.thinking, r.firm = true, true
	m.act(Action{Kind: Think, Reply: r.id, Purpose: Screened})
}

// choose presses the key of a menu that leads to the goal; one that leads to a person only when the menu is over. If no
// key seems to, the model is asked.
func (m *Machine) choose(h hint, quiet time.Duration) {
	f, d := &m.far, &m.amd
	if f.kind != Menu {
		m.act(Action{Kind: AnsweredBy, Machine: true, Who: Menu, Text: h.why})
		f.kind = Menu
	}
	if quiet < offerPause {
		return
	}
	options := lang.Options(d.earlier+"\n"+d.latest, m.manner.Language)
	o, fits, ok := lang.Choose(options, m.manner.Goal, m.manner.Language)
	if !fits && quiet < menuPause || len(options) == 0 && quiet < 2*menuPause {
		return
	}
	if !fits && m.manner.Goal != "" && f.heard < maxHeard { // a word may have been lost: it is heard once more
		if m.last > f.until {
			f.heard, f.until = f.heard+1, m.last
		}
		if f.heard < maxHeard && quiet < againTime {
			return
		}
	}
	f.heard = 0
	if f.presses++; f.presses > maxPresses {
		m.far = far{}
		m.meet()
		return
	}
	switch {
	case ok:
		m.past()
		m.act(Action{Kind: AnsweredBy, Machine: true, Who: Menu,
			Text: fmt.Sprintf("pressed %c: %q", o.Key, strings.Join(o.Label, " "))})
		m.act(Action{Kind: Press, Text: string(o.Key)})
	case len(options) == 0:
		m.past()
	default:
		m.past()
		r := m.begin(Chosen, nil)
		r.thinking = true
		m.act(Action{Kind: Think, Reply: r.id, Purpose: Chosen})
	}
}

// String is how the record of a call names it.
func (a Answerer) String() string { return string(a.Kind()) }

// Kind is the product's word for it.
func (a Answerer) Kind() parley.AnswererKind {
	return [...]parley.AnswererKind{parley.AnswererMachine, parley.AnswererPerson, parley.AnswererVoicemail, parley.AnswererScreener,
		parley.AnswererMenu, parley.AnswererHold, parley.AnswererFax}[a]
}
