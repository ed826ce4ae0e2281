package aitest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

// RealtimeVendor is what ConformSession needs of a vendor: its server, and its models at it.
type RealtimeVendor struct {
	Server interface {
		RealtimeServer
		Inject(raw string)
	}
	Manner RealtimeManner
	// Model opens a model; an empty key or code is one that the server knows.
	Model func(t *testing.T, key, code string) ai.RealtimeModel
	// Tones is the voice that the server speaks with, and by which it understands what nothing is scripted for.
	Tones *Synthesizer
	// Drop ends all connections with a close code; 0 resets their sockets. Expire does what happens when a session has
	// lasted as long as it may.
	Drop   func(code int)
	Expire func()
	// Moves: a session goes on when its connection expires.
	Moves bool
	// Strange are messages about replies, utterances and calls that nobody knows, and of kinds that nobody knows.
	Strange []string
	// Speak has a model that decides by itself say what is scripted next; HeardMS is how much sound the latest session was sent.
	Speak   func()
	HeardMS func() int
}

// sessionCase is a case.
type sessionCase struct {
	name string
	run  func(c *trial)
}

// undecidedCases are those of sessionCases that take a model which waits until it is asked, says all that it is asked for, and can be cut
// off.
var undecidedCases = []string{"an utterance in a reply", "two utterances, one reply", "a call while it speaks",
	"cut: nothing comes after it",
	"cut: twice, and of nobody", "cut: before it was asked for", "usage is counted once", "usage of a reply that was cut"}

// casesFor are the cases that apply to a vendor.
func casesFor(m RealtimeManner) []sessionCase {
	if !m.Decides {
		return sessionCases
	}
	return append(slices.DeleteFunc(slices.Clone(sessionCases), func(o sessionCase) bool {
		return slices.Contains(undecidedCases, o.name)
	}), decidedCases...)
}

// sessionCases are the cases, each at both rates: what a session does beside talking, which ConformRealtime checks.
var sessionCases = []sessionCase{
	{"refused: wrong key", func(c *trial) { c.refused("leak-7f3a", "", "", Behaviour{}, ai.Config) }},
	{"refused: unknown model", func(c *trial) { c.refused("", "nobody-1", "", Behaviour{}, ai.Config) }},
	{"refused: unknown voice", func(c *trial) { c.refused("", "", "nobody", Behaviour{}, ai.Config) }},
	{"refused: too many", func(c *trial) { c.refused("", "", "", Behaviour{Status: 429, RetryAfter: "3"}, ai.RateLimited) }},
	{"refused: overloaded", func(c *trial) { c.refused("", "", "", Behaviour{Status: 503}, ai.Overloaded) }},
	{"given up before it opens", (*trial).givenUp},
	{"closed by us", func(c *trial) { s := c.open(); s.Close(); c.left(1000) }},
	{"closed twice", func(c *trial) { s := c.open(); s.Close(); s.Close(); c.left(1000) }},
	{"closed by its context", (*trial).cancelled},
	{"closed in the middle of a reply", (*trial).closedInReply},
	{"closed in the middle of an utterance", func(c *trial) { s := c.open(); s.Write(c.tone("hello")); s.Close(); c.left(1000) }},
	{"ended by 1000", func(c *trial) { c.ends(1000) }},
	{"ended by 1001", func(c *trial) { c.ends(1001) }},
	{"ended by 1011", func(c *trial) { c.ends(1011) }},
	{"broken off", func(c *trial) { c.ends(0) }},
	{"broken off in the middle of a reply", (*trial).brokenInReply},
	{"expired", (*trial).expired},
	{"no JSON", func(c *trial) { c.malformed(`{"type": nonsense`) }},
	{"no object", func(c *trial) { c.malformed(`"text"`) }},
	{"an empty message", func(c *trial) { c.ignored("{}") }},
	{"unknown messages and ids", func(c *trial) { c.ignored(c.v.Strange...) }},
	{"unknown messages in a reply", (*trial).ignoredInReply},
	{"sound both ways", (*trial).sounds},
	{"two utterances, one reply", (*trial).twoUtterances},
	{"an utterance of nothing", (*trial).nothing},
	{"an utterance in a reply", (*trial).speechInReply},
	{"a call while it speaks", (*trial).callWhileSpeaking},
	{"several calls", (*trial).severalCalls},
	{"a call without words", (*trial).callAlone},
	{"a result after more was said", (*trial).lateResult},
	{"cut: nothing comes after it", (*trial).cutIsQuiet},
	{"cut: twice, and of nobody", (*trial).cutTwice},
	{"cut: after all of it was heard", (*trial).cutAfterAll},
	{"cut: before it was asked for", (*trial).cutUnasked},
	{"usage is counted once", (*trial).counted},
	{"usage of a reply that was cut", (*trial).countedCut},
	{"nothing used", func(c *trial) { s := c.open(); s.Close(); c.tallied(s) }},
}

