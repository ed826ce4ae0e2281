package aitest

import (
	"strings"
	"time"

	"parley/internal/ai"
)

// decidedCases are the cases of models that decide by themselves when they speak.
var decidedCases = []sessionCase{
	{"it speaks by itself", (*trial).speaksUnasked},
	{"it speaks first", (*trial).speaksFirst},
	{"it is told to speak", (*trial).toldToSpeak},
	{"it hesitates, and is asked", (*trial).hesitates},
	{"it says nothing at all", (*trial).saysNothing},
	{"two speeches wait to be asked for", (*trial).twoUnasked},
	{"it falls silent when it is interrupted", (*trial).interrupted},
	{"it listens while it speaks", (*trial).listensMeanwhile},
	{"what is cut is not heard", (*trial).cutDecided},
	{"cut before it speaks", (*trial).cutWaiting},
	{"a delegated tool", (*trial).delegated},
	{"a delegated tool while it speaks", (*trial).delegatedMeanwhile},
	{"several delegated tools", (*trial).severalDelegated},
	{"a delegation that failed", (*trial).delegationFailed},
	{"a result of nobody's call", (*trial).strayResult},
	{"what nobody asks for is forgotten", (*trial).forgotten},
	{"calls of a reply that was cut", (*trial).cutCalls},
	{"told something late", (*trial).toldLate},
	{"utterances one after the other", (*trial).utterances},
	{"sound never stops", (*trial).neverStops},
	{"long texts are told in pieces", (*trial).longNote},
	{"seconds are counted once", (*trial).countedSeconds},
	{"it is told that the session expires", (*trial).expiring},
}

// comes waits until the model speaks without having been asked, and asks for that.
func (c *trial) comes(s *talk, n int) {
	c.Helper()
	s.begins()
	s.Respond(n, "", false)
}

// begins waits until the model speaks, or calls a tool, without having been asked.
func (c *talk) begins() {
	c.Helper()
	if c.begun == 0 {
		c.until(ai.RealtimeBegan, 0)
	}
	c.begun--
}

func (c *trial) whole(s *talk, n int, want string) {
	c.Helper()
	if e := s.until(ai.RealtimeDone, n); e.Err != nil || s.texts[n] != want {
		c.Errorf("response %d is %q, %v, not %q", n, s.texts[n], e.Err, want)
	}
}

func (c *trial) speaksUnasked() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "We open at nine."})
	s.says("when do you open")
	c.comes(s, 3)
	c.whole(s, 3, "We open at nine.")
	s.understands(0, "when do you open")
	if s.sounds[3]*1000/int(c.rate) < 700 {
		c.Errorf("only %d samples came", s.sounds[3])
	}
}

func (c *trial) speaksFirst() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "Good morning."})
	c.v.Speak()
	c.comes(s, 1)
	c.whole(s, 1, "Good morning.")
}

func (c *trial) toldToSpeak() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "Still there?"})
	s.Respond(1, "Ask whether they are there.", false)
	c.whole(s, 1, "Still there?")
	if got := strings.Join(s.items(), "|"); !strings.Contains(got, "Ask whether they are there.") {
		c.Errorf("the server holds %q", got)
	}
}

func (c *trial) hesitates() {
	s := c.open()
	s.says("well")
	s.understands(0, "well")
	c.v.Server.ScriptRealtime(Behaviour{Text: "Yes?"})
	s.Respond(1, "", false)
	c.whole(s, 1, "Yes?")
}

func (c *trial) saysNothing() {
	s := c.open()
	s.Respond(1, "", false)
	guard := time.After(20 * time.Second)
	for {
		select {
		case e := <-s.Events():
			if e.Kind == ai.RealtimeDone && e.N == 1 {
				if ai.KindOf(e.Err) != ai.Stalled {
					c.Error(e.Err)
				}
				return
			}
		case <-guard:
			c.Fatal("nobody is told")
		}
	}
}

func (c *trial) twoUnasked() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "One."}, Behaviour{Text: "Two."})
	c.v.Speak()
	s.begins()
	time.AfterFunc(1500*time.Millisecond, c.v.Speak)
	s.begins()
	s.Respond(1, "", false)
	s.Respond(2, "", false)
	c.whole(s, 1, "One.")
	c.whole(s, 2, "Two.")
}

const longSpeech = "We have bread and rolls and cakes and pies and tarts and buns every single morning."

