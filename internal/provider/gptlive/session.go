package gptlive

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/provider/rest"
	"parley/internal/provider/wire"
)

// session is an open conversation. Sound goes both ways all the time, and nobody says when a turn begins or ends: what the
// model says between two silences is a speech, to which the caller's number for a response is given.
type session struct {
	conn   *wire.Conn
	model  Model
	rate   audio.Rate
	names  rest.Names
	tally  *ai.Tally // of the call
	ctx    context.Context
	cancel context.CancelFunc
	out    chan ai.RealtimeEvent
	done   chan struct{}
	closed chan struct{} // the server has closed the session
	bell   chan struct{} // there are events to be told
	expiry time.Time
	box    wire.Outbox

	mu      sync.Mutex
	events  []*ai.RealtimeEvent // not told yet
	wrote   time.Time           // up to when there was sound
	heardMS int                 // of sound that was sent
	said    []*utterance        // that the customer has ended, and the one that is under way
	ended   int                 // how many of them are over

	speech  *speech   // that is under way
	unbound []*speech // that nobody has asked for yet
	slots   []slot    // that no speech has come for yet
	answers bool      // the customer has said something since the model spoke
	ahead   []*event  // text of a speech whose sound has not come yet
	past    *speech   // whose sound is over; more of its text may come
	pastMS  int       // where its sound was over,
	pastAt  time.Time // and when
	loudMS  int       // where the latest sound was that is not silence
	outMS   int       // of the session's timeline, up to where the model's sound has come
	came    time.Time // the latest sound
	billed  time.Duration
	running int                      // responses of the thinker
	resumed bool                     // it was asked to go on, and has not begun to
	thought time.Time                // when it was last heard of
	pending map[string][]ai.ToolCall // calls of responses that are not complete, by the delegation's ID
	open    map[string]*speech       // calls whose results are waited for
	owed    bool                     // the thinker was told results since it was last asked to go on
}

// utterance is what the customer says between two Ends.
type utterance struct {
	text    string
	untilMS int       // where it ends on the session's timeline
	touched time.Time // when it ended, or its text changed
	final   bool
}

// speech is something that the model says. Its events wait until it has a number.
type speech struct {
	n       int
	bound   bool
	began   time.Time
	cut     bool // nobody hears the rest
	fromMS  int  // where its sound begins
	quietMS int
	events  []ai.RealtimeEvent
}

// slot is a response that was asked for.
type slot struct {
	n      int
	due    time.Time // when the model is asked to speak, where it doesn't by itself
	prompt string
	asked  bool
	own    bool // there is no instruction
	fromMS int  // of the model's sound, when it was asked for
}

const (
	tick     = 50 * time.Millisecond
	gap      = 100 * time.Millisecond  // without sound, after which silence is sent in its place
	quiet    = 800                     // ms of silence that end a speech: a pause between sentences is shorter
	breath   = 200                     // ms of silence that end one if the customer has said something over it
	mute     = 1200 * time.Millisecond // without sound end one: silence may be left out
	trails   = 300 * time.Millisecond  // so long after its sound a speech's text may come
	rounding = 20                      // ms of the timeline that are no silence left out
	faint    = 40                      // mean amplitude up to which sound is silence
	settles  = 800 * time.Millisecond  // after which the text of an utterance is final,
	deaf     = 4 * time.Second         // or that there is none
	lateMS   = 700                     // so long after an utterance its words may still be dated
	hesitate = 4 * time.Second         // so long the model is waited for before it is asked to speak
	silent   = 12 * time.Second        // and so long in all
	unheard  = 5 * time.Second         // so long what the model says by itself waits for somebody to ask for it
	lost     = time.Minute             // after which a thinker of which nothing is heard counts as gone
	piece    = 400                     // characters of an append: the server takes 500 tokens
)

const speakNow = "[Speak to the customer now, without waiting for them. Then listen.]"

// Events implements ai.RealtimeSession.
func (s *session) Events() <-chan ai.RealtimeEvent { return s.out }

// Close implements ai.RealtimeSession.
func (s *session) Close() {
	s.cancel()
	for range s.out { // nobody reads it any more
	}
	<-s.done
}

// Write implements ai.RealtimeSession. The model hears all that there is, also between utterances.
func (s *session) Write(pcm []int16) {
	s.mu.Lock()
	s.wrote, s.heardMS = time.Now(), s.heardMS+len(pcm)*1000/int(s.rate)
	s.mu.Unlock()
	s.box.Sound(pcm)
}

// utter is the utterance that is under way. The lock is held.
func (s *session) utter() *utterance {
	if len(s.said) == s.ended {
		s.said = append(s.said, &utterance{})
	}
	return s.said[s.ended]
}

// End implements ai.RealtimeSession.
func (s *session) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.utter()
	s.ended, u.untilMS, u.touched, s.answers = s.ended+1, s.heardMS, time.Now(), true
}

