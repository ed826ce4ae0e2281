package openai

import (
	"slices"
	"strings"
)

// languages lists the languages of Whisper that Parley knows, for speech and for transcription.
const languages = "en es fr de it pt nl pl sv da no fi cs sk hu ro bg hr sr sl el tr ru uk he ar fa hi ur ta zh ja ko th vi " +
	"id ms et lv lt ca is"

// detected is a language that a model found in what it heard.
type detected struct {
	Code string `json:"code"`
}

// codes are those of languages.
func codes(found []detected) (list []string) {
	for _, d := range found {
		list = append(list, d.Code)
	}
	return list
}

// detects reports whether a transcription model says which languages it heard.
func detects(model string) bool { return strings.HasPrefix(model, "gpt-transcribe") }

// takesHints reports whether a transcription model is told the languages that may be spoken, and the words to expect, in
// lists. Older models take one language, and words in a prompt; they refuse the lists.
func takesHints(model string) bool {
	return detects(model) || strings.HasPrefix(model, "gpt-live-transcribe")
}

// mixedBy returns the languages that a model tells apart.
func mixedBy(model string) string {
	if detects(model) {
		return languages
	}
	return ""
}

// oneOf returns in which of the languages that may be spoken something was said, "" if the model doesn't say, or found
// several of them: it doesn't say in which one most of it was.
func oneOf(language string, others []string, found []string) (one string) {
	if len(others) == 0 {
		return ""
	}
	for _, code := range found {
		code, _, _ := strings.Cut(code, "-")
		switch {
		case code != language && !slices.Contains(others, code), code == one:
		case one != "":
			return ""
		default:
			one = code
		}
	}
	return one
}

// terms are the keywords as a list, as far as a model takes them: none with a character that it refuses.
func terms(keywords []string) (list []string) {
	n := 0
	for _, k := range keywords {
		k = strings.TrimSpace(strings.Map(func(r rune) rune {
			if strings.ContainsRune("<>\r\n", r) {
				return ' '
			}
			return r
		}, k))
		if n += len(k) + 2; k == "" || n > maxPrompt {
			continue
		}
		list = append(list, k)
	}
	return list
}
