package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/simulator/phone"
)

// modes are the ways to hold a call; in "multimodal alone" no other vendor has the model's voice.
var modes = []struct {
	name, mode string
	env        []string
}{
	{"pipeline", "pipeline", nil},
	{"multimodal alone", "multimodal", []string{"PARLEY_OPENAI_TTS_MODEL="}},
	{"dualplex", "dualplex", nil},
}

// Everything that a call consists of, in each mode, over real SIP and RTP: one long conversation, and beside it calls
// in which the customer says nothing.
func TestModes(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			share(t, 2*call) // three, two of which say nothing
			l, v := inMode(t, m.mode, nil, append(m.env, rich(t, 9))...)
			s := &scene{T: t, l: l, v: v, mode: m.mode, slow: make(chan struct{})}
			s.prepare()
			limited := s.besides(map[string]any{"max_duration": 20})
			quiet := s.besides(map[string]any{"max_silence_duration": 1, "reengagement_interval": 1})
			s.ring()
			s.answers()
			s.tools()
			s.interrupts()
			s.keys()
			if m.mode != "pipeline" {
				s.breaks(aitest.Reset, "Do you have a garden?", "And so the story goes on.")
				s.breaks(aitest.Expired, "And a cellar?", "And here it comes to its end.")
			}
			s.transfers()
			s.hangsUp()
			quiet.silence()
			limited.limit()
			if list := v.Complaints(); len(list) > 0 {
				t.Errorf("the server complained of %v", list)
			}
		})
	}
}

// scene is a conversation in one mode.
type scene struct {
	*testing.T
	l    *line
	v    *vendor
	mode string
	slow chan struct{} // holds the slow tool back
	c    *phone.Call
	id   int64 // of the call
}