func (c *trial) interrupted() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: longSpeech}, Behaviour{Text: "Bread it is."})
	c.v.Speak()
	c.comes(s, 1)
	s.until(ai.RealtimeText, 1)
	s.says("only bread please")
	s.until(ai.RealtimeDone, 1)
	if said := s.texts[1]; len(said) >= len(longSpeech)/2 || !strings.HasPrefix(longSpeech, said) {
		c.Errorf("it said %q", said)
	}
	c.comes(s, 2)
	c.whole(s, 2, "Bread it is.")
	s.understands(0, "only bread please")
}

func (c *trial) listensMeanwhile() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "We have bread and rolls."})
	c.v.Speak()
	c.comes(s, 1)
	s.until(ai.RealtimeText, 1)
	c.v.Server.ScriptTranscripts(Behaviour{Text: "mhm"})
	frame := make([]int16, c.rate.FrameSize())
	for i := range frame {
		frame[i] = int16(1000 * (i%7 - 3))
	}
	for range 8 {
		s.Write(frame)
	}
	s.End()
	c.whole(s, 1, "We have bread and rolls.")
	s.understands(0, "mhm")
}

func (c *trial) cutDecided() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "We have bread and rolls and cakes."}, Behaviour{Text: "Yes."})
	c.v.Speak()
	c.comes(s, 1)
	s.until(ai.RealtimeText, 1)
	s.cuts = 1
	s.Cut(1, 100*time.Millisecond, "We")
	s.until(ai.RealtimeDone, 1)
	had := s.sounds[1]
	s.holds("assistant message We have bread and rolls and cakes.")
	time.AfterFunc(3*time.Second, c.v.Speak) // it has been silent for long
	c.comes(s, 2)
	c.whole(s, 2, "Yes.")
	if s.sounds[1] != had || !strings.Contains(strings.Join(s.items(), "|"), "heard only: “We”") {
		c.Errorf("%d samples more were heard; the server holds %q", s.sounds[1]-had, s.items())
	}
}

func (c *trial) cutWaiting() {
	s := c.open()
	s.says("well")
	s.understands(0, "well")
	s.Respond(1, "", false)
	s.Cut(1, 0, "")
	s.Cut(9, 0, "")
	c.v.Server.ScriptRealtime(Behaviour{Text: "Yes."})
	c.v.Speak()
	c.comes(s, 2)
	c.whole(s, 2, "Yes.")
}

func (c *trial) delegated() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Calls: []ai.ToolCall{{Name: "price", Arguments: `{"of":"rye"}`}}}, Behaviour{Text: "Three euros."})
	s.says("how much is rye")
	c.comes(s, 1)
	call := s.until(ai.RealtimeCall, 1).Call
	s.until(ai.RealtimeDone, 1)
	if call.Name != "price" || call.Arguments != `{"of":"rye"}` {
		c.Errorf("%+v", call)
	}
	s.Result(call.ID, "3 EUR")
	s.Respond(2, "", false)
	c.whole(s, 2, "Three euros.")
	s.holds("user message how much is rye", "function_call", "function_call_output 3 EUR", "assistant message Three euros.")
	if s.used.In == 0 {
		c.Error("what the thinker used is not told")
	}
	s.Close()
	c.tallied(s)
}

func (c *trial) delegatedMeanwhile() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "One moment, let me see what it costs.", Calls: []ai.ToolCall{{Name: "price", Arguments: "{}"}}},
		Behaviour{Text: "Three euros."})
	s.says("how much is rye")
	c.comes(s, 1) // the call comes before the words
	call := s.until(ai.RealtimeCall, 1).Call
	c.comes(s, 2)
	s.until(ai.RealtimeText, 2)
	c.whole(s, 2, "One moment, let me see what it costs.")
	s.Result(call.ID, "3 EUR")
	c.comes(s, 3)
	c.whole(s, 3, "Three euros.")
}

func (c *trial) severalDelegated() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Calls: []ai.ToolCall{{Name: "price", Arguments: "{}"}, {Name: "order", Arguments: "{}"}}},
		Behaviour{Text: "Ordered."})
	s.says("order one")
	c.comes(s, 1)
	s.until(ai.RealtimeDone, 1)
	if len(s.calls) != 2 {
		c.Fatalf("%+v", s.calls)
	}
	s.Result(s.calls[1].ID, "order placed") // it goes on only when it knows both
	s.Result(s.calls[0].ID, "3 EUR")
	c.comes(s, 2)
	c.whole(s, 2, "Ordered.")
}

