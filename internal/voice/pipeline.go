package voice

import (
	"context"
	"errors"
	"slices"
	"strings"

	"parley/internal/lang"
)

// pipeline is the driver that hears with a recognizer, thinks with a model, and speaks with a synthesizer: hear.go,
// think.go, speak.go.
type pipeline struct {
	*synthesis  // in the language that is spoken at present; the owner's
	follower    // the owner's
	recognition *hearing
}

// newPipeline opens the persona's recognizer.
func newPipeline(r *run, p Persona) (*pipeline, error) {
	if !p.complete() {
		return nil, errIncomplete
	}
	d := &pipeline{synthesis: newSynthesis(r, p, r.rate), follower: follower{home: p}}
	var err error
	d.recognition, err = d.listen()
	return d, err
}

var errIncomplete = errors.New("the persona has no assistant, brain, voice or ear")

// complete reports whether a persona has everything that its driver needs.
func (p *Persona) complete() bool {
	return p.Assistant != nil && p.Think != nil && p.Synthesizer != nil && (p.Realtime != nil || p.Recognizer != nil)
}

// enter implements driver.
func (d *pipeline) enter(n int, first bool) {
	d.attach(d.recognition, n, 0)
	if first {
		d.r.inbox.post(d.warm) // after the greeting
	}
}

// hear implements listener.
func (d *pipeline) hear(f *frame, talking bool) {
	if d.recognition.all {
		d.recognition.hold(f)
	}
	if talking || d.recognition.all {
		d.recognition.Write(f.pcm)
	}
}

// utterance implements listener.
func (d *pipeline) utterance(before []*frame) {
	if d.recognition.all {
		return // it has heard it
	}
	for _, f := range before {
		d.recognition.Write(f.pcm)
	}
}

// endUtterance implements listener.
func (d *pipeline) endUtterance() { d.recognition.End() }

// stop implements speaker.
func (d *pipeline) stop(a *answer) {
	if a.speech != nil {
		a.speech.cancel(context.Canceled)
	}
	if a.think != nil {
		a.think.cancel(context.Canceled)
	}
}

// close implements driver.
func (d *pipeline) close() { d.r.safely(d.recognition.Close) }

// warm makes the audio of sentences that must be said at once: a word of listening, and fillers, also those of tools. A
// failure shows up when the audio is needed.
func (d *pipeline) warm() {
	a, all := d.Assistant, []string(nil)
	if a.Backchannels {
		all = append(all, d.listening())
	}
	if a.Fillers {
		c := &a.FillerConfig
		fillers := slices.Concat(c.Neutral, c.Question, c.Positive, c.Negative)
		all = append(all, fillers[:min(len(fillers), 16)]...)
	}
	for _, t := range a.MidCallTools[:min(len(a.MidCallTools), 16)] {
		for _, text := range []string{t.Filler, t.SecondFill} {
			if text = strings.TrimSpace(text); text != "" {
				all = append(all, text)
			}
		}
	}
	if len(all) > 0 {
		d.make(all)
	}
}

// make makes the audio of sentences, and keeps it.
func (d *pipeline) make(all []string) {
	m := d.synthesis
	d.r.safely(func() {
		for _, text := range all {
			key, ok := m.key(m.spoken(text))
			if !ok || key.text == "" || m.r.Cache.load(m.r.ctx, m.Synthesizer, key) != nil {
				return
			}
		}
	})
}

// listening is the word of listening in the language that is spoken.
func (d *pipeline) listening() string { return lang.Of(d.synthesis.Language).Phrases.Listening }

// nod implements nodder. Audio that is not there yet would come into the next words.
func (d *pipeline) nod() {
	word := d.listening()
	if key, ok := d.key(d.spoken(word)); ok {
		if s := d.r.Cache.find(key); s != nil {
			d.r.peer.word.Store(s)
			return
		}
	}
	d.make([]string{word})
}
