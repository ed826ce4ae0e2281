package voicetest

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/parley"
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
		p.setRecognizer(a)
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
	} else if a.is("misfits") {
		o.err = agent.Misfit("The tool was not called: the argument n: got null, want number.")
	} else if a.is("answers") {
		o.answer = a.text()
	}
	o.after, _ = a.timeOf("after")
	if a.is("fills") {
		o.fillers = [2]string{a.text(), a.text()}
	}
	o.async = a.is("async")
	p.tools[name] = o
}

func (p *play) setVoice(a *args) {
	p.voice.mu.Lock()
	defer p.voice.mu.Unlock()
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

func (p *play) setRecognizer(a *args) {
	p.recognizer.mu.Lock()
	defer p.recognizer.mu.Unlock()
	switch w := a.word(); w {
	case "delay":
		p.recognizer.Delay = a.time()
	case "partials":
		p.recognizer.NoPartials = a.word() == "off"
	case "loses":
		p.recognizer.Fails = a.number()
	case "refuses":
		p.recognizer.Refuses = a.number()
	case "drops":
		p.recognizer.Drops = a.number()
	case "turns":
		p.recognizer.Eager, p.recognizer.End = a.time(), a.time()
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
	case "loses":
		p.mind.Loses = a.number()
	case "pauses":
		p.mind.Pause = a.time()
	case "transcribes":
		p.mind.Late = a.word() == "late"
	case "told":
		if n, got := a.number(), p.mind.Cuts(); n != got {
			p.errorf("the mind was told %d times how much was heard, not %d", got, n)
		}
		a.is("cuts")
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
		doubt := 0.0
		if a.is("doubted") {
			doubt = a.float()
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
		frames := p.recognizer.line(text, language, d)
		p.recognizer.doubt(doubt)
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
