package voicetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/voice"
)

// args are the words of a statement that have not been read yet.
type args struct {
	p     *play
	words []string
}

func (a *args) word() string {
	if len(a.words) == 0 {
		a.p.fatalf("something is missing at the end of the line")
	}
	w := a.words[0]
	a.words = a.words[1:]
	return w
}

func (a *args) text() string {
	w := a.word()
	if !strings.HasPrefix(w, `"`) {
		a.p.fatalf("%s is no text in quotes", w)
	}
	return w[1:]
}

func (a *args) time() time.Duration {
	w := a.word()
	d, err := time.ParseDuration(w)
	if err != nil {
		a.p.fatalf("%s is no time", w)
	}
	return d
}

func (a *args) float() float64 {
	w := a.word()
	x, err := strconv.ParseFloat(w, 64)
	if err != nil {
		a.p.fatalf("%s is no number", w)
	}
	return x
}

func (a *args) number() int {
	w := a.word()
	n, err := strconv.Atoi(w)
	if err != nil {
		a.p.fatalf("%s is no number", w)
	}
	return n
}

// after reads an optional word with what follows it.
func (a *args) is(words ...string) bool {
	if len(a.words) < len(words) || !slices.Equal(a.words[:len(words)], words) {
		return false
	}
	a.words = a.words[len(words):]
	return true
}

func (a *args) timeOf(word string) (time.Duration, bool) {
	if a.is(word) {
		return a.time(), true
	}
	return 0, false
}

// perform does what a line says.
func (p *play) perform(words []string, raw string) {
	a := &args{p, words}
	switch verb := a.word(); verb {
	case "assistant":
		if p.asks(a) {
			break
		}
		field, value := a.word(), strings.TrimSpace(raw)
		value = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(value, "assistant")), field))
		a.words = nil
		if err := json.Unmarshal([]byte(`{"`+field+`":`+value+`}`), p.session.Persona.Assistant); err != nil {
			p.fatalf("%v", err)
		}
	case "initial":
		p.session.Persona.Initial = a.text()
	case "reengagement":
		p.session.Persona.Reengagement = a.text()
	case "mailbox":
		p.session.Persona.VoicemailMessage = a.text()
	case "recorded":
		var pcm []int16
		err := p.voice.Say(p.t.Context(), ai.Speech{Voice: "test", Rate: Rate}, a.text(), func(piece []int16) error {
			pcm = append(pcm, piece...)
			return nil
		})
		if err != nil {
			p.fatalf("%v", err)
		}
		p.session.Persona.VoicemailSound = map[audio.Rate][]int16{Rate: pcm}
	case "language":
		p.session.Persona.Language = a.word()
	case "languages":
		who := &p.session.Persona
		for _, l := range a.words {
			t := voice.Tongue{Language: l, Name: "language " + l, Synthesizer: who.Synthesizer, Voice: "test"}
			if len(who.Tongues) > 0 {
				t.Voice = "test " + l
			}
			who.Tongues = append(who.Tongues, t)
		}
		who.Language, a.words = who.Tongues[0].Language, nil
	case "loosely":
		p.loosely = true
	case "speculate":
		p.session.Speculate = true
	case "outbound":
		p.session.Outbound = true
	case "model":
		p.model(a)
	case "tool":
		p.tool(a)
	case "voice":
		p.setVoice(a)
	case "ear":
		p.setEar(a)
	case "mind":
		p.setMind(a)
	case "detector":
		p.detector(a)
	case "transfer":
		p.transfer(a)
	case "hand":
		p.hand(a)
	case "customer":
		p.begin()
		p.customer(a, true)
	case "meanwhile":
		p.begin()
		a.word()
		p.customer(a, false)
	case "hang":
		p.begin()
		a.word()
		p.cancel(parley.EndedReason(a.word()))
	case "wait":
		p.begin()
		time.Sleep(a.time())
	default:
		p.check(verb, a)
	}
	if len(a.words) > 0 {
		p.fatalf("what does %q mean?", strings.Join(a.words, " "))
	}
	if p.started {
		synctest.Wait()
	}
}

var kinds = map[string]ai.Kind{"overloaded": ai.Overloaded, "refused": ai.Refused, "stalled": ai.Stalled,
	"config": ai.Config}

