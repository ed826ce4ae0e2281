package voice

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/parley"
	"parley/internal/turn"
)

// transcript records what was said and done, as far as it was heard. Only the owner touches it.
type transcript struct {
	out     *playout // knows what was heard
	entries []*entry
	tell    func(Event)
	tongues map[int]tongue    // by utterance
	late    map[string]string // answers of tools that ran in the background, by what was told of them first
}

// entry is something that one side said.
type entry struct {
	text   string // the customer's
	digits string // the number that it tells, where they were asked for one
	from   time.Duration
	answer *answer // nil for the customer
	guest  *Guest  // who said it, where neither did
	news   string  // nobody said it: what the model alone is told
	mode   parley.LegMode
	heard  []int  // the utterances that the text consists of
	spoke  string // of a guest: the language, ISO 639-1, "" where nobody knows
	joined bool   // the customer went on: the next of theirs begins with this text
	told   bool
	said   []turn.Said // what the text consists of, where parts of it may still be found
}

// answer is the session's side of a reply: what it will say, and what was done for it.
type answer struct {
	id      int
	purpose turn.Purpose
	parts   []*part
	calls   [][]agent.ToolCall // that have finished, by the step of thinking that made them
	step    int
	running []agent.ToolCall // calls that are under way
	used    bool             // the present step has made calls

	anchor  time.Duration // the customer's last voiced packet; negative when the reply answers nobody
	quiet   time.Duration // of a re-engagement: how long nobody has spoken
	marks   parley.Latency
	from    time.Duration // its first sound left
	sounded bool
	over    bool // nothing of it will be heard any more
	cut     bool // the customer cut it off
	thought bool // all of it is there

	failed error // why the thinking did

	language string   // in which it is said
	among    []string // the languages of who says it, if there are several

	speech *speech   // the synthesizer's
	think  *thinking // the model's
	asked  []*asking // a realtime model's
	rounds int       // of calls that it made
	keys   []string  // that it answers
}

// customer adds what the customer said.
func (b *transcript) customer(a turn.Action) {
	b.entries = append(b.entries, &entry{text: a.Text, digits: a.Digits, from: a.From, said: a.Said, heard: a.Heard})
}

// understood takes the text of an utterance that is already in the transcript, and reports whether it is.
func (b *transcript) understood(n int, text string, final bool) (known bool) {
	for _, e := range b.entries {
		i := slices.IndexFunc(e.said, func(s turn.Said) bool { return s.N == n })
		if i < 0 || e.said[i].Final {
			continue
		}
		known = true
		if s := &e.said[i]; text != "" || final {
			s.Text, s.Final = text, final
		}
		var texts []string
		for _, s := range e.said {
			if text := strings.Join(strings.Fields(s.Text), " "); text != "" {
				texts = append(texts, text)
			}
		}
		e.text = strings.Join(texts, " ")
	}
	return known
}

// has reports whether an utterance is in the transcript.
func (b *transcript) has(n int) bool {
	return slices.ContainsFunc(b.entries, func(e *entry) bool {
		return slices.ContainsFunc(e.said, func(s turn.Said) bool { return s.N == n })
	})
}

// open reports whether part of its text is still being recognized.
func (e *entry) open() bool {
	return slices.ContainsFunc(e.said, func(s turn.Said) bool { return !s.Final })
}

// close gives up on texts that are still being recognized: the call is over.
func (b *transcript) close() {
	for _, e := range b.entries {
		e.said = nil
	}
	b.settle()
}

// customers reports whether the customer said it.
func (e *entry) customers() bool { return e.answer == nil && e.guest == nil && e.news == "" }

// after is what the customer or the assistant said after entry i, nil if they said nothing.
func (b *transcript) after(i int) *entry {
	for _, e := range b.entries[i+1:] {
		if e.guest == nil && e.news == "" {
			return e
		}
	}
	return nil
}

// assistant adds a reply.
func (b *transcript) assistant(a *answer) { b.entries = append(b.entries, &entry{answer: a}) }

// join notes that the customer continued what they said last.
func (b *transcript) join() {
	for i := len(b.entries) - 1; i >= 0; i-- {
		if e := b.entries[i]; e.customers() {
			e.joined = true
			return
		}
	}
}

// settle reports the turns that won't change any more.
func (b *transcript) settle() {
	for _, e := range b.entries {
		if e.told || e.joined || e.answer != nil && !e.answer.over {
			continue
		}
		if e.open() {
			return // what follows is told after it
		}
		if e.customers() && !b.answered(e) {
			continue
		}
		e.told = true
		if t, ok := b.turn(e); ok && b.tell != nil {
			b.tell(Event{Kind: TurnEnded, Turn: t})
		}
	}
}

// answered reports whether a customer's turn can no longer be joined by another: its reply was heard or is over, or
// there is none.
func (b *transcript) answered(e *entry) bool {
	for i, other := range b.entries {
		if other == e {
			next := b.after(i)
			return next == nil || next.answer == nil || next.answer.sounded || next.answer.over
		}
	}
	return true
}

