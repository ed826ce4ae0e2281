package voice_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/voice"
)

// louder is a Detector that takes any sound for speech.
type louder struct{}

func (louder) Detect(f audio.Frame) (bool, bool) { loud := audio.Level(f) > -40; return loud, loud }

func (louder) Sure() bool { return true }

func (louder) Words() float32   { return 0 }
func (louder) Cadence() float32 { return 0 }

// visited is a call on fake time to which a guest comes.
type visited struct {
	*testing.T
	model       *aitest.Fake
	synthesizer *aitest.Synthesizer
	session     *voice.Session
	customer    *handset
	guest       *handset
	is          *voice.Guest
	began       time.Time
	result      voice.Result
	far         sync.WaitGroup
}

// span is a time of a call, in seconds.
type span struct{ from, to float64 }

// visit plays a call in which both sides talk at times, and runs play in it; the call ends when play returns.
func visit(t *testing.T, customer, guest []span, steps []aitest.Step, play func(v *visited)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := &visited{T: t, model: &aitest.Fake{}, synthesizer: &aitest.Synthesizer{}, began: time.Now(),
			customer: newHandset(audio.Narrow, customerHz), guest: newHandset(audio.Wide, targetHz)}
		defer v.far.Wait()
		v.model.Script(steps...)
		recognizer := &aitest.Recognizer{Hear: func(pcm []int16, h ai.Hearing) string {
			if h.Rate == audio.Wide {
				return "the guest speaks"
			}
			return "the customer speaks"
		}}
		p := persona(v.model, v.synthesizer, recognizer)
		v.session = &voice.Session{Persona: p, Detect: func(audio.Rate) voice.Detector { return louder{} }}
		v.customer.talks, v.guest.talks = v.during(customer), v.during(guest)
		v.far.Go(func() {
			play(v)
			v.customer.Hangup()
		})
		v.result = v.session.Run(t.Context(), v.customer)
		late := &voice.Guest{Line: newHandset(audio.Wide, 1), Kind: parley.LegGuest}
		if err := v.session.Admit(late, parley.LegListen); err == nil {
			t.Error("somebody joins a call that is over")
		}
		if err := v.session.Whisper("Too late."); err == nil {
			t.Error("somebody whispers in a call that is over")
		}
	})
}

func (v *visited) during(spans []span) func() bool {
	return func() bool {
		now := time.Since(v.began).Seconds()
		return slices.ContainsFunc(spans, func(s span) bool { return now >= s.from && now < s.to })
	}
}

// until waits until a time of the call.
func (v *visited) until(seconds float64) {
	time.Sleep(time.Duration(seconds*float64(time.Second)) - time.Since(v.began))
}

// comes has the guest join.
func (v *visited) comes(mode parley.LegMode) {
	v.Helper()
	v.far.Go(func() { v.guest.Run(context.Background(), nil) })
	v.is = &voice.Guest{Line: v.guest, Kind: parley.LegSupervisor, Keys: func(byte) {}}
	if err := v.session.Admit(v.is, mode); err != nil {
		v.Error(err)
	}
}

func (v *visited) becomes(mode parley.LegMode) {
	v.Helper()
	if err := v.is.Change(mode); err != nil {
		v.Error(err)
	}
}

// hears is how loud a tone is in what a handset heard during a span; the handset's own time began at the second since.
func (h *handset) hears(s span, since, hz float64) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := func(sec float64) int { return min(max(int((sec-since)*float64(h.rate)), 0), len(h.heard)) }
	return loud(h.heard[at(s.from):at(s.to)], hz, h.rate)
}

