package aitest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

// RealtimeServer is what ConformRealtime needs of the server behind a model: Server, and servers like it.
type RealtimeServer interface {
	ScriptRealtime(b ...Behaviour)
	ScriptTranscripts(b ...Behaviour)
	Conversations() []RealtimeConversation
}

// RealtimeManner is how a vendor differs, where the interface lets it. The zero value is OpenAI's.
type RealtimeManner struct {
	Voice string // "" is marin
	// Notes: what was put into the conversation stays there. What was heard of a reply, and the calls that another
	// session made, are told in notes of the customer's side, in brackets; so is what it takes to have a reply made.
	Notes bool
	// Fatal: a failure ends the session.
	Fatal bool
	// Speaks: it speaks even where it is to write, and its sound is thrown away.
	Speaks bool
	// Decides: the model decides by itself when it speaks. Cases that need it to wait until it is asked, or to be cut off, don't apply;
	// decidedCases do.
	Decides bool
}

// ConformRealtime checks that a RealtimeModel keeps the promises of its interface.
func ConformRealtime(t *testing.T, m ai.RealtimeModel, s RealtimeServer, manner RealtimeManner) {
	for _, rate := range []audio.Rate{audio.Narrow, audio.Wide} {
		for _, writes := range []bool{false, true} {
			open := func(t *testing.T) *talk {
				setup := ai.RealtimeSetup{System: "You are a baker.", Voice: cmp.Or(manner.Voice, "marin"), Language: "en",
					Rate: rate, Writes: writes, Speed: 1, Keywords: []string{"Ciabatta"},
					Tools: []ai.Tool{{Name: "order", Description: "Orders", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}}
				if writes {
					setup.Voice = ""
				}
				tally := new(ai.Tally)
				c, err := m.Connect(ai.Tallied(t.Context(), tally), setup)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.Close)
				return &talk{T: t, RealtimeSession: c, tally: tally, s: s, manner: manner, rate: rate,
					texts: map[int]string{}, sounds: map[int]int{}, heard: map[int]string{}}
			}
			name := fmt.Sprintf("%d Hz, speaks", rate)
			if writes {
				name = fmt.Sprintf("%d Hz, writes", rate)
			}
			t.Run(name, func(t *testing.T) { conformTalk(open(t), writes) })
			t.Run(name+" and is cut", func(t *testing.T) { conformCut(open(t), writes) })
			t.Run(name+" and calls", func(t *testing.T) { conformCalls(open(t)) })
			t.Run(name+" and fails", func(t *testing.T) {
				if manner.Fatal {
					conformEnd(t, s, open)
				} else {
					conformFailure(open(t))
				}
			})
		}
		t.Run(fmt.Sprintf("%d Hz, reads", rate), func(t *testing.T) {
			conformReading(t, m, s, ai.Speech{Voice: cmp.Or(manner.Voice, "marin"), Language: "en", Rate: rate, Speed: 1})
		})
	}
}

// conformReading has the model read texts out.
func conformReading(t *testing.T, m ai.RealtimeModel, s RealtimeServer, as ai.Speech) {
	tally := new(ai.Tally)
	texts := make(chan string, 2)
	texts <- "One moment please."
	texts <- "When do you want to come?"
	close(texts)
	var sounds, last [2]int
	err := ai.Aloud{Model: m}.Speak(ai.Tallied(t.Context(), tally), as, texts, func(sound ai.Sound) error {
		sounds[sound.Text] += len(sound.PCM)
		if sound.Last {
			last[sound.Text]++
		}
		return nil
	})
	if err != nil || last != [2]int{1, 1} {
		t.Errorf("%v, and %v texts were whole", err, last)
	}
	for i, text := range []string{"One moment please.", "When do you want to come?"} {
		want := int(SpeechTime(text, 1) * time.Duration(as.Rate) / time.Second)
		if n := sounds[i]; n < want*9/10 || n > want*11/10 {
			t.Errorf("%q: %d samples, want %d", text, n, want)
		}
	}
	if uses := tally.Uses(); len(uses) == 0 || uses[0].AudioOut == 0 {
		t.Errorf("it spent %+v", uses)
	}
	s.ScriptRealtime(Behaviour{Status: 503})
	err = ai.Say(t.Context(), ai.Aloud{Model: m}, as, "Hello?", func([]int16) error { return nil })
	if ai.KindOf(err) != ai.Overloaded {
		t.Errorf("of a server that is down it says %v", err)
	}
}

