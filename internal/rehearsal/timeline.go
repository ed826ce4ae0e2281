package rehearsal

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Timeline is what happened in a call, as its caller knows it. Times count from the answer.
type Timeline struct {
	Heard  []Packet // of the assistant's sound, as they came
	Acts   []Act    // of the caller
	Steps  []Span   // of each step: from its beginning to its end
	Missed []int    // steps that what they waited for never came to
	Ended  time.Duration
	By     string        // who ended it: assistant, caller, or limit
	Keys   []Key         // that the assistant pressed
	Rang   time.Duration // of who is called: until it was answered or given up
	Sent   string        // where the assistant sent the caller
	Texts  []Text        // of a chat: what was answered
}

// Packet is 20 ms of the assistant's sound.
type Packet struct {
	At    time.Duration
	Level float64 // dBFS
}

// Key is one that the assistant pressed.
type Key struct {
	At   time.Duration
	Name string
}

// Span is a stretch of time.
type Span struct{ From, To time.Duration }

// Act is something that the caller did.
type Act struct {
	Step  int
	Kind  Kind
	Text  string
	Parts []Span // of speech: of each part's voice
	Span         // of its voice, pauses included
}

// Text is a reply in a chat.
type Text struct {
	Step int
	Text string
	Took time.Duration
}

// Record is what the server recorded.
type Record struct {
	ID            int64          `json:"id"`
	Status        string         `json:"status"`
	EndedReason   string         `json:"ended_reason"`
	EndedDetail   *string        `json:"ended_detail"`
	EndedAt       *string        `json:"ended_at"`
	TotalCost     float64        `json:"total_cost"`
	Duration      int64          `json:"duration"`
	Transcript    string         `json:"transcript"`
	Variables     map[string]any `json:"variables"`
	Turns         []Turn         `json:"turns"`
	FunctionCalls []ToolCall     `json:"function_calls"`
	RecordingURL  string         `json:"recording_url"`

	Webhooks []map[string]any `json:"-"` // the events that the call's end would send; nil: not asked for, or not known
}

// Turn is what one side said in one go, as the server recorded it.
type Turn struct {
	Speaker     string   `json:"speaker"`
	Text        string   `json:"text"`
	StartedAtMS int64    `json:"started_at_ms"`
	Interrupted bool     `json:"interrupted"`
	Latency     *Latency `json:"latency,omitempty"`
}

// Latency says where the time of a reply went, in milliseconds since the caller's last voiced packet.
type Latency struct {
	EndpointMS      int64 `json:"endpoint_ms"`
	TranscriptMS    int64 `json:"transcript_ms"`
	FirstTokenMS    int64 `json:"first_token_ms"`
	FirstSentenceMS int64 `json:"first_sentence_ms"`
	FirstAudioMS    int64 `json:"first_audio_ms"`
	FirstPacketMS   int64 `json:"first_packet_ms"`
}

// ToolCall is a tool that was called.
type ToolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Result    string          `json:"result"`
	AtMS      int64           `json:"at_ms"`
	Step      int             `json:"-"` // of a chat
}

const (
	loud    = -42.0                  // dBFS: speech, and not the sound of a place behind it
	breath  = 300 * time.Millisecond // of silence that a sentence may have within
	manners = 700 * time.Millisecond // of silence after which the assistant has finished
	packet  = 20 * time.Millisecond
)

// hearing follows whether the assistant speaks, packet by packet.
type hearing struct {
	first, last time.Duration // of the loud packets of what is being heard
	any         bool
}

// hear takes a packet and reports whether an utterance begins with it.
func (h *hearing) hear(p Packet) (begins bool) {
	if p.Level < loud {
		return false
	}
	begins = !h.any || p.At-h.last > breath
	if begins {
		h.first = p.At
	}
	h.any, h.last = true, p.At
	return begins
}

// quiet is how long the assistant has been silent.
func (h *hearing) quiet(now time.Duration) time.Duration {
	if !h.any {
		return now
	}
	return max(0, now-h.last-packet)
}

// utterances are the stretches in which the assistant is heard, with no more silence than gap within.
func (t *Timeline) utterances(gap time.Duration) (out []Span) {
	for _, p := range t.Heard {
		if p.Level < loud {
			continue
		}
		if n := len(out) - 1; n >= 0 && p.At-out[n].To <= gap {
			out[n].To = p.At + packet
		} else {
			out = append(out, Span{p.At, p.At + packet})
		}
	}
	return out
}

// firstAfter is the first loud packet from a time on, and false where there is none.
func (t *Timeline) firstAfter(from time.Duration) (time.Duration, bool) {
	for _, p := range t.Heard {
		if p.At >= from && p.Level >= loud {
			return p.At, true
		}
	}
	return 0, false
}

