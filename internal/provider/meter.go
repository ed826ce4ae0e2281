package provider

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"parley/internal/ai"
	"parley/internal/crash"
	"parley/internal/telemetry"
)

// What vendors are used for is noted in the ai.Tally of the conversation, by these, which stand before them. They also
// keep the vendor open as long as they are used, and tell a user whose own key was refused, and which model is gone.

// use is what a vendor was used for when it failed.
type use struct {
	part  ai.Part
	hears bool   // the model hears and speaks
	model string // "" where only the vendor knows it
}

// told is an error of a vendor; one about a model that it doesn't have, or about a user's own key, says so.
func (o *source) told(err error, u use) error {
	e, ok := errors.AsType[*ai.Error](err)
	if !ok || e.Kind != ai.Config || e.Mend != "" && !noModel(e) {
		return err
	}
	said := *e
	switch {
	case o.vendor.Endpoint:
		said.Mend = fmt.Sprintf("Your endpoint %q refuses what it was asked: its address, key, model or voice. "+
			"Test it on the console's page Endpoints.", o.vendor.Name)
	case noModel(e):
		said.Mend = o.vendor.GoneModel(u.part, u.hears, u.model, time.Now())
	case o.own:
		said.Mend = fmt.Sprintf("%s refuses your own key, or its quota, the model or the voice. Test the key on the console's page Providers.",
			o.vendor.Name)
	default:
		return err
	}
	return &said
}

// failed counts a failure of a vendor and returns it as told does. What was called off has not failed.
func (o *source) failed(ctx context.Context, err error, u use) error {
	if e, ok := errors.AsType[*ai.Error](err); ok && ctx.Err() == nil {
		telemetry.VendorFailed(string(u.part), o.vendor.Code, string(e.Kind))
	}
	return o.told(err, u)
}

// noModel reports whether a vendor says that it has no such model, or no longer. Each says it in words of its own: "The
// model `x` does not exist", "model: x" with a status of 404, "models/x is not found", "No such model/language/tier
// combination found", model_not_found, model_sunsetted.
func noModel(e *ai.Error) bool {
	text := strings.ToLower(e.Err.Error())
	if !strings.Contains(text, "model") {
		return false
	}
	for _, said := range []string{"not exist", "not found", "not_found", "no such model", "has been deprecated", "sunset", "status 404"} {
		if strings.Contains(text, said) {
			return true
		}
	}
	return false
}

// providerName is a vendor as the semantic conventions name it.
func providerName(vendor string) string {
	if vendor == "gemini" {
		return "gcp.gemini"
	}
	return vendor
}

// countedModel counts tokens.
type countedModel struct {
	ai.Model
	source *source
	code   string
}

// Generate implements ai.Model.
func (m countedModel) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	vendor, began := m.source.vendor.Code, time.Now()
	ctx, span := telemetry.Start(ctx, "chat "+m.code, trace.SpanKindClient, attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.provider.name", providerName(vendor)), attribute.String("gen_ai.request.model", m.code))
	first := true
	reply, err := m.Model.Generate(ctx, req, func(d ai.Delta) error {
		if first {
			first = false
			telemetry.VendorFirst(string(ai.TheModel), vendor, time.Since(began))
			span.AddEvent("first token")
		}
		return yield(d)
	})
	span.SetAttributes(attribute.Int("gen_ai.usage.input_tokens", reply.Usage.In),
		attribute.Int("gen_ai.usage.output_tokens", reply.Usage.Out))
	telemetry.End(span, string(ai.KindOf(err)))
	if reply.Usage != (ai.Usage{}) {
		ai.TallyOf(ctx).Spend(ai.Use{Part: ai.TheModel, Vendor: m.source.vendor.Code, Model: m.code,
			Own: m.source.own, Usage: reply.Usage})
	}
	runtime.KeepAlive(m.source)
	return reply, m.source.failed(ctx, err, use{part: ai.TheModel, model: m.code})
}

// countedVoice counts the characters that it is given to say. It is as comparable as what it stands before.
type countedVoice struct {
	ai.Synthesizer
	source        *source
	vendor, model string
}