func (p *play) model(a *args) {
	var t Thought
	switch {
	case a.is("asked"):
		if n := a.number(); len(p.brain.Asked()) != n {
			p.errorf("the model was asked %d times, not %d", len(p.brain.Asked()), n)
		}
		return
	case a.is("told"):
		asked, text := p.brain.Asked(), a.text()
		if len(asked) == 0 || !strings.Contains(asked[len(asked)-1].System, text) {
			p.errorf("the model was not told %q by its system prompt: %+v", text, asked)
		}
		return
	case a.is("answers"):
		t.Text = a.text()
	case a.is("fails"):
		kind := ai.Overloaded
		if len(a.words) > 0 {
			kind = kinds[a.word()]
		}
		t.Err = &ai.Error{Kind: kind, Err: errors.New("as it is written")}
	case a.is("hangs"):
		t.Hang = true
	}
	for len(a.words) > 0 {
		switch w := a.word(); w {
		case "after":
			t.After = a.time()
		case "each":
			t.Each = a.time()
		case "calls":
			t.Calls = append(t.Calls, ai.ToolCall{Name: a.word(), Arguments: a.word()})
		case "hangs":
			t.Hang = true
		case "fails":
			t.Err = &ai.Error{Kind: ai.Interrupted, Err: errors.New("as it is written")}
		default:
			p.fatalf("a model doesn't %s", w)
		}
	}
	p.brain.Script(t)
}

func (p *play) tool(a *args) {
	name := a.word()
	if a.is("ran") {
		p.mu.Lock()
		ran := p.tools[name].ran
		p.mu.Unlock()
		if n := a.number(); ran != n {
			p.errorf("the tool ran %d times, not %d", ran, n)
		}
		return
	}
	o := &prop{}
	if a.is("fails") {
		o.err = errors.New("it failed")
	} else if a.is("answers") {
		o.answer = a.text()
	}
	o.after, _ = a.timeOf("after")
	p.tools[name] = o
}

func (p *play) setVoice(a *args) {
	switch w := a.word(); w {
	case "delay":
		p.voice.Delay = a.time()
	case "pace":
		p.voice.Pace = a.time()
	case "fails":
		p.voice.Fails = a.number()
	case "hangs":
		p.voice.Hangs = a.number()
	case "breaks":
		p.voice.Break = a.text()
	default:
		p.fatalf("a voice doesn't %s", w)
	}
}

func (p *play) setEar(a *args) {
	p.ear.mu.Lock()
	defer p.ear.mu.Unlock()
	switch w := a.word(); w {
	case "delay":
		p.ear.Delay = a.time()
	case "partials":
		p.ear.NoPartials = a.word() == "off"
	case "loses":
		p.ear.Fails = a.number()
	case "refuses":
		p.ear.Refuses = a.number()
	case "drops":
		p.ear.Drops = a.number()
	case "turns":
		p.ear.Eager, p.ear.End = a.time(), a.time()
	default:
		p.fatalf("an ear doesn't %s", w)
	}
}

func (p *play) setMind(a *args) {
	switch w := a.word(); w {
	case "connects":
		p.mind.Connecting, _ = a.timeOf("after")
	case "lives":
		p.mind.Life = a.time()
	case "drops":
		p.mind.Drops = a.number()
	case "refuses":
		p.mind.Refuses = a.number()
	case "pauses":
		p.mind.Pause = a.time()
	default:
		p.fatalf("a mind doesn't %s", w)
	}
}

// customer has the customer do something; with wait the play goes on only when that is done.
func (p *play) customer(a *args, wait bool) {
	text := ""
	switch verb := a.word(); verb {
	case "says":
		text = a.text()
		fallthrough
	case "coughs":
		d, ok := a.timeOf("for")
		if !ok {
			p.fatalf("for how long?")
		}
		language := ""
		if a.is("in") {
			language = a.word()
		}
		var sound, ends int16
		if a.is("like") {
			like := a.word()
			sound = map[string]int16{"humming": -6, "words": 6}[like]
			ends = map[string]int16{"ending": 8, "more": -8}[like]
		}
		loud := 1.
		if len(a.words) > 0 {
			if loud = math.Pow(10, -a.float()/20); !a.is("dB", "fainter") {
				p.fatalf("what is it, in dB fainter?")
			}
		}
		frames := p.ear.line(text, language, d)
		for _, f := range frames {
			f[3], f[4] = sound, ends
			for i := range f[5:] {
				f[5+i] = int16(loud * float64(f[5+i]))
			}
		}
		p.leg.say(frames...)
		if wait {
			time.Sleep(d)
		}
	case "beeps", "faxes", "plays":
		d, _ := a.timeOf("for")
		for i := range d / audio.FrameTime {
			switch verb {
			case "faxes":
				p.leg.say(tone(2100))
			case "beeps":
				p.leg.say(tone(1000))
			default:
				p.leg.say(chord(int(i) / 40))
			}
		}
		if wait {
			time.Sleep(d)
		}
	case "presses":
		keys := strings.TrimPrefix(a.word(), `"`)
		every := 300 * time.Millisecond
		if d, ok := a.timeOf("every"); ok {
			every = d
		}
		for i := range keys {
			if i > 0 {
				time.Sleep(every)
			}
			p.leg.press(keys[i])
			synctest.Wait()
		}
	case "holds":
		d, ok := a.timeOf("for")
		if !ok {
			p.fatalf("for how long?")
		}
		p.leg.hold(true)
		time.Sleep(d)
		p.leg.hold(false)
	case "hangs":
		a.word()
		p.leg.hangUp(parley.CustomerHangup)
	default:
		p.fatalf("a customer doesn't %s", verb)
	}
}