// speaksAt says whether the assistant is heard at a time, or within a breath before and after it.
func (t *Timeline) speaksAt(at time.Duration) bool {
	return slices.ContainsFunc(t.utterances(breath), func(s Span) bool { return s.From <= at && at < s.To })
}

// next is when the caller acts again after an act, or the end.
func (t *Timeline) next(act int) time.Duration {
	if act+1 < len(t.Acts) {
		return t.Acts[act+1].From
	}
	return t.Ended
}

// Reply is how the assistant answered one act.
type Reply struct {
	Act   int
	Took  time.Duration // from the caller's last voiced packet to the first of the reply
	None  bool
	Early bool // the assistant was still speaking, or spoke before the caller had finished
}

// Replies are those to what was said: an interruption's too, and not a backchannel's, which asks for none, nor that to
// words with a beep or music after them.
func (t *Timeline) Replies() (out []Reply) {
	for i, a := range t.Acts {
		goesOn := i+1 < len(t.Acts) && (t.Acts[i+1].Kind == Beep || t.Acts[i+1].Kind == Music)
		if a.Kind != Say && a.Kind != Interrupt || goesOn {
			continue
		}
		at, ok := t.firstAfter(a.To)
		r := Reply{Act: i, Took: at - a.To, None: !ok || at >= t.next(i) && i+1 < len(t.Acts)}
		r.Early = ok && t.speaksAt(a.To)
		out = append(out, r)
	}
	return out
}

// cutoffs are the moments in which the assistant began to speak in a pause of what the caller said, or over their music.
func (t *Timeline) cutoffs(a Act) (out []time.Duration) {
	for _, u := range t.utterances(breath) {
		if a.Kind == Music && u.From > a.From && u.From < a.To {
			out = append(out, u.From)
		}
		for i := 1; i < len(a.Parts); i++ {
			if u.From > a.Parts[i-1].To && u.From < a.Parts[i].From {
				out = append(out, u.From)
				break
			}
		}
	}
	return out
}

// yielding is how an act over the assistant's speech went.
type yielding struct {
	over    bool          // the assistant was speaking
	silent  time.Duration // after how much of the act it fell silent
	yielded bool
	resumed time.Duration // after the act's end, 0 if it never stopped
	again   bool
	stale   int // packets of what was silenced that came after it
}

// yield looks at the assistant's speech around an act.
func (t *Timeline) yield(i int) (y yielding) {
	a := t.Acts[i]
	const (
		gap  = 100 * time.Millisecond // longer than between two words
		late = 400 * time.Millisecond // after the act's end: what stops later stops by itself
	)
	// Between two sentences nobody speaks for longer than that: silence while the caller still speaks must be a breath
	// long, and is one when it lasts until they have finished.
	falls := func(last, next time.Duration) bool {
		return next-last > breath || next-last > gap && next >= a.To
	}
	last, next := time.Duration(-1), t.next(i)
	for _, p := range t.Heard {
		if p.Level < loud || p.At < a.From-breath {
			continue
		}
		if p.At < a.From {
			y.over = true
		}
		switch {
		case y.yielded && p.At < a.To:
			y.stale++
		case y.yielded:
			if !y.again && p.At < next {
				y.again, y.resumed = true, max(0, p.At-a.To)
			}
		case last >= 0 && falls(last, p.At) && p.At > a.From+gap && last < a.To+late:
			y.yielded, y.silent = true, max(0, last+packet-a.From)
			if p.At < a.To {
				y.stale++
			} else if p.At < next {
				y.again, y.resumed = true, max(0, p.At-a.To)
			}
		}
		last = p.At
	}
	if y.over && !y.yielded && last < a.To+late && last < next-gap { // a voice until the end of the call has not fallen silent
		y.yielded, y.silent = true, max(0, last+packet-a.From)
	}
	return y
}

// deadAir is the longest silence in which the caller waited: after what they said, while nobody spoke.
func (t *Timeline) deadAir() (longest time.Duration) {
	for i, a := range t.Acts {
		from, next := a.To, t.next(i)
		for _, u := range t.utterances(breath) {
			if u.To <= from || u.From >= next {
				continue
			}
			longest = max(longest, u.From-from)
			from = u.To
			break // what comes after the reply's first words is the reply's own manner
		}
		if from == a.To && i+1 < len(t.Acts) {
			longest = max(longest, next-from)
		}
	}
	return longest
}

// pressed are the keys that the assistant pressed in a window.
func (t *Timeline) pressed(w Span) string {
	var b strings.Builder
	for _, k := range t.Keys {
		if k.At >= w.From && k.At < w.To {
			b.WriteString(k.Name)
		}
	}
	return b.String()
}
