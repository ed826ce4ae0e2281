package voicetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/voice"
)

// Play performs a dialogue script on fake time: a play with a customer, an assistant, and vendors who do as they are
// told.
//
// Each line is a statement, in the order of the play; # begins a comment. Texts are in quotes, times as in 1.5s or
// 300ms. What is not said otherwise is an assistant with the defaults of the API, but no noise cancellation: its
// frames are marked.
//
//	assistant FIELD JSON                    a field of the assistant
//	initial|reengagement|mailbox "…"        its texts
//	recorded "…"                            what somebody has spoken in place of the mailbox's
//	language CODE, languages CODE CODE…     the first is the assistant's own; what is said in another is heard as "CODE: …"
//	outbound, speculate, loosely   loosely: what is said is not what is written
//	model answers "…" [after T] [each T] [calls NAME JSON]…, model calls NAME JSON…, model fails [KIND], model hangs
//	tool NAME answers "…" [after T] [fills "…" "…"] [async], tool NAME fails
//	voice delay|pace T, voice fails|hangs N, voice breaks "…"
//	ear delay T, ear partials off, ear loses|refuses|drops N
//	ear turns T T                           it finds turns: after so much silence one may be over, and after so much it is
//	detector says P to "…" [after T]        how likely a turn with this text is over; it fails with other texts
//	mind connects after T, mind lives T, mind drops|loses|refuses N, mind pauses T, mind transcribes late    of a model that hears for itself
//	mind told N cuts                        how often it was told how much of something was heard
//	transfer works|fails [after T], hand ID initial "…", hand ID fails
//
//	customer says "…" for T [in CODE] [doubted P] [like humming|words|ending|more] [N dB fainter]   in: the ear tells the language; doubted:
//	                                        it tells how likely nobody spoke; like: the detector tells by the sound
//	customer coughs|beeps|faxes|plays for T (plays: music), customer presses KEYS [every T], customer holds for T, customer hangs up
//	meanwhile customer|somebody …           the same, without waiting until it is said
//	hang up REASON                          from outside
//	wait T
//
//	assistant says "…" [within T] [at T]    waits until the customer has heard it to its end; within: its first packet after their last
//	assistant begins "…" [within T]         waits for the beginning only
//	assistant goes on with "…" within T     the same, T since the end of what was heard before
//	assistant stops [within T]              waits for silence; within: after the customer began to speak
//	assistant is cut off                    what began was not heard to its end
//	assistant says nothing for T, assistant is silent, assistant is speaking
//	ends REASON [at T]                      waits for the end
//	transcript, read                        the lines that follow, indented: AI: …, Customer: … (-- at the end: interrupted);
//	                                        the messages of the model's last request as role: text
//	model told "…"                          the system prompt of the model's last request has this
//	model asked N, tool NAME ran N, dialled KEYS, answered by WHO, verdicts "KIND…", error "…",
//	failure "…" (as its owner is told; "none"), latency first_packet_ms N (of the last reply)
//	detector asked "…" in CODE after "…"    what it was asked last: a text, in a language, after what the assistant has said
//	eager replies N used N                  how many were begun before the turn's end, and used
//	turns in CODE CODE…                     the languages of the turns of the transcript
//	ahead "hit miss …"                      what became of that, as the turns of the transcript show it
func Play(t *testing.T, path string) { PlayIn(t, path, "pipeline") }

// PlayIn performs it in another mode: multimodal, where a Mind says everything; alike, where the Voice says what must
// be said word by word; or dualplex.
func PlayIn(t *testing.T, path, mode string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, path)
		p.mode = mode
		p.session.Persona = p.persona(1)
		defer p.report()
		lines := bufio.NewScanner(strings.NewReader(string(text)))
		var block []string
		var head string
		n := 0
		for lines.Scan() {
			raw := lines.Text()
			if n++; strings.HasPrefix(raw, " ") && head != "" {
				block = append(block, strings.TrimSpace(raw))
				continue
			}
			p.block(head, block)
			head, block = "", nil
			words := tokens(raw)
			if len(words) == 0 {
				continue
			}
			p.line = n
			if words[0] == "transcript" || words[0] == "read" {
				head = words[0]
				continue
			}
			p.perform(words, raw)
		}
		p.block(head, block)
		p.finish()
	})
}

