package endpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/egress"
	"parley/internal/parley"
	"parley/internal/store"
)

// Measured is what a test of an endpoint found.
type Measured struct {
	OK       bool      `json:"ok" doc:"Nothing fails and nothing is missing."`
	Findings []Finding `json:"findings"`
}

// Finding is one thing that was measured.
type Finding struct {
	What  string `json:"what" enum:"first_token,streaming,tools,cancel,first_sound,transcript" doc:"first_token, first_sound and transcript: how long the first word, the first sound, the text took. streaming: it answers piece by piece. tools: it calls a tool and uses the result. cancel: it stops when told to, and goes on afterwards."`
	State string `json:"state" enum:"ok,missing,failed"`
	MS    *int64 `json:"ms" doc:"Milliseconds; null where nothing was measured."`
	Text  string `json:"text" doc:"What was found, and what to do."`
}

// The states of findings.
const (
	fine    = "ok"
	missing = "missing"
	failing = "failed"
)

const (
	testTime   = 60 * time.Second
	slowFirst  = 1500 * time.Millisecond // on the telephone, silence is noticed
	slowCancel = time.Second
	maxSay     = 300 // characters of what a server said of its failure
)

// Test measures one of a user's endpoints, as often as the account may.
func (b *Book) Test(ctx context.Context, userID, id int64) (*Measured, error) {
	if !b.May() {
		return nil, errOff
	}
	e, err := b.db.Endpoint(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	err = b.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Meter(ctx, userID, parley.Now(), parley.LimitEndpointRate)
	})
	if err != nil {
		return nil, err
	}
	t := &trial{Measured: &Measured{OK: true, Findings: []Finding{}}, endpoint: e}
	v, err := b.Open(e)
	if err != nil {
		t.failed("first_token", err)
		return t.Measured, nil
	}
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	p := ai.Party{Of: "test " + uuid.NewString(), Name: "Test", Language: "en"}
	ctx = ai.ForParty(ctx, p)
	defer b.Over(p.Of)
	switch e.Kind {
	case parley.EndpointLLM, parley.EndpointAgent:
		t.model(ctx, v)
	case parley.EndpointTTS:
		t.voice(ctx, v)
	case parley.EndpointSTT:
		t.recognizer(ctx, v)
	}
	return t.Measured, nil
}

// trial is a test that is under way.
type trial struct {
	*Measured
	endpoint *parley.Endpoint
}

func (t *trial) found(what, state string, took time.Duration, format string, a ...any) {
	f := Finding{What: what, State: state, Text: fmt.Sprintf(format, a...)}
	if took > 0 {
		n := took.Milliseconds()
		f.MS = &n
	}
	t.OK = t.OK && state == fine
	t.Findings = append(t.Findings, f)
}