// ConformSession checks a vendor's sessions against sessionCases.
func ConformSession(t *testing.T, open func(t *testing.T) RealtimeVendor) {
	cases := casesFor(open(t).Manner)
	for _, rate := range []audio.Rate{audio.Narrow, audio.Wide} {
		for _, o := range cases {
			t.Run(fmt.Sprintf("%d Hz, %s", rate, o.name), func(t *testing.T) {
				t.Parallel()
				o.run(&trial{T: t, v: open(t), rate: rate})
			})
		}
	}
}

// trial is a case.
type trial struct {
	*testing.T
	v    RealtimeVendor
	rate audio.Rate
}

func (c *trial) setup() ai.RealtimeSetup {
	return ai.RealtimeSetup{System: "You are a baker.", Voice: cmp.Or(c.v.Manner.Voice, "marin"), Language: "en", Rate: c.rate,
		Tools: []ai.Tool{{Name: "order", Description: "Orders", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
			{Name: "price", Description: "Tells prices", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}}
}

func (c *trial) open() *talk { return c.openIn(c.Context()) }

func (c *trial) openIn(ctx context.Context) *talk {
	c.Helper()
	tally := new(ai.Tally)
	s, err := c.v.Model(c.T, "", "").Connect(ai.Tallied(ctx, tally), c.setup())
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(s.Close)
	return &talk{T: c.T, RealtimeSession: s, tally: tally, s: c.v.Server, manner: c.v.Manner, rate: c.rate,
		texts: map[int]string{}, sounds: map[int]int{}, heard: map[int]string{}}
}

// tone is the sound of a text, by which the server understands it.
func (c *trial) tone(text string) []int16 { return c.v.Tones.tone(text, 1, c.rate) }

// stray counts what comes of a reply that was cut.
func (c *talk) stray(e ai.RealtimeEvent) {
	if c.cuts != 0 && e.N == c.cuts {
		c.after++
	}
}

func (c *trial) refused(key, code, voice string, b Behaviour, want ai.Kind) {
	if b.Status != 0 {
		c.v.Server.ScriptRealtime(b)
	}
	setup := c.setup()
	setup.Voice = cmp.Or(voice, setup.Voice)
	s, err := c.v.Model(c.T, key, code).Connect(c.Context(), setup)
	if err == nil {
		s.Close()
		c.Fatal("it opened")
	}
	var failure *ai.Error
	if !errors.As(err, &failure) || failure.Kind != want || failure.Part != ai.TheModel {
		c.Errorf("%v, want %s", err, want)
	}
	if b.RetryAfter != "" && failure.RetryAfter != 3*time.Second {
		c.Errorf("it may be asked again after %v", failure.RetryAfter)
	}
	if key != "" && strings.Contains(err.Error(), key) {
		c.Error("the error shows the key")
	}
}

func (c *trial) givenUp() {
	reason := errors.New("the call ended")
	ctx, cancel := context.WithCancelCause(c.Context())
	cancel(reason)
	if _, err := c.v.Model(c.T, "", "").Connect(ctx, c.setup()); !errors.Is(err, reason) {
		c.Error(err)
	}
}

// left waits until the client has left the last session, with this code.
func (c *trial) left(code int) {
	c.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		list := c.v.Server.Conversations()
		if last := list[len(list)-1]; last.Over {
			if last.Left != code {
				c.Errorf("the client left with %d, not %d", last.Left, code)
			}
			return
		}
		if time.Now().After(end) {
			c.Fatal("the client has not left")
		}
	}
}

func (c *trial) cancelled() {
	ctx, cancel := context.WithCancel(c.Context())
	s := c.openIn(ctx)
	cancel()
	for e := range s.Events() {
		c.Errorf("%+v", e)
	}
	c.left(1000)
}

// replies has a long reply begin, of which some sound has come.
func (c *trial) replies(s *talk, n int) {
	c.v.Server.ScriptRealtime(Behaviour{Text: "We have bread and rolls and cakes and pies.", TokenDelay: 20 * time.Millisecond})
	s.Respond(n, "", false)
	s.until(ai.RealtimeSound, n)
}

func (c *trial) closedInReply() {
	s := c.open()
	c.replies(s, 1)
	s.Close()
	c.left(1000)
	s.afterwards()
}

// lost waits for the session's end.
func (c *trial) lost(s *talk, want ai.Kind) {
	c.Helper()
	e := s.until(ai.RealtimeLost, 0)
	var failure *ai.Error
	if !errors.As(e.Err, &failure) || failure.Kind != want || failure.Part != ai.TheModel {
		c.Errorf("%v, want %s", e.Err, want)
	}
	s.afterwards()
}

func (c *trial) ends(code int) {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "Yes."})
	s.Respond(1, "", false)
	s.until(ai.RealtimeDone, 1)
	c.v.Drop(code)
	c.lost(s, ai.Interrupted)
}