// play is a script being performed.
type play struct {
	t    *testing.T
	path string
	line int

	session    voice.Session
	leg        *Leg
	brain      *Brain
	voice      *Voice
	recognizer *Listener
	mind       *Mind
	oracle     *oracle
	tools      map[string]*prop
	heirs      map[int64]voice.Persona

	cancel  context.CancelCauseFunc
	started bool
	done    chan struct{}
	result  voice.Result
	at      time.Duration // when it ended
	next    int           // the first thing heard that no line of the script has mentioned

	loosely bool
	mode    string

	tooled sync.WaitGroup // tools that run: one in the background outlives the call

	mu  sync.Mutex
	log []string
}

// prop is a tool of the play.
type prop struct {
	answer string
	after  time.Duration
	err    error
	ran    int

	fillers [2]string
	async   bool
}

func newPlay(t *testing.T, path string) *play {
	p := &play{t: t, path: path, brain: &Brain{}, voice: &Voice{}, recognizer: &Listener{}, tools: map[string]*prop{},
		heirs: map[int64]voice.Persona{}, done: make(chan struct{})}
	p.mind = &Mind{Brain: p.brain, Voice: p.voice, Recognizer: p.recognizer}
	p.leg = NewLeg(p.voice)
	p.session = voice.Session{
		Persona: p.persona(1),
		Detect:  func(audio.Rate) voice.Detector { return &Detector{} },
		Hand: func(_ context.Context, id int64) (voice.Persona, error) {
			if h, ok := p.heirs[id]; ok {
				return h, nil
			}
			return voice.Persona{}, errors.New("there is no such assistant")
		},
		Tell: func(e voice.Event) {
			switch e.Kind {
			case voice.TurnEnded:
				p.note("turn: %s: %q interrupted=%v latency=%+v", e.Turn.Speaker, e.Turn.Text, e.Turn.Interrupted,
					e.Turn.Latency)
			case voice.ToolUsed:
				p.note("tool: %s %s -> %s", e.Call.Name, e.Call.Arguments, e.Call.Result)
			default:
				p.note("%s: %s%s", e.Kind, e.Text, e.AnsweredBy)
			}
		},
	}
	return p
}

func (p *play) persona(id int64) voice.Persona {
	a := &parley.Assistant{
		ID: id, Name: "Test", AllowInterruptions: true, InterruptSensitivity: 0.5, EndpointType: "vad",
		EndpointSensitivity: 0.5,
		SpeechSpeed:         100, VoiceStability: 70, VoiceSimilarity: 50, AmbientSoundVolume: 50, AmbientSound: "off",
		MaxDuration: 600, MaxSilenceDuration: 40, ReengagementInterval: 30, EndCallOnVoicemail: true,
	}
	who := voice.Persona{
		Assistant: a, Synthesizer: ai.Streamed(p.voice), Recognizer: p.recognizer, Voice: "test", Language: "en",
		Think: func(history []ai.Message, sink agent.Sink) *agent.Turn {
			turn := &agent.Turn{Model: p.brain, System: fmt.Sprint("assistant ", id), History: history, Sink: sink}
			for name, prop := range p.tools {
				tool := agent.Tool{Tool: ai.Tool{Name: name}, Fillers: prop.fillers, Run: prop.run(p)}
				if prop.async {
					tool.Async = tool.Run
				}
				turn.Tools = append(turn.Tools, tool)
			}
			return turn
		},
	}
	if p.mode != "pipeline" {
		who.Realtime, who.Recognizer, who.Writes = p.mind, nil, p.mode == "dualplex"
	}
	if p.mode == "multimodal" {
		who.Synthesizer = ai.Aloud{Model: p.mind}
	}
	return who
}

func (o *prop) run(p *play) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, _ json.RawMessage) (string, error) {
		p.tooled.Add(1)
		defer p.tooled.Done()
		p.mu.Lock()
		o.ran++
		p.mu.Unlock()
		if err := sleep(ctx, o.after); err != nil {
			return "", err
		}
		return o.answer, o.err
	}
}

func (p *play) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, fmt.Sprintf("%8v ", p.leg.state().at)+fmt.Sprintf(format, args...))
}