// Speak implements ai.Synthesizer.
func (v countedVoice) Speak(ctx context.Context, as ai.Speech, texts <-chan string, yield func(ai.Sound) error) (err error) {
	defer runtime.KeepAlive(v.source)
	tally := ai.TallyOf(ctx)
	if tally == nil {
		return v.failed(ctx, v.Synthesizer.Speak(ctx, as, texts, yield))
	}
	ctx, span := telemetry.Start(ctx, "speech "+v.vendor, trace.SpanKindClient, attribute.String("gen_ai.operation.name", "speech"),
		attribute.String("gen_ai.provider.name", providerName(v.vendor)), attribute.String("gen_ai.request.model", v.model))
	defer func() { telemetry.End(span, string(ai.KindOf(err))) }()
	var asked atomic.Int64 // when the first text was given, in nanoseconds since 1970
	heard := false
	saying, cancel := context.WithCancelCause(ctx)
	given := make(chan string)
	var passing sync.WaitGroup
	crash.Go(&passing, func() {
		defer close(given)
		for {
			select {
			case text, ok := <-texts:
				if !ok {
					return
				}
				select {
				case given <- text:
					asked.CompareAndSwap(0, time.Now().UnixNano())
					tally.Spend(ai.Use{Part: ai.TheVoice, Vendor: v.vendor, Model: v.model, Own: v.source.own,
						Spoken: utf8.RuneCountInString(text)})
				case <-saying.Done():
					return
				}
			case <-saying.Done():
				return
			}
		}
	}, cancel)
	err = v.Synthesizer.Speak(saying, as, given, func(s ai.Sound) error {
		if at := asked.Load(); !heard && at != 0 {
			heard = true
			telemetry.VendorFirst(string(ai.TheVoice), v.vendor, time.Duration(time.Now().UnixNano()-at))
			span.AddEvent("first sound")
		}
		return yield(s)
	})
	cancel(nil)
	passing.Wait()
	return v.failed(ctx, err)
}

// Reads implements ai.Reader.
func (v countedVoice) Reads() bool { return ai.Reads(v.Synthesizer) }

func (v countedVoice) failed(ctx context.Context, err error) error {
	return v.source.failed(ctx, err, use{part: ai.TheVoice, model: v.model})
}

// countedRecognition counts the sound that it is given to hear.
type countedRecognition struct {
	ai.Recognizer
	source *source
	vendor string
}

// Listen implements ai.Recognizer.
func (r countedRecognition) Listen(ctx context.Context, h ai.Hearing) (ai.Recognition, error) {
	e, err := r.Recognizer.Listen(ctx, h)
	if err != nil {
		return nil, r.source.failed(ctx, err, use{part: ai.TheRecognizer})
	}
	l := &listening{Recognition: e, source: r.source, spend: func(int64) {}}
	if tally := ai.TallyOf(ctx); tally != nil {
		l.spend = func(samples int64) {
			tally.Spend(ai.Use{Part: ai.TheRecognizer, Vendor: r.vendor, Own: r.source.own,
				Heard: time.Duration(samples) * time.Second / time.Duration(h.Rate)})
		}
	}
	return l, nil
}

// listening is a recognizer whose sound is counted until it is closed.
type listening struct {
	ai.Recognition
	source  *source
	samples atomic.Int64
	spend   func(samples int64)
}

// Write implements ai.Recognition.
func (l *listening) Write(pcm []int16) {
	l.samples.Add(int64(len(pcm)))
	l.Recognition.Write(pcm)
}

// Told implements ai.Teller.
func (l *listening) Told(err error) error {
	return l.source.failed(context.Background(), err, use{part: ai.TheRecognizer})
}

// Close implements ai.Recognition.
func (l *listening) Close() {
	l.Recognition.Close()
	runtime.KeepAlive(l.source)
	if n := l.samples.Swap(0); n > 0 {
		l.spend(n)
	}
}

// heldEmbedder keeps its vendor open.
type heldEmbedder struct {
	ai.Embedder
	source *source
}

// Embed implements ai.Embedder.
func (e heldEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	defer runtime.KeepAlive(e.source)
	return e.Embedder.Embed(ctx, texts)
}

// heldRealtime keeps its vendor open.
type heldRealtime struct {
	ai.RealtimeModel
	source *source
	code   string
}

// Decides says what the model is: see ai.Decides.
func (m heldRealtime) Decides() bool { return ai.Decides(m.RealtimeModel) }

// Connect implements ai.RealtimeModel.
func (m heldRealtime) Connect(ctx context.Context, s ai.RealtimeSetup) (ai.RealtimeSession, error) {
	if tally := ai.TallyOf(ctx); tally != nil && m.source.own { // its vendor counts
		ctx = ai.Tallied(ctx, tally.OwnKey())
	}
	session, err := m.RealtimeModel.Connect(ctx, s)
	if err != nil {
		return nil, m.source.failed(ctx, err, use{ai.TheModel, true, m.code})
	}
	return heldSession{session, m.source}, nil
}

type heldSession struct {
	ai.RealtimeSession
	source *source
}

// Close implements ai.RealtimeSession.
func (s heldSession) Close() {
	s.RealtimeSession.Close()
	runtime.KeepAlive(s.source)
}
