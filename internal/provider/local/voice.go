package local

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"parley/internal/ai"
)

// The codes of the built-in synthesizers.
const (
	FliteCode  = "flite"
	ESpeakCode = "espeak"
)

// Flite speaks English with CMU Flite: the voices rms, slt, awb, kal16 and kal. The zero value finds the program on the
// PATH. While a text is being spoken it is visible in the machine's process list, because the program reads and writes
// files in a way that doesn't work with pipes.
type Flite struct {
	Path  string
	Stall time.Duration // how long the program may print nothing; 0: 15 s
}

// Find says where the program is; the error, of kind Config, says what to install.
func (f Flite) Find() (string, error) { return f.program().find() }

func (f Flite) program() program {
	return program{name: "flite", pkg: "flite", path: f.Path, stall: f.Stall}
}

var fliteVoices = map[string]bool{"rms": true, "slt": true, "awb": true, "kal16": true, "kal": true}

// Say implements ai.Plain.
func (f Flite) Say(ctx context.Context, as ai.Speech, text string, yield func([]int16) error) error {
	text, err := sayable(ctx, text)
	if err != nil {
		return err
	}
	if !fliteVoices[as.Voice] { // the program would take another without a word
		return &ai.Error{Kind: ai.Config, Err: fmt.Errorf("flite has no voice %q", as.Voice)}
	}
	if text = ascii(text); !hasWord(text) {
		return nil
	}
	args := []string{"-voice", as.Voice}
	if v := speed(as); v != 1 {
		args = append(args, "--setf", "duration_stretch="+strconv.FormatFloat(1/v, 'f', 3, 64))
	}
	// What follows -t is text, whatever it begins with.
	return f.program().speak(ctx, append(args, "-o", "/dev/stdout", "-t", fliteHums.in(text)), "", as.Rate, yield)
}

// ESpeak speaks many languages with eSpeak NG. A voice is the program's name for a language, with a variant: de,
// en-us+f3. The zero value finds the program on the PATH.
type ESpeak struct {
	Path  string
	Stall time.Duration // how long the program may print nothing; 0: 15 s
}

// Find says where the program is; the error, of kind Config, says what to install.
func (e ESpeak) Find() (string, error) { return e.program().find() }

func (e ESpeak) program() program {
	return program{name: "espeak-ng", pkg: "espeak-ng", path: e.Path, stall: e.Stall}
}

var espeakVoice = regexp.MustCompile(`^[a-z]{2,3}(-[a-zA-Z0-9]+)*(\+[a-zA-Z0-9]+)?$`)

const wordsPerMinute = 175 // eSpeak's own speed

// Say implements ai.Plain.
func (e ESpeak) Say(ctx context.Context, as ai.Speech, text string, yield func([]int16) error) error {
	text, err := sayable(ctx, text)
	if err != nil {
		return err
	}
	if !espeakVoice.MatchString(as.Voice) {
		return &ai.Error{Kind: ai.Config, Err: fmt.Errorf("espeak-ng has no voice %q", as.Voice)}
	}
	if !hasWord(text) {
		return nil
	}
	text = espeakHums.in(strings.ReplaceAll(text, "[[", "[ [")) // phonemes would follow
	pace := strconv.Itoa(int(wordsPerMinute*speed(as) + 0.5))
	return e.program().speak(ctx, []string{"-b", "1", "-v", as.Voice, "-s", pace, "--stdin", "--stdout"}, text,
		as.Rate, yield)
}

// speed is within what can be understood.
func speed(s ai.Speech) float64 {
	if s.Speed == 0 {
		return 1
	}
	return min(max(s.Speed, 0.5), 2)
}

// sayable is a text as a program may have it: in one line, without what is not there to be said (eSpeak takes control
// characters as commands).
func sayable(ctx context.Context, text string) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if n := utf8.RuneCountInString(text); n > maxText {
		return "", &ai.Error{Kind: ai.TooLong, Err: fmt.Errorf("a text of %d characters, %d are said at once", n,
			maxText)}
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.So, r) && r != '°' || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " "), nil
}

// hasWord says whether there is anything to be said.
func hasWord(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// foreign is what a program that knows English alone is told in place of signs beyond ASCII.
var foreign = strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "–", ", ",
	"—", ", ", "…", "... ", "€", " euros ", "£", " pounds ",
	"¥", " yen ", "°", " degrees ", "×", " times ", "½", " one half ", "¼", " one quarter ", "ß", "ss", "æ", "ae",
	"Æ", "Ae", "ø", "o", "Ø", "O", "œ", "oe", "Œ", "Oe", "ł", "l", "Ł", "L", "đ", "d", "Đ", "D")

// ascii writes a text for Flite, which takes bytes beyond ASCII for nothing: letters lose their accents, what is no
// Latin letter goes.
func ascii(text string) string {
	text = norm.NFKD.String(foreign.Replace(text))
	text = strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf:
			return r
		case unicode.Is(unicode.Mn, r):
			return -1
		}
		return ' '
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