// failed notes why something failed: what the server said, without the secrets that it was sent.
func (t *trial) failed(what string, err error) {
	text := ""
	switch failed, ok := errors.AsType[*ai.Error](err); {
	case ok && failed.Kind == ai.Unreachable:
		text = egress.Explain(err)
	case ok:
		text = string(failed.Kind) + ": " + failed.Err.Error()
	default:
		text = egress.Explain(err)
	}
	for _, secret := range secrets(t.endpoint) {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	if r := []rune(text); len(r) > maxSay {
		text = string(r[:maxSay]) + "…"
	}
	t.found(what, failing, 0, "%s", text)
}

// errEnough ends a reply that is wanted no longer.
var errEnough = errors.New("enough")

const (
	testPrompt = "You are being tested. Do exactly what you are asked, and nothing else."
	testCount  = "Count from one to thirty, in words, with commas between them."
	testTool   = "What is the code of the day? Find it out with the tool code_of_the_day, then tell it."
	testCode   = "blue-742"
)

// model measures a language model.
func (t *trial) model(ctx context.Context, v *Vendors) {
	m, err := v.Model()
	if err != nil {
		t.failed("first_token", err)
		return
	}
	req := ai.Request{System: testPrompt, Messages: []ai.Message{{Role: ai.User, Text: testCount}}}
	began, first, pieces := time.Now(), time.Duration(0), 0
	reply, err := m.Generate(ctx, req, func(ai.Delta) error {
		if pieces++; pieces == 1 {
			first = time.Since(began)
		}
		return nil
	})
	switch {
	case err != nil:
		t.failed("first_token", err)
		return
	case reply.Text == "":
		t.found("first_token", failing, 0, "It answered without a word.")
		return
	case first > slowFirst:
		t.found("first_token", missing, first, "The first word took long for the telephone: at most %d ms is good.", slowFirst.Milliseconds())
	default:
		t.found("first_token", fine, first, "The first word came in time.")
	}
	if pieces > 1 {
		t.found("streaming", fine, time.Since(began), "The reply came in %d pieces.", pieces)
	} else {
		t.found("streaming", missing, time.Since(began),
			"The reply came in one piece: nothing is said before all of it is there. Send it word by word.")
	}
	t.tools(ctx, m)
	t.cancel(ctx, m, req)
}

// tools sees whether a model calls a tool, and uses the result.
func (t *trial) tools(ctx context.Context, m ai.Model) {
	req := ai.Request{System: testPrompt, Messages: []ai.Message{{Role: ai.User, Text: testTool}}, Tools: []ai.Tool{{Name: "code_of_the_day",
		Description: "Returns the code of the day.", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}}
	began := time.Now()
	reply, err := m.Generate(ctx, req, func(ai.Delta) error { return nil })
	switch {
	case err != nil:
		t.failed("tools", err)
		return
	case len(reply.Calls) == 0:
		t.found("tools", missing, time.Since(began), "It answered in words in place of a call: an assistant's tools would not be used.")
		return
	}
	req.Messages = append(req.Messages, ai.Message{Role: ai.Assistant, Text: reply.Text, Calls: reply.Calls})
	for _, c := range reply.Calls {
		req.Messages = append(req.Messages, ai.Message{Role: ai.ToolRole, CallID: c.ID, Text: testCode})
	}
	reply, err = m.Generate(ctx, req, func(ai.Delta) error { return nil })
	switch {
	case err != nil:
		t.failed("tools", err)
	case !strings.Contains(reply.Text, testCode):
		t.found("tools", missing, time.Since(began), "It called the tool, and did not tell its result.")
	default:
		t.found("tools", fine, time.Since(began), "It called the tool and told its result.")
	}
}

// cancel sees whether a reply can be broken off, and the next one comes.
func (t *trial) cancel(ctx context.Context, m ai.Model, req ai.Request) {
	var stopped time.Time
	_, err := m.Generate(ctx, req, func(ai.Delta) error {
		stopped = time.Now()
		return errEnough
	})
	took := time.Since(stopped)
	if !errors.Is(err, errEnough) {
		t.failed("cancel", err)
		return
	}
	req.Messages = append(req.Messages, ai.Message{Role: ai.Assistant, Text: "One"}, ai.Message{Role: ai.User, Text: "Say: stopped."})
	reply, err := m.Generate(ctx, req, func(ai.Delta) error { return nil })
	switch {
	case err != nil:
		t.failed("cancel", err)
	case reply.Text == "":
		t.found("cancel", failing, took, "It said nothing after a reply that was broken off.")
	case took > slowCancel:
		t.found("cancel", missing, took, "It took long to stop.")
	default:
		t.found("cancel", fine, took, "It stopped, and answered the next turn.")
	}
}

// voice measures a synthesizer.
func (t *trial) voice(ctx context.Context, v *Vendors) {
	s, err := v.Synthesizer()
	if err != nil {
		t.failed("first_sound", err)
		return
	}
	as := ai.Speech{Voice: t.endpoint.Voices[0].Code, Language: cmp.Or(t.endpoint.Voices[0].Language, "en"), Rate: audio.Narrow}
	began, first, pieces, samples := time.Now(), time.Duration(0), 0, 0
	err = ai.Say(ctx, s, as, "This is a test of the voice, with a sentence that takes a few seconds to say.", func(pcm []int16) error {
		if pieces++; pieces == 1 {
			first = time.Since(began)
		}
		samples += len(pcm)
		return nil
	})
	long := time.Duration(samples) * time.Second / time.Duration(audio.Narrow)
	switch {
	case err != nil:
		t.failed("first_sound", err)
		return
	case long < time.Second/2:
		t.found("first_sound", failing, first, "It made %.1f s of sound for a sentence of a few seconds.", long.Seconds())
		return
	case first > slowFirst:
		t.found("first_sound", missing, first, "The first sound took long for the telephone: at most %d ms is good.", slowFirst.Milliseconds())
	default:
		t.found("first_sound", fine, first, "It made %.1f s of sound.", long.Seconds())
	}
	if pieces > 1 {
		t.found("streaming", fine, time.Since(began), "The sound came in %d pieces.", pieces)
	} else {
		t.found("streaming", missing, time.Since(began), "The sound came in one piece: nothing is heard before all of it is there.")
	}
	var stopped time.Time
	err = ai.Say(ctx, s, as, "This sentence is broken off.", func([]int16) error {
		stopped = time.Now()
		return errEnough
	})
	if took := time.Since(stopped); !errors.Is(err, errEnough) {
		t.failed("cancel", err)
	} else if took > slowCancel {
		t.found("cancel", missing, took, "It took long to stop.")
	} else {
		t.found("cancel", fine, took, "It stopped.")
	}
}

// recognizer measures a recognizer with a second of a sound that is no speech: what counts is that a text comes, empty as it
// may be.
func (t *trial) recognizer(ctx context.Context, v *Vendors) {
	r, err := v.Recognizer()
	if err != nil {
		t.failed("transcript", err)
		return
	}
	recognition, err := r.Listen(ctx, ai.Hearing{Language: "en", Rate: audio.Narrow})
	if err != nil {
		t.failed("transcript", err)
		return
	}
	defer recognition.Close()
	frame := make([]int16, audio.Narrow/50)
	for i := range frame {
		frame[i] = int16(6000 * math.Sin(2*math.Pi*440*float64(i)/float64(audio.Narrow)))
	}
	for range 50 {
		recognition.Write(frame)
	}
	recognition.End()
	began := time.Now()
	for {
		select {
		case said, ok := <-recognition.Transcripts():
			switch {
			case !ok:
				t.found("transcript", failing, 0, "The connection was closed before a text came.")
				return
			case said.Final && said.Err != nil:
				t.failed("transcript", said.Err)
				return
			case said.Final:
				t.found("transcript", fine, time.Since(began), "A text came for a second of a tone: %q.", said.Text)
				return
			}
		case <-ctx.Done():
			t.failed("transcript", context.Cause(ctx))
			return
		}
	}
}