func (c *trial) brokenInReply() {
	s := c.open()
	c.replies(s, 1)
	c.v.Drop(0)
	c.lost(s, ai.Interrupted)
}

func (c *trial) expired() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "Yes."}, Behaviour{Text: "Still here."})
	s.Respond(1, "", false)
	s.until(ai.RealtimeDone, 1)
	before := len(c.v.Server.Conversations())
	c.v.Expire()
	if !c.v.Moves {
		c.lost(s, ai.Interrupted)
		return
	}
	for end := time.Now().Add(10 * time.Second); len(c.v.Server.Conversations()) == before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.Fatal("the session has not moved")
		}
	}
	s.Respond(2, "", false)
	s.until(ai.RealtimeDone, 2)
	if s.texts[2] != "Still here." {
		c.Errorf("%q", s.texts[2])
	}
}

func (c *trial) malformed(raw string) {
	s := c.open()
	c.v.Server.Inject(raw)
	c.lost(s, ai.Malformed)
	c.left(1000)
}

// talks checks that a session still does what it should.
func (c *trial) talks(s *talk) {
	c.Helper()
	c.v.Server.ScriptRealtime(Behaviour{Text: "We open at nine."})
	s.says("when do you open")
	s.Respond(91, "", false)
	if e := s.until(ai.RealtimeDone, 91); e.Err != nil {
		c.Error(e.Err)
	}
	s.understands(0, "when do you open")
	if s.texts[91] != "We open at nine." || len(s.calls) > 0 || len(s.texts) != 1 || len(s.heard) != 1 {
		c.Errorf("it said %v, heard %v and called %v", s.texts, s.heard, s.calls)
	}
}

func (c *trial) ignored(raw ...string) {
	s := c.open()
	for _, one := range raw {
		c.v.Server.Inject(one)
	}
	c.talks(s)
	s.holds("user message when do you open", "assistant message We open at nine.")
}

func (c *trial) ignoredInReply() {
	s := c.open()
	c.replies(s, 1)
	for _, one := range c.v.Strange {
		c.v.Server.Inject(one)
	}
	s.until(ai.RealtimeDone, 1)
	if s.texts[1] != "We have bread and rolls and cakes and pies." || len(s.calls)+len(s.heard) > 0 || len(s.texts) != 1 {
		c.Errorf("it said %v, heard %v and called %v", s.texts, s.heard, s.calls)
	}
}

// sounds has tones go both ways: each side knows the other's.
func (c *trial) sounds() {
	s := c.open()
	c.v.Tones.Pitch("two loaves please")
	c.v.Server.ScriptRealtime(Behaviour{Text: "Two it is then."})
	for sound, frame := c.tone("two loaves please"), c.rate.FrameSize(); len(sound) > 0; {
		n := min(frame, len(sound))
		s.Write(sound[:n])
		sound = sound[n:]
	}
	s.End()
	s.Respond(1, "", false)
	s.until(ai.RealtimeDone, 1)
	s.understands(0, "two loaves please")
	for len(s.pcm) > 0 && s.pcm[len(s.pcm)-1] == 0 { // a pause, of which nobody knows yet that it is the end
		s.pcm = s.pcm[:len(s.pcm)-1]
	}
	if got := c.v.Tones.Find(s.pcm, c.rate); got != "Two it is then." {
		c.Errorf("the sound is that of %q", got)
	}
}

