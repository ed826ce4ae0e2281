package voice

import (
	"fmt"
	"time"

	"parley"
	"parley/internal/ai"
	"parley/internal/turn"
)

// hearing is an open ear, with what is known of it.
type hearing struct {
	ai.Ear
	who   Persona
	base  int           // the machine's number of its first utterance
	final time.Duration // when the last final text came
	gone  bool          // it is not the session's ear any more
}

// listenWith opens a persona's ear.
func (r *run) listenWith(p Persona) (*hearing, error) {
	ear, err := p.Recognizer.Listen(r.ctx, ai.Hearing{Language: p.Language, Rate: r.rate, Keywords: p.Assistant.Keywords})
	if err != nil {
		return nil, ai.TheRecognizer.Of(err)
	}
	return &hearing{Ear: ear, who: p}, nil
}

// attach makes an ear the session's. An utterance that is under way goes on in it; what the former ear had not understood yet is lost.
// The lock is held, and the machine may be in the middle of a step.
func (r *run) attach(ear *hearing, tries int) {
	old := r.ear
	ear.base = r.utterances
	if r.peer.open {
		ear.base--
	}
	r.ear = ear
	if old != nil {
		old.gone = true
		r.safely(old.Close)
	}
	r.safely(func() {
		if old != nil {
			r.post(turn.Event{Kind: turn.Lost, N: ear.base})
		}
		r.listen(ear, tries)
	})
}

// maxEars is how often an ear that is lost is opened again.
const maxEars = 3

// listen takes what an ear understands until it closes.
func (r *run) listen(ear *hearing, tries int) {
	for t := range ear.Transcripts() {
		r.understood(ear, t)
	}
	r.mu.Lock()
	lost := !ear.gone && r.ctx.Err() == nil
	r.mu.Unlock()
	if !lost {
		return
	}
	gone := &ai.Error{Part: ai.TheRecognizer, Kind: ai.Interrupted, Err: errLost}
	r.note(gone)
	if tries++; tries > maxEars {
		r.fail(fmt.Errorf("after %d more ears: %w", maxEars, gone))
		return
	}
	next, err := r.listenWith(ear.who)
	if err != nil {
		r.fail(fmt.Errorf("open another ear: %w", err))
		return
	}
	r.mu.Lock()
	late := ear.gone || r.over
	if !late {
		r.attach(next, tries)
	}
	r.mu.Unlock()
	if late {
		next.Close()
	}
}

// understood takes a transcript.
func (r *run) understood(ear *hearing, t ai.Transcript) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ear.gone {
		return
	}
	t.Text = parley.CleanText(t.Text)
	if t.Err != nil {
		r.broken.heard = ai.TheRecognizer.Of(t.Err)
		r.noted(fmt.Errorf("understand utterance %d: %w", t.Utterance, r.broken.heard))
	}
	if t.Final {
		ear.final = r.now()
	}
	r.step(turn.Event{Kind: turn.Text, N: ear.base + t.Utterance, Text: t.Text, Final: t.Final, Failed: t.Err != nil})
}
