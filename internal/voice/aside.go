package voice

import (
	"slices"
	"strings"

	"parley"
)

// asides chooses what bridges a wait. The same is never said twice in a row.
type asides struct {
	last string
	next map[mood]int
}

type mood uint8

const (
	neutral mood = iota
	negative
	positive
	question
)

// moodOf judges what the customer said.
func moodOf(text, language string) mood {
	tokens := tokenize(text)
	l := wordsOf(language)
	if asks(text) || len(tokens) > 0 && l.question[tokens[0]] {
		return question
	}
	has := func(words map[string]bool) bool {
		return slices.ContainsFunc(tokens, func(t string) bool { return words[t] })
	}
	switch {
	case has(l.negative):
		return negative
	case has(l.positive):
		return positive
	}
	return neutral
}

// thoughtful are the fillers of an assistant that has none of its own.
var thoughtful = map[string][]string{
	"en": {"Hmm, let me see.", "Okay, one second.", "Let me think."}, "de": {"Hm, Moment.", "Lassen Sie mich kurz überlegen."}, "fr": {"Hmm, voyons.", "Alors, voyons voir."},
	"es": {"A ver.", "Mmm, déjeme ver."}, "it": {"Vediamo.", "Mmm, un attimo."}, "pt": {"Deixe-me ver.", "Hmm, ora bem."}, "nl": {"Even kijken.", "Hmm, momentje."}, "pl": {"Hmm, zobaczmy.", "Chwileczkę."},
}

// filler is said when a reply is slow; "" when there is nothing new to be said.
func (s *asides) filler(a *parley.Assistant, language, customer string) string {
	c := &a.FillerConfig
	m := moodOf(customer, language)
	list := map[mood][]string{neutral: c.Neutral, negative: c.Negative, positive: c.Positive, question: c.Question}[m]
	if len(list) == 0 {
		m, list = neutral, c.Neutral
	}
	if len(c.Neutral)+len(c.Negative)+len(c.Positive)+len(c.Question) == 0 {
		if list = thoughtful[language]; list == nil {
			list = []string{"Hmm."}
		}
	}
	return s.choose(m, list)
}

// bridge is said when a tool is slow.
func (s *asides) bridge(w what, a *parley.Assistant, language, customer string) string {
	if w == aMoment && bool(a.Fillers) {
		if text := s.filler(a, language, customer); text != "" {
			return text
		}
	}
	s.last = phrase(w, language)
	return s.last
}

func (s *asides) choose(m mood, list []string) string {
	for range list {
		if s.next == nil {
			s.next = map[mood]int{}
		}
		text := strings.TrimSpace(list[s.next[m]%len(list)])
		s.next[m]++
		if text != "" && text != s.last {
			s.last = text
			return text
		}
	}
	return ""
}
