package ai

import (
	"context"
	"errors"
)

// Aloud is a Synthesizer made of a model that hears and speaks: the model reads texts out, apart from any conversation.
// Each request has a session of its own.
type Aloud struct{ Model RealtimeModel }

// Speak implements Synthesizer.
func (a Aloud) Speak(ctx context.Context, as Speech, texts <-chan string, yield func(Sound) error) error {
	text, ok, err := next(ctx, texts)
	if !ok {
		return err
	}
	s, err := a.Model.Connect(ctx, RealtimeSetup{Reads: true, Voice: as.Voice, Speed: as.Speed, Language: as.Language,
		Rate: as.Rate})
	if err != nil {
		return err
	}
	defer s.Close()
	for i := 0; ok; i++ {
		s.Say(i+1, text)
		if err := read(ctx, s, i, yield); err != nil {
			return err
		}
		text, ok, err = next(ctx, texts)
	}
	return err
}

// Reads implements Reader: a model that speaks reads like people.
func (a Aloud) Reads() bool { return true }

// read yields one text's sound.
func read(ctx context.Context, s RealtimeSession, text int, yield func(Sound) error) error {
	lost := error(&Error{Part: TheModel, Kind: Interrupted, Err: errors.New("the session is gone")})
	for e := range s.Events() {
		var err error
		switch {
		case ctx.Err() != nil: // what has come already is not wanted any more
			return context.Cause(ctx)
		case e.Kind == RealtimeLost:
			lost = e.Err
		case e.N != text+1:
		case e.Kind == RealtimeSound:
			err = yield(Sound{Text: text, PCM: e.PCM})
		case e.Kind == RealtimeDone && e.Err != nil:
			return e.Err
		case e.Kind == RealtimeDone:
			return yield(Sound{Text: text, Last: true})
		}
		if err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return lost
}

// Same is equal where two of them sound alike, although their models were made for one conversation each.
func (a Aloud) Same() any {
	if m, ok := a.Model.(interface{ Same() any }); ok {
		return [2]any{Aloud{}, m.Same()}
	}
	return a
}

// Steady reports whether the model is the one that should read.
func (a Aloud) Steady(ctx context.Context) bool {
	m, ok := a.Model.(interface{ Steady(context.Context) bool })
	return !ok || m.Steady(ctx)
}