// A supervisor listens, and nobody hears them. They whisper, and only the assistant is told. They take over, which
// stops the assistant at once, and hand back, and the assistant goes on. The transcript says who spoke.
func TestGuest(t *testing.T) {
	var v *visited
	long := strings.Repeat("It goes on and on and on. ", 20)
	visit(t, []span{{2, 3}, {9, 10}, {21, 22}}, []span{{5.5, 6}, {7, 8}, {18, 19.5}},
		[]aitest.Step{{Text: "Good."}, {Text: long}, {Text: "I am back."}}, func(now *visited) {
			v = now
			v.until(5)
			v.comes(parley.LegListen)
			v.until(6.5)
			v.becomes(parley.LegWhisper)
			v.until(15)
			v.becomes(parley.LegTakeOver)
			v.until(24)
			v.becomes(parley.LegListen)
			v.until(30)
		})
	if v.result.Reason != parley.CustomerHangup || v.result.Err != nil {
		t.Errorf("%q %v", v.result.Reason, v.result.Err)
	}
	const at = 5.02 // when the guest joined
	for name, got := range map[string]float64{
		"the customer hears a listener":        v.customer.hears(span{5.6, 6}, 0, targetHz),
		"the customer hears a whisper":         v.customer.hears(span{7, 8}, 0, targetHz),
		"the guest hears themselves":           v.guest.hears(span{7, 8}, at, targetHz),
		"the assistant speaks when taken over": loudest(v.customer, span{15.1, 17.9}),
	} {
		if got > 0.02 {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, got := range map[string]float64{
		"the listener hears the customer":          v.guest.hears(span{9.2, 10}, at, customerHz),
		"the customer hears who takes over":        v.customer.hears(span{18.2, 19.4}, 0, targetHz),
		"who takes over hears the customer":        v.guest.hears(span{21.2, 22}, at, customerHz),
		"the customer hears the assistant before":  50 * loudest(v.customer, span{13, 14.9}),
		"the customer hears it when handed back":   50 * loudest(v.customer, span{24, 30}),
		"the supervisor hears the assistant speak": 50 * loudest(v.guest, span{6, 9}),
	} {
		if got < 0.8 {
			t.Errorf("%s: %v", name, got)
		}
	}
	var who []string
	for _, turn := range v.result.Turns {
		line := turn.Speaker
		if turn.Whispered {
			line += " whispers"
		}
		if turn.Interrupted {
			line += " interrupted"
		}
		if turn.Language != "en" {
			line += " in " + turn.Language
		}
		who = append(who, line)
	}
	if want := []string{"customer", "assistant", "supervisor whispers", "customer", "assistant interrupted", "supervisor",
		"customer", "assistant"}; !slices.Equal(who, want) {
		t.Errorf("the transcript: %q\n%+v", who, v.result.Turns)
	}
	requests := v.model.Requests()
	if len(requests) != 3 {
		t.Fatalf("the model is asked %d times", len(requests))
	}
	told := func(n int, text string) bool {
		return slices.ContainsFunc(requests[n].Messages, func(m ai.Message) bool { return strings.Contains(m.Text, text) })
	}
	if told(0, "guest") || !told(1, `whispers to you, and the customer does not hear it: "the guest speaks"`) ||
		!told(2, `Your supervisor says, and the customer hears it: "the guest speaks"`) || !told(2, "hands the conversation back") {
		t.Errorf("the model is told %+v", requests)
	}
	if v.guest.closed != 1 {
		t.Errorf("the guest's line is closed %d times", v.guest.closed)
	}
}

// A supervisor whispers in writing: nobody hears it, and the assistant is told.
func TestWhisperInWriting(t *testing.T) {
	var v *visited
	visit(t, []span{{2, 3}, {9, 10}}, nil, []aitest.Step{{Text: "Good."}, {Text: "Nine euros."}}, func(now *visited) {
		v = now
		v.until(7)
		if err := v.session.Whisper("Offer a discount."); err != nil {
			v.Error(err)
		}
		v.until(20)
	})
	if top := loudest(v.customer, span{7, 9}); top > 0 {
		t.Errorf("the customer hears something: %v", top)
	}
	requests := v.model.Requests()
	if len(requests) != 2 || !slices.ContainsFunc(requests[1].Messages, func(m ai.Message) bool {
		return strings.Contains(m.Text, `Your supervisor whispers to you, and the customer does not hear it: "Offer a discount."`)
	}) {
		t.Errorf("the model is told %+v", requests)
	}
	if !slices.ContainsFunc(v.result.Turns, func(t parley.CallTurn) bool {
		return t.Whispered && t.Speaker == parley.SpeakerSupervisor && t.Text == "Offer a discount." && t.StartedAtMS == 7000
	}) {
		t.Errorf("the transcript: %+v", v.result.Turns)
	}
}

// loudest is how loud the sound is that a handset heard during a span of its own time.
func loudest(h *handset, s span) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := func(sec float64) int { return min(int(sec*float64(h.rate)), len(h.heard)) }
	top := 0.0
	for _, x := range h.heard[at(s.from):at(s.to)] {
		top = max(top, float64(x)/32768)
	}
	return top
}

// A third person talks with both sides: the assistant gives way to them and answers them, and keys go both ways. When
// someone who has taken over leaves, the customer is not left alone: the assistant goes on.
func TestGuestTalks(t *testing.T) {
	var v *visited
	visit(t, []span{{2, 3}}, []span{{6, 7}}, []aitest.Step{{Text: strings.Repeat("It goes on and on and on. ", 20)},
		{Text: "Welcome."}, {Text: "Five."}, {Text: "I am back."}}, func(now *visited) {
		v = now
		v.until(5)
		v.far.Go(func() { v.guest.Run(context.Background(), nil) })
		v.is = &voice.Guest{Line: v.guest, Kind: parley.LegGuest}
		if err := v.session.Admit(v.is, parley.LegTalk); err != nil {
			v.Error(err)
		}
		v.until(9)
		v.customer.mu.Lock()
		here := v.customer.peer
		v.customer.mu.Unlock()
		v.guest.mu.Lock()
		there := v.guest.peer
		v.guest.mu.Unlock()
		here.Digit('5')
		there.Digit('7')
		v.until(13)
		v.becomes(parley.LegTakeOver)
		v.until(14)
		v.guest.Hangup()
		v.until(18)
		if err := v.is.Change(parley.LegListen); err == nil {
			v.Error("who is gone changes")
		}
	})
	if v.result.Reason != parley.CustomerHangup || v.result.Err != nil {
		t.Errorf("%q %v", v.result.Reason, v.result.Err)
	}
	if v.customer.pressed != "7" || v.guest.pressed != "5" {
		t.Errorf("keys: %q and %q", v.customer.pressed, v.guest.pressed)
	}
	if heard := v.customer.hears(span{6.2, 7}, 0, targetHz); heard < 0.8 {
		t.Errorf("the customer hears the guest: %v", heard)
	}
	var texts []string
	for _, turn := range v.result.Turns[1:] {
		texts = append(texts, turn.Speaker+": "+turn.Text[:min(len(turn.Text), 16)])
	}
	if want := []string{"assistant: It goes on and o", "guest: the guest speaks", "assistant: Welcome.", "customer: [keypad: 5]",
		"assistant: Five.", "assistant: I am back."}; !slices.Equal(texts, want) || !v.result.Turns[1].Interrupted {
		t.Errorf("%q %+v", texts, v.result.Turns)
	}
	requests := v.model.Requests()
	if last := requests[len(requests)-1].Messages; !strings.Contains(last[len(last)-1].Text, "hands the conversation back") {
		t.Errorf("%+v", last)
	}
}
