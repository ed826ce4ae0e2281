package live

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

// Decider is the protocol of a vendor whose model decides by itself when it speaks. Its methods are called under the session's lock.
type Decider interface {
	Take(raw []byte) error        // handles a message of the server's; an error ends the session
	Note(text string)             // tells the model something that it isn't to say
	Prompt(text string)           // has it speak
	Answer(callID, result string) // tells the thinker the result of a call
	GoOn()                        // has the thinker go on with the results that it was told
}

// Decided is a session with a model that decides by itself when it speaks. Sound goes both ways all the time, and nobody says when a turn
// begins or ends: what the model says between two silences is a speech, to which the caller's number for a response is given.
type Decided struct {
	Link
	vendor      Decider
	rate        audio.Rate
	recognition recognition

	wrote   time.Time // up to when there was sound
	heardMS int       // of sound that was sent

	speech        *speech   // that is under way
	past          *speech   // whose sound is over; more of its text may come
	unasked       []*speech // that nobody has asked for yet
	waiting       []*speech // that were asked for, and have not begun
	ahead         []words   // of a speech whose sound has not come yet
	customerSpoke bool      // the customer has said something since the model spoke
	outMS         int       // of the server's timeline, up to where the model's sound has come
	loudMS        int       // where the latest sound was that is not silence
	came          time.Time // the latest sound
	thinker       thinker
}

// speech is something that the model says, or was asked to say.
type speech struct {
	reply
	prompt   string
	own      bool      // there was no instruction
	prompted bool      // the model was asked to speak
	due      time.Time // when it is, where it doesn't speak by itself
	askedMS  int       // of the model's sound, when the speech was asked for
	began    time.Time
	fromMS   int // where its sound begins,
	untilMS  int // and where it is over
	quietMS  int // of silence since its last word
}

// words are a piece of a speech's text, with its place on the server's timeline.
type words struct {
	text           string
	fromMS, tillMS int
}

const (
	sendSilenceAfter     = 100 * time.Millisecond  // without sound, after which silence is sent in its place
	endSilenceMS         = 800                     // ms of silence that end a speech: a pause between sentences is shorter
	interruptedSilenceMS = 200                     // ms of silence that end one if the customer has said something over it
	endWithoutSound      = 1200 * time.Millisecond // without sound end one: silence may be left out
	textAfterSound       = 300 * time.Millisecond  // how long after its sound a speech's text may come
	roundingMS           = 20                      // ms of the timeline that are no silence left out
	silentLevel          = 40                      // mean amplitude up to which sound is silence
	transcriptTime       = 4 * time.Second         // how long after an utterance its text may begin to come
	promptAfter          = 4 * time.Second         // how long the model may hesitate before it is asked to speak,
	stalledAfter         = 12 * time.Second        // and in all
	unaskedAfter         = 5 * time.Second         // how long what the model says by itself waits for somebody to ask for it
)

const speakNow = "[Speak to the customer now, without waiting for them. Then listen.]"

// NewDecided is a session that is not served yet, with the message that ends it.
func NewDecided(ctx context.Context, vendor Decider, rate audio.Rate, goodbye any) *Decided {
	s := &Decided{vendor: vendor, rate: rate}
	s.thinker.pending, s.thinker.open = map[string][]ai.ToolCall{}, map[string]*speech{}
	s.Tally, s.Take, s.Passes, s.Last, s.Goodbye = ai.TallyOf(ctx), vendor.Take, s.passes, s.complete, goodbye
	s.recognition.tell = s.Tell
	return s
}

// Write implements ai.RealtimeSession. The model hears all that there is, also between utterances.
func (s *Decided) Write(pcm []int16) {
	s.Lock()
	defer s.Unlock()
	s.hears(pcm, time.Now())
}

func (s *Decided) hears(pcm []int16, now time.Time) {
	s.wrote, s.heardMS = now, s.heardMS+len(pcm)*1000/int(s.rate)
	s.Box.Sound(pcm)
}

// End implements ai.RealtimeSession.
func (s *Decided) End() {
	s.Lock()
	defer s.Unlock()
	u, now := s.recognition.end(), time.Now()
	u.untilMS, u.touched, u.giveUp, s.customerSpoke = s.heardMS, now, now.Add(transcriptTime), true
}

// Forget implements ai.RealtimeSession: what was heard can't be taken back.
func (s *Decided) Forget(int) {}

