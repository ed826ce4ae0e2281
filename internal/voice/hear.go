package voice

import (
	"fmt"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/turn"
)

// hearing is an open recognizer of a pipeline.
type hearing struct {
	ai.Recognition
	all   bool    // it hears everything, and finds turns
	less  float64 // so much was taken off the latest frame
	base  int     // the session's number of its first utterance
	tries int     // recognizers that were lost before it, one after the other; the owner's
}

// listen opens the persona's recognizer.
func (d *pipeline) listen() (*hearing, error) {
	p := &d.home
	recognition, err := p.Recognizer.Listen(d.r.ctx, ai.Hearing{Language: p.Language, Others: p.others(), Rate: d.r.rate,
		Keywords: p.Assistant.Keywords})
	if err != nil {
		return nil, ai.TheRecognizer.Of(err)
	}
	return &hearing{Recognition: recognition, all: recognition.Continuous()}, nil
}

// farLess is how much of a voice in the background is taken off, 15 dB, where a recognizer hears everything.
const farLess = 0.82

// hold fades a voice in the background out, and who speaks after it in.
func (e *hearing) hold(f *frame) {
	was := e.less
	if e.less = 0; f.far {
		e.less = farLess
	}
	if was > 0 || f.far {
		audio.Fade(f.pcm, 1-was, 1-e.less)
	}
}

// attach makes a recognizer the one that hears utterance n and those after it.
func (d *pipeline) attach(recognition *hearing, n, tries int) {
	d.recognition, recognition.base, recognition.tries = recognition, n, tries
	d.r.safely(func() { d.follow(recognition) })
}

// hears reports whether the session uses a recognizer. Only the owner may call it.
func (d *pipeline) hears(recognition *hearing) bool {
	return d.r.cast != nil && d.r.cast.driver == driver(d) && d.recognition == recognition
}

// maxRecognitions is how often a lost recognizer is reopened.
const maxRecognitions = 3

// follow takes what a recognizer understands until it closes, and opens another if it is lost, after a pause where that fails.
func (d *pipeline) follow(recognition *hearing) {
	r := d.r
	for t := range recognition.Transcripts() {
		t.Err = ai.ToldBy(recognition.Recognition, t.Err)
		r.inbox.post(func() {
			if d.hears(recognition) {
				if t.Err == nil {
					recognition.tries = 0 // it works: what is lost hours later counts anew
				}
				d.follows(t)
				r.understood(recognition.base, t)
			}
		})
	}
	lost, tries := false, 0
	r.inbox.ask(func() { lost, tries = d.hears(recognition) && r.ctx.Err() == nil, recognition.tries+1 })
	if !lost {
		return
	}
	gone := &ai.Error{Part: ai.TheRecognizer, Kind: ai.Interrupted, Err: errLost}
	r.note(gone)
	if tries > maxRecognitions {
		r.fail(fmt.Errorf("after %d more ears: %w", maxRecognitions, gone))
		return
	}
	next, err := d.listen()
	for ; err != nil; next, err = d.listen() {
		if tries++; tries > maxRecognitions || ai.KindOf(err) == ai.Config {
			r.fail(fmt.Errorf("open another ear: %w", err))
			return
		}
		r.note(fmt.Errorf("open another ear: %w", err))
		if !sleep(r.ctx, pauseBefore(tries, err)) {
			return
		}
	}
	late := true
	r.inbox.ask(func() {
		if late = !d.hears(recognition) || r.over; late {
			return
		}
		r.safely(recognition.Close)
		r.happens(turn.Event{Kind: turn.Lost, N: r.present()})
		d.attach(next, r.present(), tries)
	})
	if late {
		next.Close()
	}
}
