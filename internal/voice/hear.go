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
// The machine may be in the middle of a step.
func (r *run) attach(ear *hearing, tries int) {
	old := r.ear
	ear.base = r.utterances
	if r.open {
		ear.base--
	}
	r.ear = ear
	if old != nil {
		old.gone = true
		r.safely(old.Close)
		r.happens(turn.Event{Kind: turn.Lost, N: ear.base})
	}
	r.safely(func() { r.listen(ear, tries) })
}

// maxEars is how often an ear that is lost is opened again.
const maxEars = 3

// listen takes what an ear understands until it closes.
func (r *run) listen(ear *hearing, tries int) {
	for t := range ear.Transcripts() {
		r.inbox.post(func() { r.understood(ear, t) })
	}
	lost := false
	r.inbox.ask(func() { lost = !ear.gone && r.ctx.Err() == nil })
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
	late := true
	r.inbox.ask(func() {
		if late = ear.gone || r.over; !late {
			r.attach(next, tries)
		}
	})
	if late {
		next.Close()
	}
}

// understood takes a transcript.
func (r *run) understood(ear *hearing, t ai.Transcript) {
	if ear.gone {
		return
	}
	t.Text = parley.CleanText(t.Text)
	if t.Err != nil {
		r.broken.heard = ai.TheRecognizer.Of(t.Err)
		r.noted(fmt.Errorf("understand utterance %d: %w", t.Utterance, r.broken.heard))
	}
	if t.Final {
		ear.final = r.clock.now()
	}
	r.step(turn.Event{Kind: turn.Text, N: ear.base + t.Utterance, Text: t.Text, Final: t.Final, Failed: t.Err != nil})
}