// Say implements ai.RealtimeSession: a model that decides says nothing word for word.
func (s *Decided) Say(int, string) {}

// Add implements ai.RealtimeSession.
func (s *Decided) Add(_ int, messages ...ai.Message) {
	s.Lock()
	defer s.Unlock()
	for _, m := range messages {
		switch {
		case m.Role == ai.ToolRole:
			s.vendor.Note(resultOf(ai.ToolCall{}, m.Text))
		case m.Role == ai.Assistant && m.Text != "":
			s.vendor.Note("This was said to the customer in your voice: “" + m.Text + "”")
		case m.Text != "":
			s.vendor.Note("From the customer's side: " + m.Text)
		}
		for _, c := range m.Calls {
			s.vendor.Note("The tool " + c.Name + " was called with " + c.Arguments)
		}
	}
}

// Respond implements ai.RealtimeSession: the response is what the model says next, or has begun to say. It is asked to speak where it has
// no reason of its own, or hesitates.
func (s *Decided) Respond(n int, instruction string, _ bool) {
	s.Lock()
	defer s.Unlock()
	if len(s.unasked) > 0 {
		s.withdraw() // what was asked for need not be asked for again
		s.number(&s.unasked[0].reply, n)
		s.unasked = s.unasked[1:]
		if instruction != "" { // it is late for this
			s.vendor.Note(instruction)
		}
		return
	}
	p := &speech{reply: reply{n: n, numbered: true}, own: instruction == "", askedMS: s.outMS, due: time.Now().Add(promptAfter),
		prompt: strings.TrimSpace(instruction + "\n" + speakNow)}
	if s.waiting = append(s.waiting, p); instruction != "" || !s.customerSpoke && !s.busy() {
		s.ask(p)
	}
}

func (s *Decided) ask(p *speech) {
	p.prompted, p.due = true, time.Now().Add(stalledAfter)
	s.vendor.Prompt(p.prompt)
}

// begin is a speech that begins. The lock is held.
func (s *Decided) begin() (p *speech) {
	if len(s.waiting) > 0 {
		p, s.waiting = s.waiting[0], s.waiting[1:]
		return p
	}
	p = &speech{began: time.Now()}
	s.unasked = append(s.unasked, p)
	s.Tell(ai.RealtimeEvent{Kind: ai.RealtimeBegan})
	return p
}

// withdraw takes back that the oldest speech has begun, if that was not told: nobody listens to a session that stands by. The lock is
// held.
func (s *Decided) withdraw() {
	if begun := s.untold(ai.RealtimeBegan); len(begun) == len(s.unasked) {
		s.untell(begun[0])
	}
}

// Cut implements ai.RealtimeSession. The model falls silent by itself when somebody speaks; the rest of what is cut all the same is not
// heard.
func (s *Decided) Cut(n int, _ time.Duration, text string) {
	s.Lock()
	defer s.Unlock()
	is := func(p *speech) bool { return p != nil && p.numbered && p.n == n }
	if i := slices.IndexFunc(s.waiting, is); i >= 0 {
		s.finish(&s.waiting[i].reply, nil)
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return
	}
	s.void(is, "No result is known: the answer for which it was called was broken off.")
	for _, p := range []*speech{s.past, s.speech} {
		if is(p) && !p.cut {
			s.finish(&p.reply, nil)
			p.cut = true
			s.vendor.Note(heardOnly(text))
		}
	}
}

// Sound takes the model's sound, which is silence for the most part, from a place of the server's timeline on. The lock is held.
func (s *Decided) Sound(fromMS int, pcm []int16) {
	s.lacks(fromMS - s.outMS)
	sum := 0
	for _, v := range pcm {
		sum += max(int(v), -int(v))
	}
	ms, loud := len(pcm)*1000/int(s.rate), sum > silentLevel*len(pcm)
	s.outMS, s.came = s.outMS+ms, time.Now()
	if loud {
		s.resumes(s.outMS)
		s.loudMS = s.outMS
	}
	if s.speech == nil && loud {
		s.complete()
		s.speech, s.customerSpoke = s.begin(), false
		s.speech.fromMS = s.outMS - ms
		for _, w := range s.ahead {
			s.text(s.speech, w)
		}
		s.ahead = nil
	}
	if p := s.speech; p != nil {
		s.say(&p.reply, ai.RealtimeEvent{Kind: ai.RealtimeSound, PCM: pcm})
		if p.quietMS += ms; loud {
			p.quietMS = 0
		}
		if p.quietMS >= endSilenceMS {
			s.over()
		}
	}
}