// tone is a frame of so many Hz, beginning with 0, so that it is not taken for a marked one.
func tone(hz float64) []int16 {
	f := make([]int16, Rate.FrameSize())
	for i := range f {
		f[i] = int16(8000 * math.Sin(2*math.Pi*hz*float64(i)/float64(Rate)))
	}
	return f
}

// chord is a frame of the nth chord of a tune.
func chord(n int) []int16 {
	f := make([]int16, Rate.FrameSize())
	for _, hz := range []float64{300, 400, 500, 600} {
		audio.Mix(f, tone(hz*[]float64{1, 1.5, 1.25}[n%3]), 0.2)
	}
	return f
}

// patience is how long the play waits for something to happen.
const patience = 2 * time.Minute

// until waits until ok holds, looking in the middle of each 20 ms.
func (p *play) until(what string, ok func(state) bool) state {
	for end := time.Now().Add(patience); ; {
		s := p.leg.state()
		if ok(s) {
			return s
		}
		if time.Now().After(end) {
			p.fatalf("%s didn't happen within %v", what, patience)
		}
		select {
		case <-p.done:
			if s := p.leg.state(); ok(s) {
				return s
			}
			p.fatalf("the call ended (%s) before %s", p.result.Reason, what)
		default:
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
}

// asks reads statements about the assistant's speech; it is false if this isn't one.
func (p *play) asks(a *args) bool {
	switch {
	case a.is("says", "nothing", "for"):
		p.begin()
		d := a.time()
		for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if s := p.leg.state(); len(s.heard) > p.next {
				p.fatalf("the assistant spoke at %v: %q", s.at, s.heard[len(s.heard)-1].Text)
			}
		}
	case a.is("says"):
		p.begin()
		text := a.text()
		s := p.until(fmt.Sprintf("%q to its end", text), func(s state) bool {
			return len(s.heard) > p.next && (s.heard[p.next].Frames >= s.heard[p.next].Whole ||
				s.heard[p.next].Text != text)
		})
		p.compare(s, text, a)
		p.next++
	case a.is("begins"):
		p.begin()
		text := a.text()
		s := p.until(fmt.Sprintf("the beginning of %q", text), func(s state) bool { return len(s.heard) > p.next })
		p.compare(s, text, a)
	case a.is("goes", "on", "with"):
		text := a.text()
		s := p.until(fmt.Sprintf("the beginning of %q", text), func(s state) bool { return len(s.heard) > p.next })
		d, _ := a.timeOf("within")
		if gap := s.heard[p.next].From - s.heard[p.next-1].To - audio.FrameTime; gap > d {
			p.errorf("%q began %v after what came before it, not within %v", text, gap, d)
		}
		p.compare(s, text, a)
	case a.is("stops"):
		s := p.until("silence", func(s state) bool { return !s.audible })
		if d, ok := a.timeOf("within"); ok && s.silent-s.began > d {
			p.errorf("it was silent %v after the customer began, not within %v", s.silent-s.began, d)
		}
	case a.is("is", "cut", "off"):
		s := p.leg.state()
		if len(s.heard) <= p.next || s.heard[p.next].Frames >= s.heard[p.next].Whole {
			p.fatalf("nothing is cut off: %+v", s.heard[min(p.next, len(s.heard)):])
		}
		p.next++
	case a.is("is", "silent"):
		if s := p.leg.state(); s.audible {
			p.errorf("the assistant speaks: %q", s.heard[len(s.heard)-1].Text)
		}
	case a.is("is", "speaking"):
		if s := p.leg.state(); !s.audible {
			p.errorf("the assistant is silent")
		}
	default:
		return false
	}
	return true
}

func (p *play) compare(s state, text string, a *args) {
	h := s.heard[p.next]
	if h.Text != text {
		p.fatalf("the customer heard %q, not %q", h.Text, text)
	}
	if d, ok := a.timeOf("within"); ok && h.From-s.voiced > d {
		p.errorf("%q began %v after the customer's last voiced packet, not within %v", text, h.From-s.voiced, d)
	}
	if d, ok := a.timeOf("at"); ok && (h.From < d-40*time.Millisecond || h.From > d+40*time.Millisecond) {
		p.errorf("%q began at %v, not at %v", text, h.From, d)
	}
}

// check reads statements about what happened.
func (p *play) check(verb string, a *args) {
	switch verb {
	case "ends":
		p.begin()
		reason := parley.EndedReason(a.word())
		select {
		case <-p.done:
		case <-time.After(20 * time.Minute):
			p.fatalf("the call doesn't end")
		}
		if p.result.Reason != reason {
			p.errorf("it ended with %s (%v), not %s", p.result.Reason, p.result.Err, reason)
		}
		if d, ok := a.timeOf("at"); ok && (p.at < d-60*time.Millisecond || p.at > d+60*time.Millisecond) {
			p.errorf("it ended at %v, not at %v", p.at, d)
		}
	case "dialled":
		if want, s := a.word(), p.leg.state(); s.dialled != want {
			p.errorf("dialled %q, not %q", s.dialled, want)
		}
	case "answered":
		a.word()
		if who := a.word(); string(p.result.AnsweredBy) != who {
			p.errorf("answered by %s, not %s", p.result.AnsweredBy, who)
		}
	case "verdicts":
		var kinds []string
		for _, v := range p.result.Verdicts {
			if v.Reason == "" {
				p.errorf("no reason for %v", v)
			}
			kinds = append(kinds, string(v.Kind))
		}
		if want := a.text(); strings.Join(kinds, " ") != want {
			p.errorf("verdicts %v, not %q", p.result.Verdicts, want)
		}
	case "error":
		if want := a.text(); p.result.Err == nil || !strings.Contains(p.result.Err.Error(), want) {
			p.errorf("the error is %v, not %q", p.result.Err, want)
		}
	case "failure":
		if want := a.text(); want == "none" && p.result.Failure != nil || want != "none" &&
			!strings.Contains(parley.Explanation(p.result.Failure), want) {
			p.errorf("the failure is %v, not %q", p.result.Failure, want)
		}
	case "eager":
		a.is("replies")
		begun, used := a.number(), 0
		if a.is("used") {
			used = a.number()
		}
		if got := p.result.Eager; got != (voice.Eager{Begun: begun, Used: used}) {
			p.errorf("%d replies were begun before the turn's end, and %d used", got.Begun, got.Used)
		}
	case "latency":
		p.latency(a)
	case "ahead":
		var got []string
		for _, t := range p.result.Turns {
			if t.Latency != nil && t.Latency.Ahead != "" {
				got = append(got, string(t.Latency.Ahead))
			}
		}
		if want := a.text(); strings.Join(got, " ") != want {
			p.errorf("thinking ahead was %q, not %q", got, want)
		}
	default:
		p.fatalf("there is no statement that begins with %s", verb)
	}
}

// latency checks a mark of the last reply that has any, to within a frame.
func (p *play) latency(a *args) {
	name, want := a.word(), float64(a.number())
	for i := len(p.result.Turns) - 1; i >= 0; i-- {
		if l := p.result.Turns[i].Latency; l != nil {
			raw, _ := json.Marshal(l)
			var marks map[string]float64
			_ = json.Unmarshal(raw, &marks)
			if got := marks[name]; math.Abs(got-want) > 20 {
				p.errorf("%s is %v, not %v: %s", name, got, want, raw)
			}
			return
		}
	}
	p.errorf("no reply has latencies")
}

// block compares the transcript, or what the model read, with what the script says.
func (p *play) block(head string, want []string) {
	var got []string
	switch head {
	case "":
		return
	case "transcript":
		p.begin()
		select {
		case <-p.done:
		default:
			p.leg.hangUp(parley.CustomerHangup)
			<-p.done
		}
		for _, t := range p.result.Turns {
			line := strings.Join(strings.Fields(t.Text), " ")
			if t.Speaker == parley.SpeakerAssistant {
				line = "AI: " + line
			} else {
				line = "Customer: " + line
			}
			if t.Interrupted {
				line += " --"
			}
			got = append(got, line)
		}
	case "read":
		asked := p.brain.Asked()
		if len(asked) == 0 {
			p.fatalf("the model was not asked")
		}
		for _, m := range asked[len(asked)-1].Messages {
			line := strings.TrimSpace(string(m.Role) + ": " + m.Text)
			for _, c := range m.Calls {
				line += " [" + c.Name + " " + c.Arguments + "]"
			}
			got = append(got, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(got, want) {
		p.errorf("the %s is\n    %s\nnot\n    %s", head, strings.Join(got, "\n    "), strings.Join(want, "\n    "))
	}
}