// talk is a session under test.
type talk struct {
	*testing.T
	ai.RealtimeSession
	tally  *ai.Tally
	s      RealtimeServer
	manner RealtimeManner
	rate   audio.Rate
	texts  map[int]string
	sounds map[int]int
	heard  map[int]string // the last texts of utterances
	calls  []ai.ToolCall
	pcm    []int16  // all that was said
	used   ai.Usage // as the events tell it
	after  int      // of a reply that was cut: whatever came of it but its end
	cuts   int      // its number
	begun  int      // what it has begun to say by itself, and was not asked for
	failed error
}

// says is an utterance of a second.
func (c *talk) says(text string) {
	c.s.ScriptTranscripts(Behaviour{Text: text})
	for range 50 {
		frame := make([]int16, c.rate.FrameSize())
		for i := range frame {
			frame[i] = int16(1000 * (i%7 - 3))
		}
		c.Write(frame)
	}
	c.End()
}

// until takes events until one of this kind about n comes.
func (c *talk) until(kind ai.RealtimeKind, n int) ai.RealtimeEvent {
	c.Helper()
	guard := time.After(10 * time.Second)
	for {
		select {
		case e, ok := <-c.Events():
			if !ok {
				c.Fatalf("the session ended: %v", c.failed)
			}
			switch e.Kind {
			case ai.RealtimeText:
				c.texts[e.N] += e.Text
				c.stray(e)
			case ai.RealtimeSound:
				c.sounds[e.N] += len(e.PCM)
				c.pcm = append(c.pcm, e.PCM...)
				c.stray(e)
			case ai.RealtimeDone, ai.RealtimeUsed:
				c.used.Add(e.Usage)
			case ai.RealtimeCall:
				c.calls = append(c.calls, *e.Call)
			case ai.RealtimeLost:
				c.failed = e.Err
			case ai.RealtimeBegan:
				c.begun++
			case ai.RealtimeHeard:
				if e.Final {
					c.heard[e.N] = e.Text
				}
			}
			if e.Kind == kind && e.N == n && (kind != ai.RealtimeHeard || e.Final) {
				return e
			}
		case <-guard:
			c.Fatalf("no event %d about %d", kind, n)
		}
	}
}

// understands waits for the last text of an utterance.
func (c *talk) understands(n int, want string) {
	c.Helper()
	if _, ok := c.heard[n]; !ok {
		c.until(ai.RealtimeHeard, n)
	}
	if got := c.heard[n]; got != want {
		c.Errorf("utterance %d was understood as %q, want %q", n, got, want)
	}
}

// items is what the server holds of the session. Notes are told by notes alone.
func (c *talk) items() (out []string) {
	list := c.s.Conversations()
	for _, i := range list[len(list)-1].Items {
		out = append(out, strings.TrimSpace(i.Role+" "+i.Type+" "+i.Text))
	}
	return out
}

// isNote reports whether a line is no part of what was said.
func (c *talk) isNote(line string) bool {
	text, ok := strings.CutPrefix(line, "user message ")
	return c.manner.Notes && ok && strings.IndexAny(text, "[(") == 0
}

// cut is a reply, or a text that was added, of which only a part was heard.
type cut struct{ whole, heard string }

// holds waits until the server holds this: lines, and replies that were cut.
func (c *talk) holds(want ...any) {
	c.Helper()
	var got []string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if got = c.items(); c.matches(got, want) {
			return
		}
	}
	c.Fatalf("the server holds\n  %s\nnot\n  %v", strings.Join(got, "\n  "), want)
}

func (c *talk) matches(got []string, want []any) bool {
	for _, w := range want {
		reply, isCut := w.(cut)
		line, _ := w.(string)
		if isCut && !c.manner.Notes {
			line = strings.TrimSpace("assistant message " + reply.heard)
			if isCut = false; reply.heard == "" {
				continue
			}
		}
		for len(got) > 0 && c.isNote(got[0]) {
			got = got[1:]
		}
		switch {
		case !isCut && (len(got) == 0 || got[0] != line):
			return false
		case !isCut:
			got = got[1:]
		case len(got) > 0 && reply.heard != "" && got[0] == "assistant message "+reply.heard: // it was not sent yet
			got = got[1:]
		case len(got) < 2:
			return false
		default:
			said, ok := strings.CutPrefix(got[0]+" ", "assistant message ")
			if !ok || !strings.HasPrefix(reply.whole+"  ", said) || !c.isNote(got[1]) ||
				!reply.toldBy(got[1]) {
				return false
			}
			got = got[2:]
		}
	}
	for len(got) > 0 && c.isNote(got[0]) {
		got = got[1:]
	}
	return len(got) == 0
}

// toldBy reports whether a note tells what was heard, and no more.
func (r cut) toldBy(note string) bool {
	if r.heard == "" {
		return !strings.Contains(note, strings.Fields(r.whole)[0]+" ")
	}
	more := r.whole[:min(len(r.whole), len(r.heard)+3)]
	return strings.Contains(note, r.heard) && !strings.Contains(note, more)
}