// report prints what happened when something differs from the script.
func (p *play) report() {
	if !p.t.Failed() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.t.Log("what happened:\n" + strings.Join(p.log, "\n"))
	for _, h := range p.leg.state().heard {
		p.t.Logf("heard %v-%v %d/%d %q", h.From, h.To, h.Frames, h.Whole, h.Text)
	}
	for i, r := range p.brain.Asked() {
		p.t.Logf("request %d: %+v", i+1, r.Messages)
	}
	p.t.Logf("result: %+v", p.result)
}

func (p *play) errorf(format string, args ...any) {
	p.t.Helper()
	p.t.Errorf("%s:%d: "+format, append([]any{p.path, p.line}, args...)...)
}

func (p *play) fatalf(format string, args ...any) {
	p.t.Helper()
	p.errorf(format, args...)
	if p.started {
		p.cancel(parley.Shutdown)
		<-p.done
		p.tooled.Wait()
	}
	p.t.FailNow()
}

// begin answers the call.
func (p *play) begin() {
	if p.started {
		return
	}
	p.started = true
	var ctx context.Context
	ctx, p.cancel = context.WithCancelCause(context.Background())
	go func() {
		defer close(p.done)
		p.result = p.session.Run(ctx, p.leg)
		p.at = p.leg.state().at
	}()
	synctest.Wait()
}

// hangUp has the customer hang up, unless the call has ended.
func (p *play) hangUp() {
	p.begin()
	select {
	case <-p.done:
	default:
		p.leg.hangUp(parley.CustomerHangup)
		<-p.done
	}
}

// finish ends the call, and checks what must hold for every call.
func (p *play) finish() {
	p.hangUp()
	p.cancel(nil)
	p.tooled.Wait()
	synctest.Wait()
	s := p.leg.state()
	if left := p.brain.Left(); left > 0 {
		p.errorf("the model was not asked for %d answers of the script", left)
	}
	if p.brain.Extra > 0 {
		p.errorf("the model was asked %d times more than the script says", p.brain.Extra)
	}
	for _, h := range s.heard[min(p.next, len(s.heard)):] {
		p.errorf("the customer heard what the script doesn't mention: %q (%d of %d frames)", h.Text, h.Frames, h.Whole)
	}
	if p.leg.gaps > 0 {
		p.errorf("%d times, a sentence didn't begin at its beginning or go on where it stopped", p.leg.gaps)
	}
	if !p.loosely {
		p.checkTranscript(s.heard)
	}
}

// checkTranscript compares the transcript with what was heard.
func (p *play) checkTranscript(heard []Heard) {
	var all strings.Builder
	for _, turn := range p.result.Turns {
		if turn.Speaker == parley.SpeakerAssistant {
			all.WriteString(" " + strings.Join(strings.Fields(turn.Text), " "))
		}
		if turn.Text == "" {
			p.errorf("an empty turn in %+v", p.result.Turns)
		}
	}
	rest := all.String()
	for _, h := range heard {
		words := strings.Fields(h.Text)
		n := int(math.Round(float64(h.Frames) / float64(h.Whole) * float64(len(words))))
		for n > 0 && !strings.Contains(rest, strings.Join(words[:n], " ")) {
			n--
		}
		if want := float64(h.Frames)/float64(h.Whole)*float64(len(words)) - 1.5; float64(n) < want {
			p.errorf("the transcript %q lacks what was heard: %d of %d frames of %q", all.String(), h.Frames,
				h.Whole, h.Text)
		}
	}
}

// tokens splits a line into words and quoted texts, which keep their opening quote.
func tokens(line string) []string {
	var out []string
	for line = strings.TrimSpace(line); line != "" && line[0] != '#'; line = strings.TrimSpace(line) {
		switch line[0] {
		case '"':
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return append(out, line)
			}
			text, _ := strconv.Unquote(quoted)
			out, line = append(out, `"`+text), line[len(quoted):]
		case '{', '[':
			dec := json.NewDecoder(strings.NewReader(line))
			var v json.RawMessage
			if dec.Decode(&v) != nil {
				return append(out, line)
			}
			n := int(dec.InputOffset())
			out, line = append(out, line[:n]), line[n:]
		default:
			i := strings.IndexAny(line, " \t")
			if i < 0 {
				i = len(line)
			}
			out, line = append(out, line[:i]), line[i:]
		}
	}
	return out
}