func (c *trial) delegationFailed() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Calls: []ai.ToolCall{{Name: "price", Arguments: "{}"}}, Fault: Failure}, Behaviour{Text: "Sorry."})
	c.v.Speak()
	c.v.Speak()
	c.comes(s, 1)
	c.whole(s, 1, "Sorry.")
	if len(s.calls) > 0 {
		c.Errorf("%+v", s.calls)
	}
}

func (c *trial) strayResult() {
	s := c.open()
	s.Result("call_x", "order 5 placed")
	c.v.Server.ScriptRealtime(Behaviour{Text: "Yes."})
	s.Respond(1, "", false)
	c.whole(s, 1, "Yes.")
	if got := strings.Join(s.items(), "|"); !strings.Contains(got, "order 5 placed") || strings.Contains(got, "function_call_output") {
		c.Errorf("the server holds %q", got)
	}
}

func (c *trial) forgotten() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Calls: []ai.ToolCall{{Name: "price", Arguments: "{}"}}}, Behaviour{Text: "Two."})
	c.v.Speak()
	s.begins()    // somebody else is speaking
	c.comes(s, 1) // what it says once its call is answered
	c.whole(s, 1, "Two.")
	if len(s.calls) > 0 {
		c.Errorf("%+v", s.calls)
	}
	s.holds("function_call", "function_call_output It was not done.", "assistant message Two.")
}

func (c *trial) cutCalls() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Calls: []ai.ToolCall{{Name: "price", Arguments: "{}"}}}, Behaviour{Text: "Well."})
	c.v.Speak()
	c.comes(s, 1)
	call := s.until(ai.RealtimeCall, 1).Call
	s.Cut(1, 0, "")
	c.comes(s, 2)
	c.whole(s, 2, "Well.")
	s.Result(call.ID, "3 EUR")
	s.holds("function_call", "function_call_output No result is known: the answer for which it was called was broken off.",
		"assistant message Well.")
}

func (c *trial) toldLate() {
	s := c.open()
	c.v.Server.ScriptRealtime(Behaviour{Text: "We open at nine."})
	c.v.Speak()
	s.begins()
	s.Respond(1, "It is Tuesday.", false)
	c.whole(s, 1, "We open at nine.")
	if got := strings.Join(s.items(), "|"); !strings.Contains(got, "It is Tuesday.") {
		c.Errorf("the server holds %q", got)
	}
}

func (c *trial) utterances() {
	s := c.open()
	for n, text := range []string{"one roll", "and one pie"} {
		s.says(text)
		s.understands(n, text)
	}
	s.says("nothing else")
	s.understands(2, "nothing else")
}

func (c *trial) neverStops() {
	s := c.open()
	defer s.Close()
	for end := time.Now().Add(10 * time.Second); c.v.HeardMS() < 1000; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.Fatalf("the server has heard %d ms", c.v.HeardMS())
		}
	}
}

func (c *trial) longNote() {
	s := c.open()
	s.Add(1, ai.Message{Role: ai.User, Text: strings.Repeat("Zwölf Brötchen bitte. ", 200)}, ai.Message{Role: ai.Assistant, Text: "Gern."})
	c.v.Server.ScriptRealtime(Behaviour{Text: "Yes."})
	s.Respond(2, "", false)
	c.whole(s, 2, "Yes.")
	if got := strings.Join(s.items(), ""); strings.Count(got, "Brötchen") < 198 || !strings.Contains(got, "Gern.") {
		c.Errorf("the server holds %q", got)
	}
}

func (c *trial) countedSeconds() {
	s := c.open()
	for end := time.Now().Add(10 * time.Second); c.v.HeardMS() < 2500 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
	}
	s.Close()
	heard := time.Duration(0)
	for _, u := range s.tally.Uses() {
		heard += u.Heard
	}
	if want := time.Duration(c.v.HeardMS()) * time.Millisecond; heard != want {
		c.Errorf("%v were counted, and the server has heard %v", heard, want)
	}
}

func (c *trial) expiring() {
	s := c.open()
	if e := s.until(ai.RealtimeExpiring, 0); e.Remaining <= 0 || e.Remaining > time.Minute {
		c.Errorf("%+v", e)
	}
}