func conformTalk(c *talk, writes bool) {
	c.s.ScriptRealtime(Behaviour{Text: "We open at nine in the morning."})
	c.Add(1, ai.Message{Role: ai.Assistant, Text: "Hello."})
	c.says("when do you open")
	c.Respond(2, "", false)
	if e := c.until(ai.RealtimeDone, 2); e.Err != nil || e.Usage.Out == 0 {
		c.Errorf("%+v", e)
	}
	if uses := c.tally.Uses(); len(uses) == 0 || !slices.ContainsFunc(uses, func(u ai.Use) bool {
		return u.Part == ai.TheModel && u.Vendor != "" && u.Model != "" && u.In > 0 && u.Out > 0 && u.AudioIn > 0 &&
			u.AudioCached <= u.AudioIn && (writes && !c.manner.Speaks) == (u.AudioOut == 0)
	}) {
		c.Errorf("it spent %+v", uses)
	}
	c.understands(0, "when do you open")
	if c.texts[2] != "We open at nine in the morning." {
		c.Errorf("it said %q", c.texts[2])
	}
	want := int(SpeechTime(c.texts[2], 1) * time.Duration(c.rate) / time.Second)
	if n := c.sounds[2]; writes && n > 0 || !writes && (n < want*9/10 || n > want*11/10) {
		c.Errorf("%d samples, want %d", n, want)
	}
	c.holds("assistant message Hello.", "user message when do you open", "assistant message We open at nine in the morning.")

	// a noise is forgotten
	c.says("mhm")
	c.understands(1, "mhm")
	c.Forget(1)
	c.holds("assistant message Hello.", "user message when do you open", "assistant message We open at nine in the morning.")

	// two at once come one after the other
	c.s.ScriptRealtime(Behaviour{Text: "First one."}, Behaviour{Text: "Second one."})
	c.Respond(4, "", false)
	c.Respond(5, "Say more.", true)
	c.until(ai.RealtimeDone, 4)
	c.until(ai.RealtimeDone, 5)
	if c.texts[4] != "First one." || c.texts[5] != "Second one." {
		c.Errorf("%v", c.texts)
	}
}

func conformCut(c *talk, writes bool) {
	const long = "We have bread and rolls and cakes and pies and tarts and buns every single morning."
	// in the middle of the making
	c.s.ScriptRealtime(Behaviour{Text: long, TokenDelay: 20 * time.Millisecond})
	c.says("what do you have")
	c.Respond(1, "", false)
	c.until(ai.RealtimeText, 1)
	for range 6 {
		if writes {
			c.until(ai.RealtimeText, 1)
		} else {
			c.until(ai.RealtimeSound, 1)
		}
	}
	c.Cut(1, 500*time.Millisecond, "We have")
	c.until(ai.RealtimeDone, 1)
	c.holds("user message what do you have", cut{long, "We have"})

	// after it
	c.s.ScriptRealtime(Behaviour{Text: long})
	c.Respond(2, "", false)
	c.until(ai.RealtimeDone, 2)
	c.Cut(2, 1100*time.Millisecond, "We have bread and")
	c.holds("user message what do you have", cut{long, "We have"}, cut{long, "We have bread and"})

	// before anything of it was heard, and before it was begun
	c.s.ScriptRealtime(Behaviour{Text: long, TokenDelay: 20 * time.Millisecond}, Behaviour{Text: "Yes."})
	c.Respond(3, "", false)
	c.Respond(4, "", false)
	c.until(ai.RealtimeText, 3)
	c.Cut(4, 0, "")
	c.Cut(3, 0, "")
	c.Add(5, ai.Message{Role: ai.Assistant, Text: "What you have not heard."})
	c.Cut(5, 0, "What you")
	c.Respond(6, "", false)
	c.until(ai.RealtimeDone, 6)
	unheard := cut{"What you have not heard.", "What you"}
	c.holds("user message what do you have", cut{long, "We have"}, cut{long, "We have bread and"}, cut{long, ""},
		unheard, "assistant message Yes.")

	// while the customer speaks into it
	c.s.ScriptRealtime(Behaviour{Text: long, TokenDelay: 20 * time.Millisecond}, Behaviour{Text: "Only bread."})
	c.Respond(7, "", false)
	c.until(ai.RealtimeText, 7)
	for range 6 {
		if writes {
			c.until(ai.RealtimeText, 7)
		} else {
			c.until(ai.RealtimeSound, 7)
		}
	}
	c.says("only bread please")
	c.Cut(7, 500*time.Millisecond, "We have")
	c.Respond(8, "", false)
	c.until(ai.RealtimeDone, 8)
	c.holds("user message what do you have", cut{long, "We have"}, cut{long, "We have bread and"}, cut{long, ""},
		unheard, "assistant message Yes.", cut{long, "We have"}, "user message only bread please",
		"assistant message Only bread.")
}

