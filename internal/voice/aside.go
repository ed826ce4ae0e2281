package voice

import (
	"slices"
	"strings"

	"parley/internal/agent"
	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/turn"
)

// asides picks the sentences that bridge a wait. It never picks the same one twice in a row.
type asides struct {
	last string
	next map[lang.Mood]int
}

// filler is said when a reply is slow. It is "" when there is nothing new to say.
func (s *asides) filler(a *parley.Assistant, language, customer string) string {
	c := &a.FillerConfig
	m := lang.MoodOf(customer, language)
	list := map[lang.Mood][]string{lang.Neutral: c.Neutral, lang.Negative: c.Negative, lang.Positive: c.Positive,
		lang.Question: c.Question}[m]
	if len(list) == 0 {
		m, list = lang.Neutral, c.Neutral
	}
	if len(c.Neutral)+len(c.Negative)+len(c.Positive)+len(c.Question) == 0 {
		list = lang.Of(language).Fillers
	}
	return s.choose(m, list)
}

// bridge is said when a tool is slow.
func (s *asides) bridge(w turn.Purpose, a *parley.Assistant, language, customer string) string {
	if w == turn.Moment && bool(a.Fillers) {
		if text := s.filler(a, language, customer); text != "" {
			return text
		}
	}
	s.last = fixed(w, language)
	return s.last
}

// ofTool is the sentence of the latest of the tools that run which has its own; "" where none has, or it was said last.
func (s *asides) ofTool(w turn.Purpose, running []agent.ToolCall) string {
	which := 0
	if w == turn.StillOn {
		which = 1
	}
	for _, c := range slices.Backward(running) {
		if text := strings.TrimSpace(c.Fillers[which]); text != "" && text != s.last {
			s.last = text
			return text
		}
	}
	return ""
}

func (s *asides) choose(m lang.Mood, list []string) string {
	for range list {
		if s.next == nil {
			s.next = map[lang.Mood]int{}
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

// fixed is a sentence that is always available.
func fixed(w turn.Purpose, language string) string {
	p := &lang.Of(language).Phrases
	switch w {
	case turn.StillThere:
		return p.StillThere
	case turn.Moment:
		return p.Moment
	case turn.StillOn:
		return p.StillOn
	case turn.Apology:
		return p.Apology
	}
	return p.Failure
}
