package turn

import (
	"cmp"
	"time"

	"parley/internal/lang"
)

// What the sound of speech tells besides its text: whether it has words that mean something, or is a hum, a word of
// listening or a noise. The limits are logits, and were chosen with the voices that the rules are made with.

const (
	humFirst   = -3.                    // with less, a sound is a hum: the reply doesn't even step back
	wordFirst  = 2.                     // with so much it very likely has words, and silences a reply at once,
	wordSoon   = 140 * time.Millisecond // and after so much of it with more than
	wordLikely = 1.                     // this, by which the text of a short one is waited for, too
	humSaid    = -2.5                   // with less it counts as listening, if its text is a word or two,
	humBrief   = -1.                    // as it does with this if it is shorter than two words that mean something,
	humSure    = -4.                    // and with less than this even if it lasts
	wordSaid   = 2.5                    // with more, little words and short ones count, and what is not understood is asked for,
	wordSure   = 4.                     // and with more than this, "oh" and "mm"
	minWord    = 200 * time.Millisecond // but nothing that is shorter than this
	letterTime = 25 * time.Millisecond  // a letter takes twice as long
	wordsTime  = 560 * time.Millisecond // so long are two words at least ("never mind" takes 700)
)

// Silences reports whether what is certainly speech, and has gone on for so long without a break, silences a reply: if its
// sound likely has words. Many a backchannel begins like a word that means something, so that the first of a sound must
// be surer. Of words that are 0 nothing is known.
func Silences(words float32, lasted time.Duration) bool {
	return words == 0 || words >= wordFirst || words >= wordLikely && lasted >= wordSoon
}

// StepsBack reports whether a reply gets fainter for what is certainly speech: if it is more than a hum.
func StepsBack(words float32) bool { return words >= humFirst }

// weigh takes what the sound tells so far. It counts from the next frame on: by then those who silence replies know.
func (m *Machine) weigh(words, sound float32) {
	if m.open && words != 0 {
		m.turn[m.latest()].words = words
	}
	if m.open && sound != 0 {
		m.turn[m.latest()].sound = sound
	}
}

// unclear reports whether an utterance of which nothing was understood surely had words: it was said over a reply, is
// certainly speech, and lasts. Somebody who says that is not ignored, but asked to say it again.
func (m *Machine) unclear(s *segment) bool {
	return !m.manner.Sound && m.reply != nil && m.cuttable(m.reply) && s.sure && s.words > wordSaid &&
		s.last-s.from+frameTime >= m.manner.Confirm && m.manner.MinWords <= 1
}

// phantom reports whether a text is one that recognizers write for noise, and the sound doesn't speak against that: it has
// no clear words. What people say, too, must moreover sound like a noise, be doubted by the recognizer itself, or be more than
// was said in its time; somebody who was asked for a number or a name answers with something else.
func (m *Machine) phantom(s *segment, text string, noSpeech float64) bool {
	_, often := lang.Phantom(text, m.manner.Language)
	words := cmp.Or(s.words, s.sound)
	switch {
	case text == "", words > wordSaid:
		return false
	case lang.Unspoken(text, m.manner.Language, noSpeech), often && words < humBrief:
		return true
	case !often:
		return false
	}
	return s.last-s.from+frameTime < time.Duration(len([]rune(text)))*letterTime || words != 0 && m.asks.Kind != lang.AnyForm
}

// misheard reports whether a text of mere sounds ("oh") stands for words that the recognizer has missed.
func (g gist) misheard(words float32) bool { return g.backchannel && !g.nod && words > wordSure }