// turn is an entry as it appears in the transcript. It is false when nothing of it was heard.
func (b *transcript) turn(e *entry) (parley.CallTurn, bool) {
	if e.news != "" {
		return parley.CallTurn{}, false
	}
	if e.guest != nil {
		return parley.CallTurn{Speaker: e.guest.Kind.Speaker(), Text: e.text, StartedAtMS: e.from.Milliseconds(),
			Language: e.spoke, Whispered: e.mode == parley.LegWhisper}, true
	}
	if e.answer == nil {
		return parley.CallTurn{Speaker: parley.SpeakerCustomer, Text: e.text, StartedAtMS: e.from.Milliseconds(),
			Language: b.language(e.heard)}, e.text != "" && !e.joined
	}
	a := e.answer
	text, all := a.heard(b.out, -1)
	t := parley.CallTurn{Speaker: parley.SpeakerAssistant, Text: text, StartedAtMS: a.from.Milliseconds(),
		Language: a.spokenIn(text), Interrupted: a.cut && !(all && a.thought)}
	if a.anchor >= 0 && a.sounded {
		marks := a.marks
		t.Latency = &marks
	}
	return t, text != ""
}

// turns is the transcript.
func (b *transcript) turns() []parley.CallTurn {
	out := []parley.CallTurn{}
	for _, e := range b.entries {
		if t, ok := b.turn(e); ok {
			out = append(out, t)
		}
	}
	return out
}

// heardWords says whether any words of the customer's were.
func (b *transcript) heardWords() bool {
	return slices.ContainsFunc(b.entries, func(e *entry) bool { return e.answer == nil && strings.TrimSpace(e.text) != "" })
}

// calls lists the tools that were used, in order.
func (b *transcript) calls() []agent.ToolCall {
	var out []agent.ToolCall
	for _, e := range b.entries {
		if e.answer != nil {
			for _, step := range e.answer.calls {
				for _, c := range step {
					c.Result = cmp.Or(b.late[c.Result], c.Result)
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// history is what the model is given: what was heard and what was done.
func (b *transcript) history() []ai.Message {
	var out []ai.Message
	known := "" // what the model knows already of a turn that went on
	for i, e := range b.entries {
		if e.answer != nil {
			out = append(out, e.answer.messages(b.out)...)
			continue
		}
		if e.guest != nil {
			out = append(out, e.message())
			continue
		}
		if e.news != "" {
			out = append(out, ai.Message{Role: ai.User, Text: e.news})
			continue
		}
		if e.joined {
			next := b.after(i)
			if next == nil || next.answer == nil || len(next.answer.calls) == 0 {
				continue // the turn that follows says it
			}
		}
		if text := strings.TrimSpace(strings.TrimPrefix(e.text, known)); text != "" {
			if e.digits != "" {
				text += " [digits: " + e.digits + "]"
			}
			out = append(out, ai.Message{Role: ai.User, Text: text})
		}
		if known = ""; e.joined {
			known = e.text
		}
	}
	return out
}

// heard returns the text of a reply as far as it was heard, and whether that is all of it: the text of one step of
// thinking, or (-1) the text as it appears in the transcript.
func (a *answer) heard(out *playout, step int) (text string, all bool) {
	var b strings.Builder
	all = true
	apart := false // a fixed sentence brings no space with it
	for _, p := range a.parts {
		h := out.heard(p)
		if step < 0 || p.step == step && !p.aside && !p.told {
			if b.Len() > 0 && h != "" && (apart || p.keep) {
				b.WriteByte(' ')
			}
			b.WriteString(h)
			apart = p.keep
		}
		all = all && h == p.text
	}
	return strings.TrimSpace(b.String()), all
}

// messages is the reply as the model made it: texts, calls and results in order, as far as they were heard.
func (a *answer) messages(heard *playout) []ai.Message {
	var out []ai.Message
	for step := 0; step <= a.step; step++ {
		text, _ := a.heard(heard, step)
		var calls []agent.ToolCall
		if step < len(a.calls) {
			calls = a.calls[step]
		}
		if len(calls) == 0 {
			if text != "" {
				out = append(out, ai.Message{Role: ai.Assistant, Text: text})
			}
			continue
		}
		replay := agent.Replay("", calls)
		replay[0].Text = text
		out = append(out, replay...)
	}
	return out
}

// called marks the start of a call, finished its end, and stopped that of one that was given up.
func (a *answer) called(c agent.ToolCall) {
	if len(a.running) == 0 && a.used {
		a.step++
	}
	a.used = true
	a.running = append(a.running, c)
}

func (a *answer) stopped(c agent.ToolCall) {
	if i := slices.IndexFunc(a.running, func(o agent.ToolCall) bool { return o.ID == c.ID && o.Name == c.Name }); i >= 0 {
		a.running = slices.Delete(a.running, i, i+1)
	}
}

func (a *answer) finished(c agent.ToolCall) {
	a.stopped(c)
	for len(a.calls) <= a.step {
		a.calls = append(a.calls, nil)
	}
	a.calls[a.step] = append(a.calls[a.step], c)
}

// wrote is called when the model writes: after calls, that is another step.
func (a *answer) wrote() {
	if a.used && len(a.running) == 0 {
		a.step++
		a.used = false
	}
}

// question is what the assistant last said, as far as it was heard.
func (b *transcript) question() string {
	for _, e := range slices.Backward(b.entries) {
		if e.answer == nil {
			continue
		}
		if text, _ := e.answer.heard(b.out, -1); text != "" {
			return text
		}
	}
	return ""
}

// asked is what the customer last said.
func (b *transcript) asked() string {
	for i := len(b.entries) - 1; i >= 0; i-- {
		if e := b.entries[i]; e.customers() {
			return e.text
		}
	}
	return ""
}
