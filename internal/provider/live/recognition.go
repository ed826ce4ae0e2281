package live

import (
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
)

// recognition is what the model understood of the customer, utterance by utterance.
type recognition struct {
	tell      func(ai.RealtimeEvent)
	languages []string // that may be spoken
	said      []*utterance
	ended     int // how many of them are over; one more may be under way
}

// utterance is what the customer says between two Ends.
type utterance struct {
	n         int
	text      string
	language  string    // in which it was said; "": it can be only one, or is not told
	untilMS   int       // where it ends on the server's timeline, if there is one
	touched   time.Time // when its text changed
	giveUp    time.Time // after which there is no text; zero while the server hasn't begun to understand it
	forgotten bool
	final     bool
}

const (
	settles = 800 * time.Millisecond // after which the text of an utterance is final
	lateMS  = 700                    // how long after an utterance its words may still be dated
)

// now is the utterance that is under way.
func (h *recognition) now() *utterance {
	if len(h.said) == h.ended {
		h.said = append(h.said, &utterance{n: h.ended})
	}
	return h.said[h.ended]
}

// end ends the utterance that is under way.
func (h *recognition) end() *utterance {
	u := h.now()
	h.ended++
	return u
}

func (h *recognition) forget(n int) {
	if n >= 0 && n < len(h.said) {
		h.said[n].forgotten = true
	}
}

// listens sets the time after which there is no text of the utterances so far, for those that have none yet.
func (h *recognition) listens(until time.Time) {
	for _, u := range h.said {
		if u.giveUp.IsZero() {
			u.giveUp = until
		}
	}
}

// open reports whether an utterance has no final text.
func (h *recognition) open() bool {
	return slices.ContainsFunc(h.said, func(u *utterance) bool { return !u.final })
}

// at is the utterance whose words were said at a place of the server's timeline: the first one that was not over then.
func (h *recognition) at(ms int) *utterance {
	if k := slices.IndexFunc(h.said[:h.ended], func(u *utterance) bool { return ms <= u.untilMS+lateMS }); k >= 0 {
		return h.said[k]
	}
	return h.now()
}

// oldest is the utterance whose words come, where the server doesn't say when they were said: the oldest one without a final text, or
// else the last one, whose text is corrected. nil: there is none. If another one has ended after it, the text that it has is all of it.
func (h *recognition) oldest() *utterance {
	var open []*utterance
	for _, u := range h.said {
		if !u.final {
			open = append(open, u)
		}
	}
	switch {
	case len(open) > 1 && open[0].text != "":
		h.final(open[0])
		return open[1]
	case len(open) > 0:
		return open[0]
	case len(h.said) > 0 && !h.said[len(h.said)-1].forgotten:
		return h.said[len(h.said)-1]
	}
	return nil
}

// take adds to the text of an utterance; interim is what may still become other words.
func (h *recognition) take(u *utterance, text, interim, language string, now time.Time) {
	u.text, u.touched = u.text+text, now
	if code, _, _ := strings.Cut(language, "-"); len(h.languages) > 1 && slices.Contains(h.languages, code) {
		u.language = code
	}
	e := ai.RealtimeEvent{Kind: ai.RealtimeHeard, N: u.n, Text: strings.TrimSpace(u.text + interim), Final: u.final}
	if u.final {
		e.Language = u.language
	}
	h.tell(e)
}

// final gives an utterance its last text.
func (h *recognition) final(u *utterance) {
	u.final = true
	h.tell(ai.RealtimeEvent{Kind: ai.RealtimeHeard, N: u.n, Text: strings.TrimSpace(u.text), Language: u.language, Final: true})
}

// settle gives their last text to those utterances for which no more is expected.
func (h *recognition) settle(now time.Time) {
	for _, u := range h.said[:h.ended] {
		none := u.text == "" && !u.giveUp.IsZero() && !now.Before(u.giveUp)
		if !u.final && (u.forgotten || none || u.text != "" && now.Sub(u.touched) >= settles) {
			h.final(u)
		}
	}
}
