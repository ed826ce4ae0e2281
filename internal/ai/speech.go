package ai

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Synthesizer speaks with one voice. It is safe for concurrent use and holds nothing between calls.
type Synthesizer interface {
	// Rate is that of the sound in Hz: 8000, 16000 or 24000. It never changes.
	Rate() int
	// Speak says one utterance and blocks until all of it is there. The sound goes to yield as it comes, mono 16-bit PCM in order and from
	// the calling goroutine; yield must not keep the slice. A slow yield slows the vendor down instead of filling memory. What holds no
	// word may be silence or nothing at all.
	//
	// The error is an *Error, unless ctx ended or yield refused: then it is context.Cause(ctx), or yield's error. When Speak returns,
	// nothing of it is left running: ending ctx is how a reply is cut off.
	Speak(ctx context.Context, u Utterance, yield func(pcm []int16) error) error
}

// Utterance is what is to be said, best a sentence or a few.
type Utterance struct {
	Text string
	// Speed is 0.7 to 1.2 times the voice's own; 0 is 1.
	Speed float64
	// Pronunciations are words, or several in a row, and how to write them so that they are said right.
	Pronunciations map[string]string
}

// Words is the text as a voice is to get it: every word that has a pronunciation in its respelling, in any case and only as a whole word;
// valid UTF-8 without control characters.
func (u Utterance) Words() string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(u.Text, " "))
	if len(u.Pronunciations) == 0 {
		return strings.TrimSpace(text)
	}
	words := make([]string, 0, len(u.Pronunciations))
	for w := range u.Pronunciations {
		if strings.TrimSpace(w) != "" {
			words = append(words, w)
		}
	}
	slices.SortFunc(words, func(a, b string) int { // of several that fit the longest; the same order every time
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var out strings.Builder
	for i := 0; i < len(text); {
		if w := wordAt(text, i, words); w != "" {
			out.WriteString(u.Pronunciations[w])
			i += len(w)
			continue
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		out.WriteString(text[i : i+n])
		i += n
	}
	return strings.TrimSpace(out.String())
}

// Pace is the speed, kept to what an assistant may have.
func (u Utterance) Pace() float64 {
	if u.Speed == 0 {
		return 1
	}
	return min(max(u.Speed, 0.7), 1.2)
}

// wordAt is the first of words that stands at i as a whole.
func wordAt(text string, i int, words []string) string {
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	if i > 0 && inWord(before) {
		return ""
	}
	for _, w := range words {
		if end := i + len(w); end <= len(text) && strings.EqualFold(text[i:end], w) {
			if after, _ := utf8.DecodeRuneInString(text[end:]); end == len(text) || !inWord(after) {
				return w
			}
		}
	}
	return ""
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// Missing says that a program or library that a vendor needs is not installed on this machine. It is wrapped in an Error of kind Config.
type Missing struct {
	What    string // the program or library
	Package string // Debian's name of what holds it
}

func (m *Missing) Error() string {
	return m.What + " is not installed on the server: apt-get install " + m.Package
}