// Forget implements ai.RealtimeSession: what was heard can't be taken back.
func (s *session) Forget(int) {}

// Say implements ai.RealtimeSession: a Reader's session does that.
func (s *session) Say(int, string) {}

// Add implements ai.RealtimeSession.
func (s *session) Add(_ int, messages ...ai.Message) {
	for _, m := range messages {
		switch {
		case m.Role == ai.ToolRole:
			s.note("The tool has answered: " + m.Text)
		case m.Role == ai.Assistant && m.Text != "":
			s.note("This was said to the customer in your voice: “" + m.Text + "”")
		case m.Text != "":
			s.note("From the customer's side: " + m.Text)
		}
		for _, c := range m.Calls {
			s.note("The tool " + c.Name + " was called with " + c.Arguments)
		}
	}
}

// note tells the model something that it isn't to say.
func (s *session) note(text string) { s.append("thinking", "["+text+"]") }

func (s *session) append(kind, text string) {
	for r := []rune(text); len(r) > 0; {
		n := min(piece, len(r))
		for at := n; n < len(r) && at > piece/2; at-- { // between words
			if r[at-1] == ' ' {
				n = at
				break
			}
		}
		s.box.Send(map[string]any{"type": "session." + kind + ".append", "delegation_id": nil, "content": string(r[:n])})
		r = r[n:]
	}
}

// Respond implements ai.RealtimeSession: the response is what the model says next, or has begun to say. It is asked to
// speak where it has no reason of its own, or hesitates.
func (s *session) Respond(n int, instruction string, _ bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unbound) > 0 {
		s.withdraw() // what was asked for need not be asked for again
		s.bind(s.unbound[0], n)
		s.unbound = s.unbound[1:]
		if instruction != "" { // it is late for this
			s.note(instruction)
		}
		return
	}
	o := slot{n: n, own: instruction == "", fromMS: s.outMS, due: time.Now().Add(hesitate),
		prompt: strings.TrimSpace(instruction + "\n" + speakNow)}
	if instruction != "" || !s.answers && !s.busy() {
		s.ask(&o)
	}
	s.slots = append(s.slots, o)
}

func (s *session) ask(o *slot) {
	o.asked, o.due = true, time.Now().Add(silent)
	s.append("commentary", o.prompt)
}

// bind gives a speech its number. The lock is held.
func (s *session) bind(p *speech, n int) {
	p.n, p.bound = n, true
	for _, e := range p.events {
		e.N = n
		s.tell(e)
	}
	p.events = nil
}

// say tells an event of a speech. The lock is held.
func (s *session) say(p *speech, e ai.RealtimeEvent) {
	switch e.N = p.n; {
	case p.cut:
	case p.bound:
		s.tell(e)
	default:
		p.events = append(p.events, e)
	}
}

// begin is a speech that begins. The lock is held.
func (s *session) begin() *speech {
	p := &speech{began: time.Now()}
	s.answers = false
	if len(s.slots) > 0 {
		s.bind(p, s.slots[0].n)
		s.slots = s.slots[1:]
		return p
	}
	s.unbound = append(s.unbound, p)
	s.tell(ai.RealtimeEvent{Kind: ai.RealtimeBegan})
	return p
}

// Result implements ai.RealtimeSession. The thinker goes on once it has all results.
func (s *session) Result(callID, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result(callID, result)
}

// result is Result under the lock.
func (s *session) result(callID, result string) {
	if s.open[callID] == nil {
		s.note("The tool has answered: " + result)
		return
	}
	delete(s.open, callID)
	s.box.Send(map[string]any{"type": "response.item.create", "item": map[string]any{"type": "function_call_output",
		"call_id": callID, "output": result}})
	s.owed = true
	s.goOn()
}

// goOn asks the thinker to go on once it has all results, and none of its responses is under way. The lock is held.
func (s *session) goOn() {
	if s.owed && len(s.open) == 0 && s.running == 0 {
		s.owed, s.resumed, s.thought = false, true, time.Now()
		s.box.Send(map[string]any{"type": "response.create"})
	}
}

// busy reports whether the thinker has something to do, or waits for a tool. The lock is held.
func (s *session) busy() bool { return s.running > 0 || s.resumed || len(s.open) > 0 }

// drop forgets a speech that nobody hears. The thinker waits for results of its calls no longer: it is told why there are none. The
// lock is held.
func (s *session) drop(p *speech, why string) {
	p.cut, p.events = true, nil
	for _, id := range slices.Sorted(maps.Keys(s.open)) {
		if s.open[id] == p {
			s.result(id, why)
		}
	}
}

