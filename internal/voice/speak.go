package voice

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/lang"
)

// synthesis is how a persona speaks: each part of a reply goes to its synthesizer as it comes, or is played from the cache.
type synthesis struct {
	Persona
	r          *run // nil before the call
	as         ai.Speech
	pronounced *lang.Pronouncer
	style      lang.Style // as the synthesizer wants its texts
}

func newSynthesis(r *run, p Persona, rate audio.Rate) *synthesis {
	a, style := p.Assistant, lang.InWords
	if ai.Reads(p.Synthesizer) {
		style = lang.AsWritten
	}
	return &synthesis{Persona: p, r: r, style: style, pronounced: lang.NewPronouncer(a.Pronunciations), as: ai.Speech{
		Voice: p.Voice, Language: p.Language, Rate: rate, Speed: a.SpeechSpeed.Float(),
		Stability: a.VoiceStability.Float(), Similarity: a.VoiceSimilarity.Float(),
	}}
}

// itself reports whether the voice is that of the model that holds the conversation, which goes on without a sentence
// that it can't read out.
func (m *synthesis) itself() bool {
	_, ok := m.Synthesizer.(ai.Aloud)
	return ok
}

// key is what the audio of a text is stored under. It is false where the vendor can't be told apart from others.
func (m *synthesis) key(spoken string) (soundKey, bool) { return keyOf(m.Synthesizer, m.as, spoken) }

// spoken is a text as it is said.
func (m *synthesis) spoken(text string) string {
	return lang.Speakable(text, m.Language, m.style, m.pronounced)
}

// speak implements speaker. The parts of a reply are played in the order in which they come here, wherever their audio
// is from.
func (m *synthesis) speak(a *answer, p *part) {
	r := m.r
	p.synthesis, p.speak = m, m.spoken(p.text)
	if p.speak == "" {
		p.whole = true // nothing to be said
		r.out.add(p)
		return
	}
	if key, ok := m.key(p.speak); ok {
		if s := r.Cache.find(key); s != nil {
			p.pcm, p.size, p.whole, p.times = s.pcm, len(s.pcm), true, s.times
			r.out.add(p)
			r.audible(a, p, r.clock.now())
			return
		}
	}
	r.out.add(p)
	if a.speech == nil {
		s := &speech{m: m, a: a, whole: a.thought, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
		s.ctx, s.cancel = context.WithCancelCause(r.ctx)
		a.speech = s
		r.safely(s.run)
	}
	a.speech.push(p)
}

// allSaid is called when a reply has no more parts, as far as is known, so that its speech can finish.
func (m *synthesis) allSaid(a *answer) {
	if a.speech != nil {
		a.speech.end()
	}
}

const (
	speechStall = 10 * time.Second // a synthesizer that owes sound and sends none for so long has failed
	speechAhead = 3 * time.Second  // so much sound is kept ready; who sends more waits
)

// speech makes the audio for a reply's parts. One request to the synthesizer takes all of them as they come; another is
// made when it has ended or failed and there is more to say, or when another voice says what follows.
type speech struct {
	m      *synthesis // whose turn it is
	a      *answer
	ctx    context.Context
	cancel context.CancelCauseFunc
	more   chan struct{} // there is another part, or there will be none
	room   chan struct{} // for more sound

	mu    sync.Mutex
	queue []*part
	whole bool // nothing more will come
}

func (s *speech) push(p *part) {
	s.mu.Lock()
	s.queue = append(s.queue, p)
	s.mu.Unlock()
	s.wake()
}

func (s *speech) end() {
	s.mu.Lock()
	s.whole = true
	s.mu.Unlock()
	s.wake()
}

func (s *speech) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// wait waits for the next part, and reports whether there is one. There is none when ctx has ended or (unless forever
// is set) everything was said.
func (s *speech) wait(ctx context.Context, forever bool) bool {
	for {
		s.mu.Lock()
		some, whole := len(s.queue) > 0, s.whole && !forever
		s.mu.Unlock()
		switch {
		case ctx.Err() != nil || !some && whole:
			return false
		case some:
			return true
		}
		select {
		case <-s.more:
		case <-ctx.Done():
		}
	}
}

// run makes the audio of a reply's parts until the reply is over.
func (s *speech) run() {
	defer s.cancel(nil)
	for s.wait(s.ctx, true) {
		s.m = s.first().synthesis
		t := &stream{speech: s, flight: s.flying()}
		err := t.run()
		if s.ctx.Err() != nil || !s.goOn(t.given[t.done:], err) {
			return
		}
	}
}

// first is the next part.
func (s *speech) first() *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue[0]
}

// flying is the sound of the next part, if somebody is making it already.
func (s *speech) flying() *flight {
	if p := s.first(); p.keep && !p.again {
		if key, ok := s.m.key(p.speak); ok {
			return s.m.r.Cache.flying(key)
		}
	}
	return nil
}

