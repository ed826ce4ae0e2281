package voice

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/lang"
)

// mouth is how a persona speaks.
type mouth struct {
	Persona
	rate       audio.Rate
	pronounced *lang.Pronouncer
}

func newMouth(p Persona, rate audio.Rate) *mouth {
	return &mouth{Persona: p, rate: rate, pronounced: lang.NewPronouncer(p.Assistant.Pronunciations)}
}

// speech is how the synthesizer is to speak.
func (m *mouth) speech() ai.Speech {
	a := m.Assistant
	return ai.Speech{
		Voice: m.Voice, Language: m.Language, Rate: m.rate, Speed: a.SpeechSpeed.Float(),
		Stability: a.VoiceStability.Float(), Similarity: a.VoiceSimilarity.Float(),
	}
}

const (
	speechStall = 10 * time.Second // a synthesizer that sends nothing for so long has failed
	speechAhead = 3 * time.Second  // so much sound is kept ready; who sends more waits
)

// speech gives a reply's parts a sound, one after the other: the next one is made while the former is played.
type speech struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	signal chan struct{} // there is another part, or room for more sound

	mu    sync.Mutex
	queue []*part
}

func (s *speech) push(p *part) {
	s.mu.Lock()
	s.queue = append(s.queue, p)
	s.mu.Unlock()
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// pop waits for the next part; nil when the reply is over.
func (s *speech) pop() *part {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			p := s.queue[0]
			s.queue = s.queue[1:]
			s.mu.Unlock()
			return p
		}
		s.mu.Unlock()
		select {
		case <-s.signal:
		case <-s.ctx.Done():
			return nil
		}
	}
}

// speak implements driver.
func (d *pipeline) speak(a *answer, p *part) {
	r := d.r
	p.speak = lang.Speakable(p.text, d.Language, d.pronounced)
	if p.speak == "" {
		p.whole = true // nothing to be said
		r.out.add(p)
		return
	}
	if key, ok := keyOf(d.Synthesizer, d.speech(), p.speak); ok {
		if pcm := r.Cache.find(key); pcm != nil {
			p.pcm, p.size, p.whole = pcm, len(pcm), true
			r.out.add(p)
			r.audible(a, p, r.clock.now())
			return
		}
	}
	r.out.add(p)
	if a.speech == nil {
		s := &speech{signal: make(chan struct{}, 1)}
		s.ctx, s.cancel = context.WithCancelCause(r.ctx)
		a.speech = s
		r.safely(func() { d.utter(a, s) })
	}
	a.speech.push(p)
}

// utter makes the sound of a reply's parts until the reply is over.
func (d *pipeline) utter(a *answer, s *speech) {
	r := d.r
	defer s.cancel(nil)
	for p := s.pop(); p != nil; p = s.pop() {
		err := d.sound(a, s, p)
		if err != nil && s.ctx.Err() == nil && r.out.empty(p) { // nothing was heard: once more
			r.note(fmt.Errorf("speak: %w", err))
			err = d.sound(a, s, p)
		}
		switch {
		case s.ctx.Err() != nil:
			return
		case err != nil && r.out.empty(p):
			r.fail(fmt.Errorf("speak again: %w", err))
			return
		case err != nil: // the rest of the sentence is lost
			r.note(fmt.Errorf("speak to the end: %w", err))
		}
		r.out.finish(p)
	}
}

// sound makes one part's sound.
func (d *pipeline) sound(a *answer, s *speech, p *part) error {
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	stall := time.AfterFunc(speechStall, func() { cancel(errStalled) })
	defer stall.Stop()
	key, keep := keyOf(d.Synthesizer, d.speech(), p.speak)
	keep = keep && p.keep
	var kept []int16
	lead := int(leadTrim * time.Duration(d.rate) / time.Second)
	err := ai.Say(ctx, d.Synthesizer, d.speech(), p.speak, func(pcm []int16) error {
		stall.Stop()
		defer stall.Reset(speechStall)
		if lead > 0 {
			n := leadingSilence(pcm[:min(lead, len(pcm))])
			pcm, lead = pcm[n:], lead-n
			if len(pcm) > 0 {
				lead = 0
			}
		}
		if keep {
			kept = append(kept, pcm...)
		}
		return d.put(ctx, a, s, p, pcm)
	})
	if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
		return &ai.Error{Part: ai.TheVoice, Kind: ai.Stalled, Err: errStalled}
	}
	if err == nil && keep {
		d.r.Cache.keep(key, kept)
	}
	return ai.TheVoice.Of(err)
}

// leadTrim is how much silence before the first sound of a sentence is left out, at most: it would be waited for.
const leadTrim = 300 * time.Millisecond

// leadingSilence is how many samples at the beginning are nothing that can be heard.
func leadingSilence(pcm []int16) int {
	for i, v := range pcm {
		if v > 60 || v < -60 {
			return i
		}
	}
	return len(pcm)
}

// put adds sound to a part, and waits while there is enough of it.
func (d *pipeline) put(ctx context.Context, a *answer, s *speech, p *part, pcm []int16) error {
	for len(pcm) > 0 {
		n, first, wanted := d.r.out.put(p, pcm, s.signal)
		if !wanted { // it was left out
			return context.Cause(ctx)
		}
		if pcm = pcm[n:]; first {
			now := d.r.clock.now()
			d.r.inbox.post(func() { d.r.audible(a, p, now) })
		}
		if len(pcm) == 0 {
			return nil
		}
		select {
		case <-s.signal:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
