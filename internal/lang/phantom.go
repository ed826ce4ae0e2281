package lang

import "strings"

// Phantoms are what recognizers write for noise and silence: they have learned from films with subtitles.
type Phantoms struct {
	Never Set `json:"never"` // nobody says these to whom they talk with; more may follow
	Often Set `json:"often"` // people say these, too
}

// Phantom says whether a text is one that recognizers write for noise: never where people don't say such a thing, often
// where they do. English ones are written for noise in any language.
func Phantom(text, language string) (never, often bool) {
	own, english := &Of(language).Phantoms, &Of("en").Phantoms
	tokens := Tokens(text)
	said := strings.Join(tokens, " ")
	const most = 12 // words, of one that nobody says
	if Count(text) <= most {
		never = starts(said, own.Never) || starts(said, english.Never)
	}
	whole := own.Often[strings.Join(tokens, "")] // longer than a phrase, in scripts without spaces
	return never, !never && (whole || allOf(text, false, own.Often, english.Often))
}

// How likely nobody spoke, by a recognizer's word, where a text is none: one that recognizers often write for noise, and any.
const (
	noSpeechOften = 0.6
	noSpeechAny   = 0.9
)

// Unspoken says whether a text stands for no speech: nobody says such a thing, or the recognizer itself doubts that
// somebody spoke (0: it says nothing of that).
func Unspoken(text, language string, noSpeech float64) bool {
	if noSpeech >= noSpeechAny {
		return true
	}
	never, often := Phantom(text, language)
	return never || often && noSpeech >= noSpeechOften
}

// starts says whether a text that was made of Tokens begins with a phrase.
func starts(said string, phrases Set) bool {
	close := strings.ReplaceAll(said, " ", "")
	for p := range phrases {
		if strings.HasPrefix(said+" ", p+" ") || spacelessIn(p) && strings.HasPrefix(close, p) {
			return true
		}
	}
	return false
}