func (c *trial) twoUtterances() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "Both, then."})
	s.says("one roll")
	s.understands(0, "one roll")
	s.says("and one pie")
	s.Respond(1, "", false)
	s.until(ai.RealtimeDone, 1)
	s.understands(1, "and one pie")
	if got := strings.Join(s.items(), "|"); !strings.Contains(got, "one roll") || !strings.Contains(got, "and one pie") {
		c.Errorf("the server holds %q", got)
	}
}

func (c *trial) nothing() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "Are you there?"})
	s.End()
	s.Respond(1, "", false)
	s.until(ai.RealtimeDone, 1)
	s.understands(0, "")
	if s.texts[1] != "Are you there?" {
		c.Errorf("it said %q", s.texts[1])
	}
}

// speechInReply: what is said over a reply is no interruption until the reply is cut.
func (c *trial) speechInReply() {
	s := c.open()
	c.replies(s, 1)
	s.says("mhm")
	s.until(ai.RealtimeDone, 1)
	s.understands(0, "mhm")
	if s.texts[1] != "We have bread and rolls and cakes and pies." {
		c.Errorf("it said %q", s.texts[1])
	}
}

func (c *trial) callWhileSpeaking() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "Let me see.", Calls: []ai.ToolCall{{Name: "price", Arguments: `{"of":"rye"}`}}},
		Behaviour{Text: "Three euros."})
	s.Respond(1, "", false)
	call := s.until(ai.RealtimeCall, 1).Call
	if s.texts[1] != "Let me see." || call.Name != "price" || call.Arguments != `{"of":"rye"}` || s.sounds[1] == 0 {
		c.Errorf("it said %q and called %+v", s.texts[1], call)
	}
	s.Result(call.ID, "3 EUR") // before the reply is over
	s.until(ai.RealtimeDone, 1)
	s.Respond(2, "", false)
	s.until(ai.RealtimeDone, 2)
	if s.texts[2] != "Three euros." {
		c.Errorf("%q", s.texts[2])
	}
	s.holds("assistant message Let me see.", "function_call", "function_call_output 3 EUR", "assistant message Three euros.")
}

func (c *trial) severalCalls() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Calls: []ai.ToolCall{{Name: "price", Arguments: `{"n":1}`}, {Name: "order", Arguments: `{"n":2}`}}},
		Behaviour{Text: "Ordered, for three euros."})
	s.says("order one if it is cheap")
	s.Respond(1, "", false)
	s.until(ai.RealtimeDone, 1)
	if len(s.calls) != 2 || s.calls[0].Name != "price" || s.calls[1].Name != "order" || s.calls[1].Arguments != `{"n":2}` ||
		s.calls[0].ID == s.calls[1].ID {
		c.Fatalf("%+v", s.calls)
	}
	for i := range s.calls { // the last is answered first
		s.Result(s.calls[1-i].ID, "result "+s.calls[1-i].Name)
	}
	s.Respond(2, "", false)
	s.until(ai.RealtimeDone, 2)
	got := strings.Join(s.items(), "|")
	if s.texts[2] != "Ordered, for three euros." || strings.Count(got, "result price") != 1 || strings.Count(got, "result order") != 1 {
		c.Errorf("it said %q; the server holds %q", s.texts[2], got)
	}
}

func (c *trial) callAlone() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Calls: []ai.ToolCall{{Name: "order", Arguments: `{}`}}})
	s.Respond(1, "", false)
	if e := s.until(ai.RealtimeDone, 1); e.Err != nil || len(s.calls) != 1 || s.texts[1] != "" || s.sounds[1] > 0 {
		c.Errorf("%+v, %v, %q", e, s.calls, s.texts[1])
	}
}