// goOn handles parts that a synthesizer was given but has not fully spoken. It reports whether the conversation can go
// on.
func (s *speech) goOn(left []*part, err error) bool {
	r := s.m.r
	switch {
	case len(left) == 0:
		return true // whatever it was, nothing was lost
	case err == nil:
		err = ai.TheVoice.Of(&ai.Error{Kind: ai.Malformed, Err: errUnfinished})
	}
	switch p := left[0]; {
	case r.out.empty(p) && !p.again: // nothing was heard: once more
		p.again = true
		r.note(fmt.Errorf("speak: %w", err))
	case r.out.empty(p) && !s.m.itself():
		r.fail(fmt.Errorf("speak again: %w", err))
		return false
	default: // the rest of the sentence is lost
		r.note(fmt.Errorf("speak to the end: %w", err))
		r.out.finish(p)
		left = left[1:]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(left[:len(left):len(left)], s.queue...)
	return true
}

// stream is one request to a synthesizer, or to a sound that is being made already.
type stream struct {
	*speech
	flight *flight     // of the first part, which is then the only one
	stall  *time.Timer // runs while sound is owed

	mu    sync.Mutex
	given []*part
	done  int // of them: their sound is there

	// used by the goroutine that yields, about the current part
	lead int     // how much silence may still be left out
	kept []int16 // its sound, where that is to be kept
}

func (t *stream) run() error {
	ctx, cancel := context.WithCancelCause(t.ctx)
	var feeding sync.WaitGroup
	defer feeding.Wait()
	defer cancel(nil)
	t.stall = time.AfterFunc(speechStall, func() { cancel(errStalled) })
	t.stall.Stop()
	defer t.stall.Stop()
	texts := make(chan string)
	crash.Go(&feeding, func() { t.feed(ctx, texts) }, cancel)
	t.begin()
	vendor := t.m.Synthesizer
	if t.flight != nil {
		vendor = t.flight
	}
	err := vendor.Speak(ctx, t.m.as, texts, func(sound ai.Sound) error { return t.take(ctx, sound) })
	if errors.Is(context.Cause(ctx), errStalled) {
		err = &ai.Error{Kind: ai.Stalled, Err: errStalled}
	}
	return ai.TheVoice.Of(err)
}

// feed gives the parts to the synthesizer as they come.
func (t *stream) feed(ctx context.Context, texts chan<- string) {
	for t.wait(ctx, false) {
		p := t.first()
		if p.synthesis != t.m {
			break
		}
		t.speech.mu.Lock()
		t.queue = t.queue[1:]
		t.speech.mu.Unlock()
		if t.m.r.out.gone(p) {
			continue
		}
		t.owe(p)
		select {
		case texts <- p.speak:
		case <-ctx.Done():
			return
		}
		if t.flight != nil {
			break
		}
	}
	if ctx.Err() == nil {
		close(texts)
	}
}

// owe adds a part to those whose audio the synthesizer owes.
func (t *stream) owe(p *part) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == len(t.given) {
		t.stall.Reset(speechStall)
	}
	t.given = append(t.given, p)
}

// take passes audio to the playout, and waits while there is enough of it.
func (t *stream) take(ctx context.Context, sound ai.Sound) error {
	out := &t.m.r.out
	t.mu.Lock()
	if sound.Text != t.done || sound.Text >= len(t.given) {
		defer t.mu.Unlock()
		return &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("sound of text %d, when %d of %d are whole", sound.Text,
			t.done, len(t.given))}
	}
	p := t.given[t.done]
	t.stall.Stop()
	t.mu.Unlock()

	pcm := sound.PCM
	if t.lead > 0 && len(pcm) > 0 {
		n := leadingSilence(pcm[:min(t.lead, len(pcm))])
		out.trim(p, n)
		if pcm, t.lead = pcm[n:], t.lead-n; len(pcm) > 0 {
			t.lead = 0
		}
	}
	if len(sound.Words) > 0 {
		out.timed(p, sound.Words)
	}
	if p.keep {
		t.kept = append(t.kept, pcm...)
	}
	if err := t.put(ctx, p, pcm); err != nil {
		return err
	}
	if sound.Last {
		times := out.finish(p)
		if key, ok := t.m.key(p.speak); ok && p.keep {
			t.m.r.Cache.keep(ctx, t.m.Synthesizer, key, t.kept, times)
		}
		t.begin()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if sound.Last {
		t.done++
	}
	if t.done < len(t.given) {
		t.stall.Reset(speechStall)
	}
	return nil
}

// begin prepares for a part's audio.
func (t *stream) begin() {
	t.lead, t.kept = int(leadTrim*time.Duration(t.m.as.Rate)/time.Second), nil
}

// leadTrim is how much silence before a sentence's first audio is left out at most, as the customer would have to wait
// for it.
const leadTrim = 300 * time.Millisecond

// leadingSilence is how many samples at the beginning are inaudible.
func leadingSilence(pcm []int16) int {
	for i, v := range pcm {
		if v > 60 || v < -60 {
			return i
		}
	}
	return len(pcm)
}

// put adds audio to a part, and waits while there is enough of it.
func (t *stream) put(ctx context.Context, p *part, pcm []int16) error {
	r := t.m.r
	for len(pcm) > 0 {
		n, first, wanted := r.out.put(p, pcm, t.room)
		if !wanted { // it was left out
			return context.Cause(ctx)
		}
		if pcm = pcm[n:]; first {
			now := r.clock.now()
			r.inbox.post(func() { r.audible(t.a, p, now) })
		}
		if len(pcm) == 0 {
			return nil
		}
		select {
		case <-t.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
