package openai

import (
	"context"
	"errors"
	"strings"

	"parley/internal/ai"
)

// hearsToo reports whether a model that is to speak is a realtime model: from January 2027 on OpenAI's server has no
// others.
func hearsToo(model string) bool { return strings.HasPrefix(model, "gpt-realtime") }

// Aloud is a synthesizer made of one of the server's realtime models, which reads out. Synthesizers of one model are
// equal, so that caches find earlier speech.
func (c *Client) Aloud(model string) ai.Synthesizer {
	return aloud{ai.Aloud{Model: c.RealtimeModel(model, "")}}
}

type aloud struct{ ai.Aloud }

// nearest are the realtime models' voices that come closest to those that only speech models have.
var nearest = map[string]string{"fable": "ballad", "nova": "coral", "onyx": "cedar"}

// Speak implements ai.Synthesizer.
func (a aloud) Speak(ctx context.Context, as ai.Speech, texts <-chan string, yield func(ai.Sound) error) error {
	if v, ok := nearest[as.Voice]; ok {
		as.Voice = v
	}
	err := a.Aloud.Speak(ctx, as, texts, yield)
	if e, ok := errors.AsType[*ai.Error](err); ok { // it failed as a model, but is a voice here
		voice := *e
		voice.Part = ai.TheVoice
		return &voice
	}
	return err
}
