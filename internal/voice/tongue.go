package voice

import (
	"strings"

	"parley/internal/ai"
	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/turn"
)

// Tongue is a language that a persona speaks, with the voice for it.
type Tongue struct {
	Language    string // ISO 639-1
	Name        string // in English, for the model
	Synthesizer ai.Synthesizer
	Voice       string
}

// sureWords are enough to follow the customer into another language. Of a single word ("sí", "okay") a recognizer can't be
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

// languages are all those of a persona.
func (p *Persona) languages() []string { return append(p.others(), p.Language) }

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

// follower finds out when somebody goes over to another of a persona's languages.
type follower struct {
	home    Persona // as it is by itself
	doubted string  // the language of a single word that was said last, where it was another one
}

// after is the persona in the language in which the customer has just spoken, if that is another one from here on.
func (f *follower) after(t ai.Transcript, now string) (next Persona, changes bool) {
	settled := t.Final || t.Turn == ai.TurnEager || t.Turn == ai.TurnEnded
	if t.Language == "" || t.Err != nil || !settled {
		return next, false
	}
	if t.Language == now {
		f.doubted = ""
		return next, false
	}
	if next, changes = f.home.in(t.Language); !changes {
		return next, false
	}
	if lang.Count(t.Text) < sureWords && f.doubted != t.Language {
		if t.Final {
			f.doubted = t.Language
		}
		return next, false
	}
	f.doubted = ""
	return next, true
}

// answering is the persona in the language of what a model has written, likewise. The model heard the customer, and
// answers in their language.
func (f *follower) answering(text, now string) (next Persona, changes bool) {
	if len(f.home.Tongues) < 2 {
		return next, false
	}
	if language := lang.Which(text, f.home.languages()); language != "" && language != now {
		f.doubted = ""
		return f.home.in(language)
	}
	return next, false
}

// follows changes to the language in which the customer has just spoken, before what they said is answered: the
// machine's words, the fixed sentences, the voice and the model's instruction are of that language from here on.
func (d *pipeline) follows(t ai.Transcript) {
	if next, changes := d.after(t, d.Language); changes {
		d.synthesis = newSynthesis(d.r, next, d.r.rate)
		d.r.speaks(next)
	}
}

// speaks has the conversation go on in a persona's language.
func (r *run) speaks(p Persona) {
	r.cast.Persona = p
	if r.reply != nil && !r.reply.sounded {
		r.reply.language = p.Language
	}
	r.step(turn.Event{Kind: turn.Language, Text: p.Language})
}

// follows does the same when the model's recognizer tells the language, which may be after the reply has begun. The model itself
// follows without being told.
func (d *realtime) follows(t ai.Transcript) {
	if next, changes := d.after(t, d.Language); changes {
		d.speaks(next)
	}
}

// writes changes to the language of a sentence that the model has written, before it is spoken, or of what it has said.
func (d *realtime) writes(text string) {
	if next, changes := d.answering(text, d.Language); changes {
		d.speaks(next)
	}
}

func (d *realtime) speaks(next Persona) {
	if d.r.cast.driver != driver(d) {
		return
	}
	d.Persona, d.synthesis = next, newSynthesis(d.r, next, d.r.rate)
	d.r.speaks(next)
}

// tongue is the language of an utterance.
type tongue struct {
	language string // ISO 639-1; "" where nobody knows
	size     int    // of the text
}

// spoken notes in which language an utterance was said: as its recognizer tells, or as it was asked to hear, if that is one
// language alone; else as the text looks.
func (b *transcript) spoken(n int, by *cast, t ai.Transcript) {
	if t.Text == "" || t.Err != nil || by == nil {
		return
	}
	in := tongue{t.Language, len(t.Text)}
	if all := by.languages(); in.language == "" && len(all) > 1 {
		in.language = lang.Which(t.Text, all)
	} else if in.language == "" {
		in.language = by.Language
	}
	if b.tongues == nil {
		b.tongues = map[int]tongue{}
	}
	b.tongues[n] = in
}

// language is the one in which most of some utterances was said, "" where nobody knows.
func (b *transcript) language(heard []int) (most string) {
	sizes := map[string]int{}
	for _, n := range heard {
		if in := b.tongues[n]; in.language != "" {
			if sizes[in.language] += in.size; sizes[in.language] > sizes[most] {
				most = in.language
			}
		}
	}
	return most
}

// begins adds a reply to the transcript, in the language that is spoken now.
func (r *run) begins(a *answer) {
	if r.cast != nil {
		if a.language = r.cast.Language; len(r.cast.others()) > 0 {
			a.among = r.cast.languages()
		}
	}
	r.transcript.assistant(a)
}

// spokenIn is the language of a reply: of several as its text looks, if that is clear.
func (a *answer) spokenIn(text string) string {
	if language := lang.Which(text, a.among); language != "" {
		return language
	}
	return a.language
}
