package voice

import (
	"context"
	"sync"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/lang"
)

// Waiting is the peer of a caller who waits: they hear music, and now and then words.
type Waiting struct {
	rate audio.Rate

	mu    sync.Mutex
	music *music
	tune  int
	words []int16 // what is left of them
	heard chan struct{}
}

// NewWaiting is silent.
func NewWaiting(rate audio.Rate) *Waiting { return &Waiting{rate: rate} }

// Music begins, and goes on between the words.
func (w *Waiting) Music() {
	m := &music{musicOf(w.rate), 0.5}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.music = m
}

// Say says words, in place of those that are being said. The channel is closed when they have been heard, or others
// are said.
func (w *Waiting) Say(pcm []int16) (heard <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.heard != nil {
		close(w.heard)
	}
	w.words, w.heard = pcm, make(chan struct{})
	return w.heard
}

// Hear implements audio.Peer.
func (*Waiting) Hear(audio.Frame) {}

// Digit implements audio.Peer.
func (*Waiting) Digit(byte) {}

// Tick implements audio.Peer.
func (w *Waiting) Tick(_, out audio.Frame) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := copy(out, w.words)
	clear(out[n:])
	if w.words = w.words[n:]; n > 0 {
		return true
	}
	if w.heard != nil {
		close(w.heard)
		w.heard = nil
	}
	if w.music == nil {
		return false
	}
	w.tune = w.music.Mix(out, w.tune, w.music.gain)
	return true
}

// Words makes the audio of a sentence in a persona's voice, or has it from before.
func (c *Cache) Words(ctx context.Context, p Persona, rate audio.Rate, text string) (pcm []int16, err error) {
	m := newSynthesis(nil, p, rate)
	spoken := m.spoken(text)
	if spoken == "" || p.Synthesizer == nil {
		return nil, nil
	}
	if key, ok := m.key(spoken); ok {
		if err := c.load(ctx, p.Synthesizer, key); err != nil {
			return nil, err
		}
		if s := c.find(key); s != nil {
			return s.pcm, nil
		}
	}
	err = ai.Say(ctx, p.Synthesizer, m.as, spoken, func(piece []int16) error {
		pcm = append(pcm, piece...)
		return nil
	})
	return pcm, ai.TheVoice.Of(err)
}

// Phrases are the fixed sentences of a persona's language.
func (p *Persona) Phrases() *lang.Phrases { return &lang.Of(p.Language).Phrases }