// Cut implements ai.RealtimeSession. The model falls silent by itself when somebody speaks; the rest of what is cut all the same is
// not heard.
func (s *session) Cut(n int, _ time.Duration, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.slots, func(o slot) bool { return o.n == n }); i >= 0 {
		s.slots = slices.Delete(s.slots, i, i+1)
		s.tell(ai.RealtimeEvent{Kind: ai.RealtimeDone, N: n})
		return
	}
	for _, p := range s.open {
		if p.bound && p.n == n {
			s.drop(p, "No result is known: the answer for which it was called was broken off.")
			break
		}
	}
	for _, p := range []*speech{s.past, s.speech} {
		if p != nil && p.bound && p.n == n && !p.cut {
			s.say(p, ai.RealtimeEvent{Kind: ai.RealtimeDone})
			p.cut = true
			s.note(fmt.Sprintf("Of what you said last the customer has heard only: “%s”", text))
		}
	}
}

// tell has an event told. The lock is held.
func (s *session) tell(e ai.RealtimeEvent) {
	s.events = append(s.events, &e)
	s.ring()
}

// ring has pass look at the events again.
func (s *session) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// withdraw takes back that the oldest speech has begun, if that was not told: nobody listens to a session that stands by. The lock is held.
func (s *session) withdraw() {
	var begun []*ai.RealtimeEvent
	for _, e := range s.events {
		if e.Kind == ai.RealtimeBegan {
			begun = append(begun, e)
		}
	}
	if len(begun) == len(s.unbound) {
		s.forget(begun[0])
		s.ring()
	}
}

// forget removes an event from those that are not told yet. The lock is held.
func (s *session) forget(e *ai.RealtimeEvent) {
	if i := slices.Index(s.events, e); i >= 0 {
		s.events = slices.Delete(s.events, i, i+1)
	}
}

// pass tells events, in order, as soon as somebody listens.
func (s *session) pass() {
	for {
		var out chan ai.RealtimeEvent // nothing is sent while there is nothing to tell
		e := &ai.RealtimeEvent{}
		s.mu.Lock()
		if len(s.events) > 0 {
			out, e = s.out, s.events[0]
		}
		s.mu.Unlock()
		select {
		case out <- *e:
			s.mu.Lock()
			s.forget(e)
			s.mu.Unlock()
		case <-s.bell:
		case <-s.ctx.Done():
			return
		}
	}
}

// run keeps the session going until it ends.
func (s *session) run() {
	defer close(s.done)
	defer close(s.out)
	context.AfterFunc(s.ctx, s.leave)
	var wg sync.WaitGroup
	for _, f := range []func(){func() { s.box.Run(s.ctx) }, s.pass, s.keep} {
		crash.Go(&wg, f, func(err error) {
			slog.Error("a session with GPT-Live panicked", "error", err)
			s.conn.Close()
		})
	}
	err := crash.Run(s.read)
	ended := s.ctx.Err() != nil
	s.cancel()
	wg.Wait()
	if !ended {
		s.mu.Lock()
		s.complete() // no more of its text comes
		events := s.events
		s.mu.Unlock()
		for _, e := range events { // pass has ended
			s.out <- *e
		}
		s.out <- ai.RealtimeEvent{Kind: ai.RealtimeLost, Err: ai.TheModel.Of(err)}
	}
}

// leave ends the session in the server's words, waits for its last usage, and closes the connection.
func (s *session) leave() {
	if s.conn.Send(map[string]any{"type": "session.close"}) == nil {
		select {
		case <-s.closed:
		case <-time.After(closeTime):
		}
	}
	s.conn.Leave()
}

// accepted starts the session.
func (s *session) accepted(start any) error {
	s.box.Head, s.box.Tail, s.box.Piece = `{"type":"session.input_audio.append","audio":"`, `"}`, int(s.rate)/20*2
	if s.rate == audio.Narrow {
		s.box.Piece, s.box.Encode = int(s.rate)/20, audio.EncodeULaw
	}
	err := s.conn.Send(start)
	for started := false; err == nil && !started; {
		var e event
		if e, err = s.receive(); err == nil {
			switch e.Type {
			case "session.started":
				if started = true; e.Session.ExpiresAt > 0 {
					s.expiry = time.Unix(e.Session.ExpiresAt, 0)
				}
			case "error":
				err = e.Error.failure()
			}
		}
	}
	s.box.Resume(s.conn)
	return err
}

func (s *session) receive() (e event, err error) {
	raw, _, err := s.conn.Receive()
	if err == nil && json.Unmarshal(raw, &e) != nil {
		err = &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("no event: %.100q", raw)}
	}
	return e, err
}

func (s *session) decode(delta string) ([]int16, error) {
	raw, err := base64.StdEncoding.DecodeString(delta)
	if err != nil {
		return nil, &ai.Error{Kind: ai.Malformed, Err: err}
	}
	if s.rate == audio.Narrow {
		return audio.DecodeULaw(make([]int16, 0, len(raw)), raw), nil
	}
	return wire.Samples(raw), nil
}
