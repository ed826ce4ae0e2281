package console

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/internal/parley"
)

// statusLabels are the states of calls in words.
var statusLabels = map[parley.CallStatus]string{parley.CallInitiated: "Starting", parley.CallRinging: "Ringing",
	parley.CallInProgress: "In progress",
	parley.CallCompleted:  "Completed", parley.CallBusy: "Busy", parley.CallNoAnswer: "No answer",
	parley.CallFailed: "Failed", parley.CallCanceled: "Canceled"}

// callTypes are the types of calls in words.
var callTypes = map[parley.CallType]string{parley.CallInbound: "Inbound", parley.CallOutbound: "Outbound",
	parley.CallWeb: "Browser"}

// typeOf is a call's type in words, and whether it is a test.
func typeOf(t parley.CallType, test bool) string {
	if test {
		return callTypes[t] + ", test"
	}
	return callTypes[t]
}

// reasons say why a call is over, as one would tell somebody.
var reasons = map[parley.EndedReason]string{
	parley.CustomerHangup:      "The customer hung up.",
	parley.AssistantHangup:     "The assistant ended the call.",
	parley.APIHangup:           "It was hung up from the console or by the API.",
	parley.Transferred:         "The call was transferred.",
	parley.MaxDuration:         "The call reached the assistant's maximum duration.",
	parley.MaxSilence:          "Nobody said anything for too long.",
	parley.Voicemail:           "A voicemail answered.",
	parley.LineBusy:            "The line was busy.",
	parley.NoAnswer:            "Nobody answered.",
	parley.Rejected:            "The call was declined.",
	parley.Unreachable:         "The number can't be reached.",
	parley.Canceled:            "The call was canceled before anybody answered.",
	parley.InsufficientBalance: "The balance does not cover the call.",
	parley.ProviderFailure:     "A provider failed: the assistant could not speak or hear.",
	parley.MediaTimeout:        "No more audio arrived from the other side.",
	parley.NodeLost:            "The server that handled the call stopped unexpectedly.",
	parley.Shutdown:            "The server was stopped.",
}

// reasonText is why a call is over, in words.
func reasonText(r parley.EndedReason) string {
	if text := reasons[r]; text != "" {
		return text
	}
	return string(r)
}

var legKinds = map[parley.LegKind]string{parley.LegTransfer: "Transfer", parley.LegSupervisor: "Supervisor",
	parley.LegGuest: "Guest", parley.LegRing: "Telephone"}

var legModes = map[parley.LegMode]string{"": "joined with the customer", parley.LegListen: "listens",
	parley.LegWhisper: "whispers to the assistant", parley.LegTalk: "talks with both",
	parley.LegTakeOver: "has taken over"}

// legText is how far somebody is who was called into a call, or how that ended, and what it cost.
func legText(l parley.CallLeg) string {
	text := ""
	switch l.Status {
	case parley.LegDialing:
		text = "is called"
	case parley.LegRinging:
		text = "ringing"
	case parley.LegBriefing:
		text = "being briefed"
	case parley.LegJoined:
		text = legModes[l.Mode]
	case parley.LegEnded:
		text = "left"
		if l.JoinedAt == 0 {
			text = "did not join: " + strings.ReplaceAll(string(l.EndedReason), "_", " ")
		}
	}
	if l.Cost > 0 {
		text += ", " + dollars(l.Cost)
	}
	return text
}

func (v *callView) legsVersion() string {
	var b strings.Builder
	for _, l := range v.legs {
		fmt.Fprintf(&b, "%d.%s.%s.%t ", l.ID, l.Status, l.Mode, l.Recording != "")
	}
	return b.String()
}

// speakerText is who says a turn.
func speakerText(t *parley.CallTurn) string {
	switch {
	case t.Whispered:
		return "Supervisor, to the assistant alone"
	case t.Speaker == parley.SpeakerAssistant:
		return "AI"
	case t.Speaker == parley.SpeakerSupervisor:
		return "Supervisor"
	case t.Speaker == parley.SpeakerGuest:
		return "Guest"
	}
	return "Customer"
}

// failedText is why a call failed: as exactly as it is known.
func failedText(c *parley.Call) string {
	if c.EndedDetail != nil {
		return *c.EndedDetail
	}
	return reasonText(c.EndedReason)
}

// answeredBy says who took a call.
func answeredBy(c *parley.Call) string {
	switch c.TakenBy {
	case parley.TakenByTelephone:
		if c.Answered() {
			return "one of the number's telephones"
		}
		return "nobody; telephones rang"
	case parley.TakenByVoicemail:
		return "the voicemail"
	case parley.TakenByQueue:
		return "nobody; the caller waited for a line"
	case parley.TakenByNobody:
		return "nobody; the caller was told so"
	}
	switch {
	case !c.Answered():
		return "nobody"
	case c.AnsweredBy == parley.AnsweredHuman:
		return "a person" + verdictText(c)
	case c.AnsweredBy == parley.AnsweredMachine:
		return "a machine" + verdictText(c)
	}
	return "unknown"
}