func (c *trial) lateResult() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Calls: []ai.ToolCall{{Name: "order", Arguments: `{}`}}}, Behaviour{Text: "It is done."})
	s.Respond(1, "", false)
	s.until(ai.RealtimeDone, 1)
	s.says("is it done")
	s.Result(s.calls[0].ID, "order 5 placed")
	s.Respond(2, "", false)
	s.until(ai.RealtimeDone, 2)
	if got := strings.Join(s.items(), "|"); strings.Count(got, "order 5 placed") != 1 || !strings.Contains(got, "is it done") {
		c.Errorf("the server holds %q", got)
	}
}

func (c *trial) cutIsQuiet() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: strings.Repeat("We have bread and rolls and cakes and pies. ", 10),
		TokenDelay: 20 * time.Millisecond})
	s.Respond(1, "", false)
	s.until(ai.RealtimeSound, 1)
	s.Cut(1, 100*time.Millisecond, "We")
	s.cuts = 1
	s.until(ai.RealtimeDone, 1)
	c.v.Server.ScriptRealtime(Behaviour{Text: "Yes?"})
	s.Respond(2, "", false)
	s.until(ai.RealtimeDone, 2)
	// What had come before the cut is still delivered: as much as the channel holds, and what one message tells.
	if s.after > 24 {
		c.Errorf("%d events of the reply came after it was cut", s.after)
	}
	if n := s.sounds[1] * 1000 / int(c.rate); n > 4000 {
		c.Errorf("%d ms of the reply came", n)
	}
}

func (c *trial) cutTwice() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "We have bread and rolls."})
	s.Respond(1, "", false)
	s.until(ai.RealtimeDone, 1)
	s.Cut(7, time.Second, "Nothing.")
	s.Cut(1, 500*time.Millisecond, "We have")
	s.Cut(1, 0, "")
	s.holds(cut{"We have bread and rolls.", "We have"})
	c.v.Server.ScriptRealtime(Behaviour{Text: "Yes."})
	s.Respond(2, "", false)
	s.until(ai.RealtimeDone, 2)
	s.holds(cut{"We have bread and rolls.", "We have"}, "assistant message Yes.")
}

func (c *trial) cutAfterAll() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "We have bread."})
	s.Respond(1, "", false)
	s.until(ai.RealtimeDone, 1)
	s.Cut(1, time.Minute, "We have bread.")
	c.v.Server.ScriptRealtime(Behaviour{Text: "Yes."})
	s.Respond(2, "", false)
	s.until(ai.RealtimeDone, 2)
	if got := strings.Join(s.items(), "|"); !strings.Contains(got, "assistant message We have bread.") {
		c.Errorf("the server holds %q", got)
	}
}

func (c *trial) cutUnasked() {
	s := c.open()
	c.replies(s, 1)
	s.Respond(2, "", false)
	s.Cut(2, 0, "")
	s.until(ai.RealtimeDone, 1)
	c.v.Server.ScriptRealtime(Behaviour{Text: "Yes."})
	s.Respond(3, "", false)
	s.until(ai.RealtimeDone, 3)
	if s.texts[2] != "" || s.texts[3] != "Yes." {
		c.Errorf("%v", s.texts)
	}
}

// tallied compares what was spent with what the session's events told.
func (c *trial) tallied(s *talk) {
	c.Helper()
	var in, out int
	for _, u := range s.tally.Uses() {
		if u.Part == ai.TheModel {
			in, out = in+u.In+u.AudioIn, out+u.Out+u.AudioOut
		}
	}
	if in != s.used.In || out != s.used.Out {
		c.Errorf("%d and %d tokens were spent, and %d and %d told", in, out, s.used.In, s.used.Out)
	}
}

func (c *trial) counted() {
	s := c.open()
	for n := range 3 {
		c.v.Server.ScriptRealtime(Behaviour{Text: "Yes."})
		s.says("hello")
		s.Respond(n, "", false)
		s.until(ai.RealtimeDone, n)
	}
	once := s.used
	s.Close()
	c.tallied(s)
	if once.In == 0 || once.Out == 0 || once.In%3 != 0 || once.Out%3 != 0 {
		c.Errorf("three equal replies used %+v", once)
	}
}

func (c *trial) countedCut() {
	s := c.open()
	c.replies(s, 1)
	s.Cut(1, 0, "")
	s.until(ai.RealtimeDone, 1)
	s.Close()
	c.tallied(s)
}