func conformCalls(c *talk) {
	c.s.ScriptRealtime(Behaviour{Text: "Let me see.", Calls: []ai.ToolCall{{Name: "order", Arguments: `{"n":1}`}}},
		Behaviour{Text: "It is ordered."})
	c.says("order it")
	c.Respond(1, "", false)
	c.until(ai.RealtimeDone, 1)
	if len(c.calls) != 1 || c.calls[0].Name != "order" || c.calls[0].Arguments != `{"n":1}` || c.calls[0].ID == "" {
		c.Fatalf("%+v", c.calls)
	}
	c.Result(c.calls[0].ID, "order 5 placed")
	c.Respond(2, "", false)
	c.until(ai.RealtimeDone, 2)
	c.holds("user message order it", "assistant message Let me see.", "function_call", "function_call_output order 5 placed",
		"assistant message It is ordered.")

	// what was said and done before is told to another session
	c.Add(3, ai.Message{Role: ai.User, Text: "again"}, ai.Message{Role: ai.Assistant, Text: "Well.",
		Calls: []ai.ToolCall{{ID: "c10000001", Name: "order", Arguments: "{}"}}},
		ai.Message{Role: ai.ToolRole, CallID: "c10000001", Text: "no"})
	c.s.ScriptRealtime(Behaviour{Text: "Not possible."})
	c.Respond(4, "", false)
	c.until(ai.RealtimeDone, 4)
	told := func(line string) bool {
		return line == "function_call_output no" || c.isNote(line) && strings.Contains(line, "order") &&
			strings.Contains(line, "no]")
	}
	if got := c.items(); !slices.Contains(got, "user message again") || !slices.Contains(got, "assistant message Well.") ||
		!slices.ContainsFunc(got, told) {
		c.Errorf("%q", got)
	}

	// a call that was made before it was cut is not going to be answered
	c.s.ScriptRealtime(Behaviour{Calls: []ai.ToolCall{{Name: "order", Arguments: "{}"}}, Text: "Once more, then.",
		TokenDelay: 10 * time.Millisecond})
	c.Respond(5, "", false)
	c.until(ai.RealtimeText, 5)
	c.Cut(5, 0, "")
	c.until(ai.RealtimeDone, 5)
	if len(c.calls) != 1 {
		c.Errorf("%+v", c.calls)
	}
}

// conformEnd checks failures that end the session.
func conformEnd(t *testing.T, s RealtimeServer, open func(t *testing.T) *talk) {
	for _, o := range []struct {
		b    Behaviour
		want ai.Kind
	}{
		{Behaviour{Code: "rate_limit_exceeded"}, ai.RateLimited},
		{Behaviour{Text: "Yes.", Fault: Failure, After: 1}, ai.Interrupted},
		{Behaviour{Text: "It breaks off here.", Fault: Reset, After: 1}, ai.Interrupted},
		{Behaviour{Text: "It breaks off here.", Fault: Garbage, After: 1}, ai.Malformed},
	} {
		c := open(t)
		s.ScriptRealtime(o.b)
		c.Respond(3, "", false)
		if e := c.until(ai.RealtimeLost, 0); ai.KindOf(e.Err) != o.want {
			c.Errorf("%v, want %s", e.Err, o.want)
		}
		c.afterwards()
	}
}

func conformFailure(c *talk) {
	c.s.ScriptRealtime(Behaviour{Code: "rate_limit_exceeded", Message: "later"}, Behaviour{Text: "Yes.", Fault: Failure, After: 1},
		Behaviour{Text: "All is well."}, Behaviour{Text: "It breaks off here.", Fault: Reset, After: 1})
	for n, want := range []ai.Kind{ai.RateLimited, ai.Overloaded, ""} {
		c.Respond(n, "", false)
		if e := c.until(ai.RealtimeDone, n); ai.KindOf(e.Err) != want {
			c.Errorf("%d: %v, want %s", n, e.Err, want)
		}
	}
	c.Respond(3, "", false)
	e := c.until(ai.RealtimeLost, 0)
	if ai.KindOf(e.Err) != ai.Interrupted {
		c.Errorf("%v", e.Err)
	}
	c.afterwards()
}

// afterwards nothing happens, and nobody minds.
func (c *talk) afterwards() {
	if _, ok := <-c.Events(); ok {
		c.Error("something happened after the end")
	}
	c.Write(make([]int16, 160))
	c.End()
	c.Respond(9, "", false)
	c.Say(10, "Hello?")
	c.Cut(3, 0, "")
}