// verdictText says how who took an outgoing call was judged: each kind once, with what told so.
func verdictText(c *parley.Call) string {
	var parts []string
	var last parley.AnswererKind
	for _, v := range c.Verdicts {
		if v.Kind != last && v.Kind != parley.AnswererMachine {
			parts = append(parts, fmt.Sprintf("%s after %.1f s, by %s", v.Kind, float64(v.AtMS)/1000, v.Reason))
			last = v.Kind
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// stage is a step on the way to a reply's first sound.
type stage struct{ name, what string }

// stages are in the order in which a reply comes to be.
var stages = []stage{
	{"End of turn", "the customer had finished speaking"},
	{"Transcript", "their words were transcribed"},
	{"First word", "the model began to answer"},
	{"First sentence", "the first sentence was complete"},
	{"First sound", "speech was ready"},
	{"Heard", "the first sound was sent"},
}

// stagesOf are the times of a latency by stage, in milliseconds since the customer's last sound; 0 is one that a
// reply did without.
func stagesOf(l *parley.Latency) []int64 {
	return []int64{l.EndpointMS, l.TranscriptMS, l.FirstTokenMS, l.FirstSentenceMS, l.FirstAudioMS, l.FirstPacketMS}
}

// bar is a part of a reply's waterfall: a stage, and its place on a line of a thousand.
type bar struct {
	stage       int
	from, width int64
}

// waterfall is how the replies of a call came to be.
type waterfall struct {
	replies []timed
	longest int64 // milliseconds
}

// timed is a reply of the assistant's with the times of its making.
type timed struct {
	turn  int
	atMS  int64
	times []int64
	total int64
	ahead parley.Ahead
}

// waterfall gathers the replies whose making was measured.
func (v *callView) waterfall() *waterfall {
	w := &waterfall{}
	for i, t := range v.Turns {
		if t.Latency == nil {
			continue
		}
		r := timed{turn: i, atMS: t.StartedAtMS, times: stagesOf(t.Latency), ahead: t.Latency.Ahead}
		r.total = slices.Max(r.times)
		w.longest = max(w.longest, r.total)
		w.replies = append(w.replies, r)
	}
	return w
}

// bars are a reply's parts. A part that was ready before the one in front of it takes no room.
func (w *waterfall) bars(r timed) (list []bar) {
	done := int64(0)
	for i, ms := range r.times {
		if ms <= done || w.longest == 0 {
			continue
		}
		from, to := done*1000/w.longest, ms*1000/w.longest
		list = append(list, bar{i, from, max(to-from, 2)})
		done = ms
	}
	return list
}

// aheadText says how often thinking ahead paid off; "" where nothing was begun early.
func (w *waterfall) aheadText() string {
	hits, misses := 0, 0
	for _, r := range w.replies {
		switch r.ahead {
		case parley.AheadHit:
			hits++
		case parley.AheadMiss:
			misses++
		}
	}
	if hits+misses == 0 {
		return ""
	}
	return fmt.Sprintf(" Of %s begun before the customer had finished, %d could be used.",
		count(hits+misses, "reply", "replies"), hits)
}

// percentile is the time within which so many of a hundred replies were heard.
func (w *waterfall) percentile(p int) int64 {
	all := make([]int64, len(w.replies))
	for i, r := range w.replies {
		all[i] = r.total
	}
	return percentile(all, p)
}

// judged are what is known to be in an evaluation, in order, and then what else there is.
func judged(e map[string]any) (names []string) {
	known := []string{"sentiment", "outcome", "score"}
	for _, name := range known {
		if _, ok := e[name]; ok {
			names = append(names, name)
		}
	}
	rest := names[:len(names):len(names)]
	for name := range e {
		if !slices.Contains(known, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest[len(names):])
	return rest
}

// useName is a vendor that a call used, and for what.
func useName(u parley.VendorUse) string {
	if u.Model == "" {
		return firstUpper(u.Part) + " " + u.Vendor
	}
	return firstUpper(u.Part) + " " + u.Vendor + "/" + u.Model
}

// useText is what was used of it.
func useText(u parley.VendorUse) string {
	var list []string
	add := func(n int64, what string) {
		if n > 0 {
			list = append(list, strconv.FormatInt(n, 10)+" "+what)
		}
	}
	add(u.TokensIn, "tokens in")
	add(u.TokensCached, "of them cached")
	add(u.TokensOut, "tokens out")
	add(u.AudioTokensIn, "tokens of sound in")
	add(u.AudioTokensCached, "of them cached")
	add(u.AudioTokensOut, "tokens of sound out")
	add(u.CharactersSpoken, "characters")
	add(int64(math.Ceil(u.SecondsHeard)), "s heard")
	return strings.Join(list, ", ")
}

// switchText says that another vendor went on.
func switchText(s parley.VendorSwitch) string {
	why, ok := map[string]string{"rate limited": "took no more requests", "overloaded": "was overloaded or down",
		"unreachable": "could not be reached", "interrupted": "broke off in the middle",
		"stalled": "sent nothing for too long", "malformed": "sent what could not be understood",
		"configuration": "refused the server's settings", "too long": "takes no request of that length"}[s.Reason]
	switch {
	case s.Reason == "":
		return fmt.Sprintf("The %s is %s again.", s.Part, s.To)
	case !ok:
		why = "failed"
	}
	return fmt.Sprintf("%s %s, and %s went on.", firstUpper(s.Part+" "+s.From), why, s.To)
}
