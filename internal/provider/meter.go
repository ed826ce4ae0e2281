package provider

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"parley/internal/ai"
)

// What vendors are used for is noted in the ai.Tally of the conversation, by these, which stand before them.

// countedModel counts tokens.
type countedModel struct {
	ai.Model
	vendor, code string
}

// Generate implements ai.Model.
func (m countedModel) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	reply, err := m.Model.Generate(ctx, req, yield)
	if reply.Usage != (ai.Usage{}) {
		ai.TallyOf(ctx).Spend(ai.Use{Part: ai.TheModel, Vendor: m.vendor, Model: m.code, Usage: reply.Usage})
	}
	return reply, err
}

// countedVoice counts the characters that it is given to say. It is as comparable as what it stands before.
type countedVoice struct {
	ai.Synthesizer
	vendor, model string
}

// Speak implements ai.Synthesizer.
func (v countedVoice) Speak(ctx context.Context, as ai.Speech, texts <-chan string, yield func(ai.Sound) error) error {
	tally := ai.TallyOf(ctx)
	if tally == nil {
		return v.Synthesizer.Speak(ctx, as, texts, yield)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	given := make(chan string)
	var passing sync.WaitGroup
	passing.Go(func() {
		defer close(given)
		for {
			select {
			case text, ok := <-texts:
				if !ok {
					return
				}
				select {
				case given <- text:
					tally.Spend(ai.Use{Part: ai.TheVoice, Vendor: v.vendor, Model: v.model,
						Spoken: utf8.RuneCountInString(text)})
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	err := v.Synthesizer.Speak(ctx, as, given, yield)
	cancel(nil)
	passing.Wait()
	return err
}

// countedEar counts the sound that it is given to hear.
type countedEar struct {
	ai.Recognizer
	vendor string
}

// Listen implements ai.Recognizer.
func (r countedEar) Listen(ctx context.Context, h ai.Hearing) (ai.Ear, error) {
	e, err := r.Recognizer.Listen(ctx, h)
	tally := ai.TallyOf(ctx)
	if err != nil || tally == nil {
		return e, err
	}
	return &listening{Ear: e, spend: func(samples int64) {
		tally.Spend(ai.Use{Part: ai.TheRecognizer, Vendor: r.vendor,
			Heard: time.Duration(samples) * time.Second / time.Duration(h.Rate)})
	}}, nil
}

// listening is an ear whose sound is counted until it is closed.
type listening struct {
	ai.Ear
	samples atomic.Int64
	spend   func(samples int64)
}

// Write implements ai.Ear.
func (l *listening) Write(pcm []int16) {
	l.samples.Add(int64(len(pcm)))
	l.Ear.Write(pcm)
}

// Close implements ai.Ear.
func (l *listening) Close() {
	l.Ear.Close()
	if n := l.samples.Swap(0); n > 0 {
		l.spend(n)
	}
}
