package deepgramtest

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/internal/ai/aitest"
)

const (
	window = 0.04 // seconds of sound that are looked at together
	loud   = 300  // mean amplitude from which sound is no silence
	pace   = 0.05 // seconds that a character of a tone's text takes
	lull   = 0.4  // seconds of silence between two utterances that are no tones
	margin = 0.07 // by which the end of a tone may be seen early
)

// word is one that was said, with its times in seconds of the stream.
type word struct {
	text       string
	language   string // told where several may be spoken
	start, end float64
}

// listener makes words of a stream of sound: of tones, the texts that they stand for; of anything else that is loud, what
// the server is told to hear.
type listener struct {
	p     *peer
	pcm   []int16 // not looked at yet
	now   float64 // how far the stream has been looked at
	text  string  // of the tone that is heard
	maybe string  // in the last window; it takes two to be sure
	began float64 // when
	quiet float64 // since when it is
	words []word  // all that were begun, in order
}

func newListener(p *peer) *listener { return &listener{p: p, quiet: -lull} }

// hear takes sound; false when it is none.
func (l *listener) hear(raw []byte) bool {
	if len(raw)%2 != 0 {
		return false
	}
	for ; len(raw) > 0; raw = raw[2:] {
		l.pcm = append(l.pcm, int16(binary.LittleEndian.Uint16(raw)))
	}
	n := int(window * float64(l.p.rate))
	for ; len(l.pcm) >= n; l.pcm = l.pcm[n:] {
		l.look(l.pcm[:n])
		l.now += window
	}
	return true
}

// rest is how much has come and was not looked at, in seconds.
func (l *listener) rest() float64 { return float64(len(l.pcm)) / float64(l.p.rate) }

// flush takes what has come as a whole window.
func (l *listener) flush() {
	if r := l.rest(); r > 0 {
		l.look(l.pcm)
		l.now, l.pcm = l.now+r, nil
	}
}

func (l *listener) look(pcm []int16) {
	sum := 0
	for _, v := range pcm {
		sum += max(int(v), -int(v))
	}
	if sum < loud*len(pcm) {
		l.text, l.maybe = "", ""
		return
	}
	text := l.p.s.Voice.Find(pcm, l.p.rate)
	was, sure := l.quiet, text == l.maybe
	l.maybe = text
	l.quiet = l.now + window
	switch {
	case text == "": // speech, or the edge of a tone
		if l.text == "" && l.now-was >= lull {
			l.begin(l.p.s.next(), 0.2)
		}
	case !sure:
	case text != l.text, l.now > l.began+aitest.SpeechTime(text, 1).Seconds()+window:
		l.text, l.began = text, l.now-window
		l.begin(text, 0)
	}
}

// begin has a text's words begin now: each takes so long, or as long as it is.
func (l *listener) begin(text string, each float64) {
	at := l.now
	if each == 0 {
		at = l.began
	}
	for _, w := range strings.Fields(text) {
		w, language, _ := strings.Cut(w, "/") // hola/es
		end := at + each
		if each == 0 {
			end = at + pace*float64(utf8.RuneCountInString(w)+1)
		}
		l.words = append(l.words, word{w, language, at, end})
		at = end
	}
}

// said is how many words have been said by now.
func (l *listener) said() int {
	n := 0
	for n < len(l.words) && l.words[n].end <= l.now+margin {
		n++
	}
	return n
}

// begun is how many words have begun by now: what is taken for said when no more sound is to come.
func (l *listener) begun() int {
	n := l.said()
	for n < len(l.words) && l.words[n].start <= l.now-window {
		n++
	}
	return n
}

// silence is for how long nothing loud has been heard, in seconds.
func (l *listener) silence() float64 { return l.now - l.quiet }

func textOf(words []word) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.text
	}
	return strings.Join(list, " ")
}

// languagesOf are the languages of words, those of the most words first.
func languagesOf(words []word) []string {
	count, list := map[string]int{}, []string{}
	for _, w := range words {
		if count[w.language]++; w.language != "" && count[w.language] == 1 {
			list = append(list, w.language)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return count[b] - count[a] })
	return list
}
