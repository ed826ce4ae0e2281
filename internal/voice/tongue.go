package voice

import (
	"strings"

	"parley"
	"parley/internal/ai"
	"parley/internal/lang"
	"parley/internal/turn"
)

// Tongue is a language that a persona speaks, with the voice for it.
type Tongue struct {
	Language    string // ISO 639-1
	Name        string // in English, for the model
	Synthesizer ai.Synthesizer
	Voice       string
}

// sureWords are enough to follow the customer into another language. Of a single word ("sí", "okay") an ear can't be
// sure: two utterances of that language in a row count then.
const sureWords = 2

// in is the persona as it speaks another of its languages, or its own. Words that its assistant has for its own
// language are left to that of the other.
func (p *Persona) in(language string) (other Persona, ok bool) {
	if language == p.Language {
		return *p, true
	}
	for _, t := range p.Tongues {
		if t.Language == language {
			other = *p
			other.Language, other.Voice, other.Synthesizer = t.Language, t.Voice, t.Synthesizer
			a := *p.Assistant
			a.FillerConfig = parley.FillerConfig{}
			other.Assistant = &a
			return other, true
		}
	}
	return *p, false
}

// others are the languages of a persona besides its own.
func (p *Persona) others() (list []string) {
	for _, t := range p.Tongues {
		if t.Language != p.Language {
			list = append(list, t.Language)
		}
	}
	return list
}

// polyglot tells the model about the languages, "" where there is only one; now is the customer's at present, "" if
// nobody knows.
func (p *Persona) polyglot(now string) string {
	if len(p.Tongues) < 2 {
		return ""
	}
	var names []string
	current := ""
	for _, t := range p.Tongues {
		names = append(names, t.Name)
		if t.Language == now {
			current = " At present they speak " + t.Name + "."
		}
	}
	last := len(names) - 1
	return "\n\nThe customer may speak " + strings.Join(names[:last], ", ") + " or " + names[last] +
		", and may change from one to another." + current + " Always answer in the language that they spoke last."
}

// follows changes to the language in which the customer has just spoken, before what they said is answered: the
// machine's words, the fixed sentences, the voice and the model's instruction are of that language from here on.
func (d *pipeline) follows(t ai.Transcript) {
	settled := t.Final || t.Turn == ai.TurnEager || t.Turn == ai.TurnEnded
	if t.Language == "" || t.Err != nil || !settled {
		return
	}
	if t.Language == d.Language {
		d.doubted = ""
		return
	}
	next, ok := d.home.in(t.Language)
	if !ok {
		return
	}
	if lang.Count(t.Text) < sureWords && d.doubted != t.Language {
		if t.Final {
			d.doubted = t.Language
		}
		return
	}
	d.doubted = ""
	d.mouth = newMouth(d.r, next, d.r.rate)
	d.r.cast.Persona = next
	d.r.step(turn.Event{Kind: turn.Language, Text: t.Language})
}