// lacks takes silence that the server has left out before the next of the model's sound.
func (s *Decided) lacks(ms int) {
	if s.outMS += max(ms, 0); ms <= 0 || s.speech == nil {
		return
	}
	p := s.speech
	if p.quietMS += ms; p.quietMS >= endSilenceMS {
		s.over()
	} else if ms >= roundingMS {
		s.say(&p.reply, ai.RealtimeEvent{Kind: ai.RealtimeSound, PCM: make([]int16, ms*int(s.rate)/1000)})
	}
}

// Words takes a piece of what the model says, with its place on the server's timeline; tillMS is 0 where that isn't known. The lock is
// held.
func (s *Decided) Words(text string, fromMS, tillMS int) {
	w := words{text, fromMS, tillMS}
	switch s.resumes(fromMS); {
	case s.past != nil && fromMS < s.past.untilMS: // it comes after its sound
		s.text(s.past, w)
	case s.speech != nil:
		s.speech.quietMS = 0
		s.text(s.speech, w)
	default:
		s.ahead = append(s.ahead, w)
	}
}

func (s *Decided) text(p *speech, w words) {
	at := 0
	if w.tillMS > 0 {
		at = max(w.tillMS-p.fromMS, 1)
	}
	s.say(&p.reply, ai.RealtimeEvent{Kind: ai.RealtimeText, Text: w.text, At: time.Duration(at) * time.Millisecond})
}

// Heard takes words of the customer's, from a place of the server's timeline. The lock is held.
func (s *Decided) Heard(text string, fromMS int) {
	s.recognition.take(s.recognition.at(fromMS), text, "", "", time.Now())
}

// resumes ends the speech that is under way if the model has been silent in it since the customer said something: what it says at this
// place of the timeline is the answer.
func (s *Decided) resumes(atMS int) {
	if s.speech == nil || !s.customerSpoke {
		return
	}
	// silence is left out, and text isn't only ahead
	left := atMS-s.outMS >= interruptedSilenceMS && time.Since(s.came) >= interruptedSilenceMS*time.Millisecond
	if left || s.speech.quietMS >= interruptedSilenceMS {
		s.over()
	}
}

// over ends the sound of the speech that is under way, and with it what was asked for while it was: whatever the model has to say, it has
// gone on with that.
func (s *Decided) over() {
	s.complete()
	s.past, s.speech = s.speech, nil
	s.past.untilMS, s.past.overAt = s.outMS, time.Now()
	s.waiting = slices.DeleteFunc(s.waiting, func(p *speech) bool {
		in := p.own && !p.prompted && p.askedMS < s.loudMS
		if in {
			s.finish(&p.reply, nil)
		}
		return in
	})
}

// complete ends the speech whose sound is over: no more of its text is waited for.
func (s *Decided) complete() {
	if s.past != nil {
		s.finish(&s.past.reply, nil)
		s.past = nil
	}
}

// passes settles what is due, under the lock: sound never stops, as the model's time is that of what it hears.
func (s *Decided) passes(now time.Time) {
	if s.wrote.IsZero() {
		s.wrote = now // nobody has spoken yet
	}
	if lacks := now.Sub(s.wrote); lacks >= sendSilenceAfter {
		s.hears(make([]int16, int(lacks.Milliseconds())*int(s.rate)/1000), now)
	}
	if s.speech != nil && now.Sub(s.came) >= endWithoutSound { // the server leaves silence out
		s.over()
	}
	if s.past != nil && now.Sub(s.past.overAt) >= textAfterSound {
		s.complete()
	}
	s.recognition.settle(now)
	if len(s.unasked) > 0 && now.Sub(s.unasked[0].began) >= unaskedAfter {
		s.withdraw()
		p := s.unasked[0]
		p.cut, p.told, p.events, s.unasked = true, true, nil, s.unasked[1:]
		s.void(func(c *speech) bool { return c == p }, "It was not done.")
		s.vendor.Note("What you said just now was not heard")
	}
	s.awake(now)
	if len(s.waiting) == 0 || now.Before(s.waiting[0].due) || s.speech != nil || s.busy() {
		return
	}
	p := s.waiting[0]
	if !p.prompted {
		s.ask(p)
		return
	}
	s.finish(&p.reply, &ai.Error{Kind: ai.Stalled, Err: errors.New("the model said nothing")})
	s.waiting = s.waiting[1:]
}