// prepare gives the assistant its tools.
func (s *scene) prepare() {
	var ids []int64
	for name, answer := range map[string]func(){"table_free": func() {}, "window": func() { <-s.slow }} {
		shop := serveLocal(s.T, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answer()
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"free":"` + name + `"}`))
		}))
		var made struct{ Data struct{ ID int64 } }
		s.l.call(s.T, "POST", "/user/tools", map[string]any{"name": name, "description": "Looks whether it is free",
			"method": "GET", "endpoint": shop}, &made)
		ids = append(ids, made.Data.ID)
	}
	s.l.change(s.T, map[string]any{"tool_ids": ids, "tools": []any{
		map[string]any{"type": "collect_keypad", "timeout": 3, "stop_key": "#"},
		map[string]any{"type": "end_call"},
		map[string]any{"type": "call_transfer", "phone_number": "+4930901829", "description": "to the kitchen"}}})
}

// besides starts a call with another assistant of the mode, in which the customer says nothing.
func (s *scene) besides(fields map[string]any) *scene {
	s.Helper()
	var a map[string]any
	s.l.call(s.T, "GET", "/user/assistant/"+itoa(s.l.Assistant), nil, &a)
	for k, f := range fields {
		a[k] = f
	}
	var made struct {
		Data   struct{ ID int64 }
		Errors map[string][]string
	}
	if status := s.l.call(s.T, "POST", "/user/assistant", a, &made); status != http.StatusCreated {
		s.Fatalf("the assistant is answered %d %v", status, made.Errors)
	}
	p := *s.l.program
	p.Assistant = made.Data.ID
	l := *s.l
	l.program, l.phone = &p, handset(s.T, phone.Options{})
	other := &scene{T: s.T, l: &l, v: s.v, mode: s.mode, c: l.ring(s.T, l.phone)}
	other.id = l.talks(s.T)[0].ID
	return other
}

// ring calls, and waits until the call is answered and the greeting heard.
func (s *scene) ring() {
	s.Helper()
	s.c = s.l.ring(s.T, s.l.phone)
	s.id = s.l.talks(s.T)[0].ID
	s.whole(welcome)
}

// thinks scripts what the model does next.
func (s *scene) thinks(b ...aitest.Behaviour) {
	if s.mode == "pipeline" {
		s.v.Script(b...)
	} else {
		s.v.ScriptRealtime(b...)
	}
}

// asks says something that is transcribed as text.
func (s *scene) asks(text string) *phone.Utterance {
	s.Helper()
	s.v.hears(text)
	return asks(s.T, s.c)
}

// whole waits until a text was heard to its end, and nothing after it.
func (s *scene) whole(text string) {
	s.Helper()
	want := aitest.SpeechTime(text, 1) - 80*time.Millisecond
	eventually(s.T, "all of "+text, func() bool {
		if s.c.Ended() != "" {
			s.Fatalf("the call ended by %s before %q was heard: %v", s.c.Ended(), text, s.v.on(s.c))
		}
		packets := s.c.Packets()
		return s.v.length(s.c, text) >= want && !packets[len(packets)-1].Loud()
	})
}

// holds returns the texts of a role in the model's history.
func (s *scene) holds(role ai.Role) (texts []string) {
	if s.mode == "pipeline" {
		q := s.v.Requests()
		for _, m := range q[len(q)-1].Messages {
			if m.Role == role {
				texts = append(texts, m.Text)
			}
		}
		return texts
	}
	for _, c := range s.v.Conversations() {
		if c.Over || len(c.Items) < 3 { // a session of a customer who said nothing
			continue
		}
		for _, i := range c.Items {
			if i.Type == "message" && i.Role == string(role) || role == ai.ToolRole && i.Type == "function_call_output" {
				texts = append(texts, i.Text)
			}
		}
	}
	return texts
}

// answers is the simplest case: a question and its answer.
func (s *scene) answers() {
	s.Helper()
	s.thinks(aitest.Behaviour{Text: "For how many people?"})
	said := s.asks("I would like a table.")
	first := hears(s.T, s.c, said.To())
	s.whole("For how many people?")
	s.Logf("the reply came %v after the last word", first.Sub(said.To()).Round(time.Millisecond))
	if took := first.Sub(said.To()); took > 1500*time.Millisecond {
		s.Errorf("the reply took %v", took)
	}
}

// tools uses two tools: a quick one, and one that makes the caller wait.
func (s *scene) tools() {
	s.Helper()
	s.thinks(aitest.Behaviour{Text: "Let me see.", Calls: []ai.ToolCall{{ID: "call_1", Name: "table_free", Arguments: "{}"}}},
		aitest.Behaviour{Text: "Your table is ready."})
	s.asks("For two.")
	s.whole("Your table is ready.")
	const moment = "One moment, please."
	s.thinks(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "call_2", Name: "window", Arguments: "{}"}}},
		aitest.Behaviour{Text: "It is beside the window."})
	s.asks("And by the window?")
	s.whole(moment)
	close(s.slow)
	s.whole("It is beside the window.")
	if results := s.holds(ai.ToolRole); len(results) != 2 || !strings.Contains(results[0], "table_free") ||
		!strings.Contains(results[1], "window") {
		s.Errorf("the tools told the model %q", results)
	}
}

// interrupts ignores a listener's "mm-hm" and a cough, for which the reply falls silent or only gets fainter, and after which it goes
// on, and then yields to a real interruption.
func (s *scene) interrupts() {
	s.Helper()
	s.thinks(aitest.Behaviour{Text: long}, aitest.Behaviour{Text: "Bread it is."})
	said := s.asks("What do you have?")
	began := hears(s.T, s.c, said.To())
	sound := speech(s.T, asking)
	for i, noise := range [][]int16{sound[:3200], sound[:1600]} {
		s.next("more of the reply", began.Add(600*time.Millisecond), true)
		s.v.ScriptTranscripts(aitest.Behaviour{Text: []string{"Mm-hm.", " "}[i]})
		u := s.c.Say(noise)
		<-u.Done()
		began = s.next("the rest of the reply", u.To(), true)
	}
	s.next("more of the reply", began.Add(600*time.Millisecond), true)
	into := s.asks("Stop, only bread please.")
	s.whole("Bread it is.")
	if took := s.next("silence", into.From(), false).Sub(into.From()); took > 400*time.Millisecond {
		s.Errorf("it went on for %v", took)
	}
	sounded := s.v.length(s.c, long).Seconds() / aitest.SpeechTime(long, 1).Seconds() * float64(len(long))
	held := ""
	for _, text := range s.holds(ai.Assistant) {
		if strings.HasPrefix(text, "We have bread") {
			held = text
		}
	}
	s.Logf("%.1f letters of the reply sounded, the model holds %d", sounded, len(held))
	// The model holds whole words: the one in which the voice stopped is heard, or it is not.
	if d := float64(len(held)) - sounded; d < -6 || d > 6 || !strings.HasPrefix(long, held) {
		s.Errorf("%.1f letters of the reply sounded, the model holds the %d of %q", sounded, len(held), held)
	}
}

// next returns when the next packet after a time comes that is loud, or that is not.
func (s *scene) next(what string, after time.Time, loud bool) (at time.Time) {
	s.Helper()
	eventually(s.T, what, func() bool {
		packets := s.c.Packets()
		i := slices.IndexFunc(packets, func(p phone.Packet) bool { return p.At.After(after) && p.Loud() == loud })
		if i >= 0 {
			at = packets[i].At
		}
		return i >= 0
	})
	return at
}

// keys are passed to the model, and collected by it.
func (s *scene) keys() {
	s.Helper()
	s.thinks(aitest.Behaviour{Text: "Number twelve, then."})
	s.c.Press("12#")
	s.whole("Number twelve, then.")
	s.thinks(aitest.Behaviour{Text: "Your number, please.",
		Calls: []ai.ToolCall{{ID: "call_3", Name: "collect_keypad", Arguments: "{}"}}}, aitest.Behaviour{Text: "Thank you."})
	s.asks("I have an account.")
	s.whole("Your number, please.")
	s.c.Press("34#")
	s.whole("Thank you.")
	if told := s.holds(ai.User); !slices.Contains(told, "[keypad: 1 2 #]") {
		s.Errorf("of the keys the model was told %q", told)
	}
	if told := s.holds(ai.ToolRole); told[len(told)-1] != `{"digits":"34","ended_by":"key"}` {
		s.Errorf("the keys that it gathered are told as %q", told)
	}
}

// breaks ends a session in the middle of a reply. The next session goes on, and the caller does not notice.
func (s *scene) breaks(f aitest.Fault, question, rest string) {
	s.Helper()
	text := "It is a long story, which is told quite slowly, of a house in the " + strings.ToLower(question)
	s.thinks(aitest.Behaviour{Text: text, TokenDelay: 80 * time.Millisecond, Fault: f, After: 14},
		aitest.Behaviour{Text: rest})
	said := s.asks(question)
	began := hears(s.T, s.c, said.To())
	s.whole(rest)
	s.Logf("a session that was %s left a gap of %v", f, gap(s.c, began).Round(time.Millisecond))
	if s.v.length(s.c, text) == 0 || gap(s.c, began) > 300*time.Millisecond {
		s.Errorf("%v of the reply sounded, and there was a gap of %v", s.v.length(s.c, text), gap(s.c, began))
	}
}

// gap returns the longest silence that the far end has heard since a time.
func gap(c *phone.Call, since time.Time) (most time.Duration) {
	last := since
	for _, p := range c.Packets() {
		if p.Loud() && !p.At.Before(since) {
			most = max(most, p.At.Sub(last))
			last = p.At
		}
	}
	return most
}

// transfers ends the call by transferring the caller.
func (s *scene) transfers() {
	s.Helper()
	s.thinks(aitest.Behaviour{Text: "I connect you.", Calls: []ai.ToolCall{{ID: "call_4", Name: "call_transfer",
		Arguments: `{"reason":"the kitchen"}`}}})
	s.asks("The kitchen, please.")
	gone(s.T, s.c)
	if to := s.c.Referred(); !strings.Contains(to, "4930901829") || s.v.length(s.c, "I connect you.") == 0 {
		s.Errorf("sent to %q after %v", to, s.v.on(s.c))
	}
	row := s.over(parley.Transferred)
	want := []string{"AI: " + welcome, "Customer: I would like a table.", "AI: For how many people?", "Customer: For two.",
		"AI: Let me see. Your table is ready.", "Customer: And by the window?", "AI: One moment, please. It is beside the window.",
		"Customer: What do you have?", "AI: We have bread", "Customer: Stop, only bread please.", "AI: Bread it is.",
		"Customer: [keypad: 1 2 #]", "AI: Number twelve, then.", "Customer: I have an account.", "AI: Your number, please. Thank you."}
	lines := strings.Split(strings.ReplaceAll(row.Transcript, "\n\n", "\n"), "\n")
	for i, line := range want {
		if i >= len(lines) || !strings.HasPrefix(strings.Join(strings.Fields(lines[i]), " "), line) {
			s.Fatalf("line %d of the transcript is not %q:\n%s", i+1, line, row.Transcript)
		}
	}
	for i, turn := range row.Turns {
		if turn.Interrupted != strings.HasPrefix(turn.Text, "We have bread") {
			s.Errorf("turn %d: %+v", i, turn)
		}
	}
}

// hangsUp is a call that the model ends, after its last words were heard.
func (s *scene) hangsUp() {
	s.Helper()
	s.ring()
	const bye = "Goodbye, and thank you."
	s.thinks(aitest.Behaviour{Text: bye, Calls: []ai.ToolCall{{ID: "call_5", Name: "end_call", Arguments: `{"reason":"done"}`}}})
	s.asks("That is all.")
	gone(s.T, s.c)
	if got, want := s.v.length(s.c, bye), aitest.SpeechTime(bye, 1); got < want-80*time.Millisecond {
		s.Errorf("the goodbye was cut off after %v of %v", got, want)
	}
	s.over(parley.AssistantHangup)
}

// silence makes the assistant ask twice whether anyone is there, and then ends the call.
func (s *scene) silence() {
	s.Helper()
	gone(s.T, s.c)
	row := s.over(parley.MaxSilence)
	const there = "Are you still there?"
	if said := row.said("assistant"); !slices.Equal(said, []string{welcome, there, there}) {
		s.Errorf("said %q", said)
	}
	if got, want := s.v.length(s.c, there), 2*aitest.SpeechTime(there, 1); got < want-160*time.Millisecond {
		s.Errorf("it was asked for %v of %v", got, want)
	}
}

// limit is a call that ends at its maximum duration.
func (s *scene) limit() {
	s.Helper()
	gone(s.T, s.c)
	if row := s.over(parley.MaxDuration); row.Duration < 19 || row.Duration > 21 {
		s.Errorf("it lasted %d s", row.Duration)
	}
}

// over reads the call's row after its end.
func (s *scene) over(reason parley.EndedReason) (row talk) {
	s.Helper()
	eventually(s.T, "the call's end", func() bool { row = s.l.talk(s.T, s.id); return !row.Status.Live() })
	row.expect(s.T, parley.CallCompleted, reason)
	return row
}

// A machine answers calls in each mode: it is told apart from a person, and gets its message after the beep.
func TestModesVoicemail(t *testing.T) {
	share(t, call)
	l, _ := inMode(t, "dualplex", nil, rich(t, 9))
	number, _ := l.purchase(t)
	ids := map[string]int64{}
	for _, m := range modes {
		l.outbound(t, number, modeFields(t, l, m.mode, map[string]any{"voice_mail_message": "Please call us back.",
			"end_call_on_voicemail": 1}))
		ids[m.mode] = l.dial(t, "+12025550005")
	}
	for mode, id := range ids {
		var c talk
		eventually(t, "the call's end", func() bool { c = l.talk(t, id); return !c.Status.Live() })
		c.expect(t, parley.CallCompleted, parley.Voicemail)
		if said := c.said("assistant"); len(said) == 0 || said[len(said)-1] != "Please call us back." ||
			c.AnsweredBy != parley.AnsweredMachine {
			t.Errorf("%s: answered by %s; said %q", mode, c.AnsweredBy, said)
		}
	}
}
