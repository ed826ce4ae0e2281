package parley

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// NumberRoute says what happens to the calls that come to a number, besides that its inbound assistant answers: outside
// the hours, while all lines are taken, and to callers who are turned away.
type NumberRoute struct {
	Timezone    string      `json:"timezone" maxLength:"64" format:"timezone" doc:"IANA time zone of the hours; the account's when absent."`
	Hours       []OpenHours `json:"hours" maxItems:"50" doc:"When the number's assistant answers. Empty: always."`
	ClosedDates []string    `json:"closed_dates" maxItems:"366" pattern:"^[0-9]{4}-[0-9]{2}-[0-9]{2}$" must:"be a date such as 2026-12-25" doc:"Days without hours (YYYY-MM-DD, in the time zone)."`

	Otherwise            RouteStep `json:"otherwise" default:"refuse" enum:"refuse,assistant,telephone,voicemail" doc:"What happens outside the hours. refuse: the caller hears that nobody is available (480), and nothing is charged. assistant: otherwise_assistant_id answers. telephone: the telephones ring. voicemail: the caller may leave a message."`
	OtherwiseAssistantID *int64    `json:"otherwise_assistant_id" format:"assistant" doc:"An inbound assistant of yours that answers outside the hours. It may have a number of its own too. If no assistant is to answer, its voice is used instead of the number's own."`

	Telephones   []RingTarget `json:"telephones" maxItems:"10" doc:"Telephones to ring where a rule says telephone, from the number that the caller dialled. The first to answer talks with the caller; the others stop ringing."`
	Ring         RingOrder    `json:"ring" default:"together" enum:"together,in_turn" doc:"Whether the telephones ring at once or one after the other."`
	RingFirst    bool         `json:"ring_first" default:"false" doc:"The telephones ring within the hours too, before the number's assistant answers."`
	RingCallerID string       `json:"ring_caller_id" default:"outbound_number" enum:"outbound_number,customer_number" doc:"What the telephones show: your number, or the caller's if that is allowed."`
	RingRecord   bool         `json:"ring_record" default:"false" doc:"Record what the caller and a telephone say to each other."`
	Unanswered   RouteStep    `json:"unanswered" default:"words" enum:"words,assistant,voicemail" doc:"What happens when no telephone is answered outside the hours. words: the caller is told that nobody can take the call, and the call ends."`

	VoicemailGreeting string `json:"voicemail_greeting" maxLength:"1000" doc:"What the caller hears before the tone. Empty: a sentence in the assistant's language."`
	VoicemailSeconds  int64  `json:"voicemail_seconds" default:"120" minimum:"5" maximum:"600" doc:"How long a message may be."`
	VoicemailSilence  int64  `json:"voicemail_silence" default:"5" minimum:"2" maximum:"30" doc:"Seconds of silence that end a message, as # does."`

	WhenFull     RouteStep `json:"when_full" default:"refuse" enum:"refuse,queue,telephone,voicemail" doc:"What happens to a call for an assistant while all lines are taken. refuse: the caller hears a busy tone (486)."`
	Lines        *int64    `json:"lines" minimum:"1" maximum:"1000" doc:"How many calls of this number the assistants may hold at once. Null: as many as the plan allows."`
	QueuePlaces  int64     `json:"queue_places" default:"10" minimum:"1" maximum:"100" doc:"How many callers may wait."`
	QueueSeconds int64     `json:"queue_seconds" default:"300" minimum:"10" maximum:"3600" doc:"How long a caller waits at most."`
	EarlyMedia   bool      `json:"early_media" default:"false" doc:"Callers hear the queue, and that nobody can take the call, before the call is answered (183 Session Progress), so that most networks charge them nothing for it; they hear the words where refuse, or an inactive assistant, would turn them away. After two minutes a waiting call is answered. A line that can't do it is answered as usual."`
	AfterQueue   RouteStep `json:"after_queue" default:"words" enum:"words,telephone,voicemail" doc:"What happens to a caller who has waited for queue_seconds."`

	BlockedCallers []string `json:"blocked_callers" reads:"phone" maxItems:"1000" maxLength:"32" doc:"Numbers whose calls are rejected (603), in international format; one that ends in * is a prefix."`
	BlockAnonymous bool     `json:"block_anonymous" default:"false" doc:"Reject callers who withhold their number."`
	BlockBlacklist bool     `json:"block_blacklisted" default:"false" doc:"Reject callers who are on your blacklist, which otherwise applies only to campaigns."`

	SuspectCallers string    `json:"suspect_callers" default:"none" enum:"none,failed,unverified" doc:"Which callers are suspect, by the verification of their number (STIR/SHAKEN; signalling.verification of a call). failed: those of whom it failed. unverified: all who were not verified, also those of whom nothing is known."`
	SuspectStep    RouteStep `json:"suspect_step" default:"refuse" enum:"refuse,otherwise" doc:"What happens to suspect callers. refuse: they are turned away, with the SIP status that says why (428, 436, 437, 438, 403, or 603). otherwise: what happens outside the hours."`
}

// UnmarshalJSON implements json.Unmarshaler: a route that was stored before it had a field has that field's default.
func (r *NumberRoute) UnmarshalJSON(raw []byte) error {
	type plain NumberRoute
	p := plain(*NewRoute(""))
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	*r = NumberRoute(p)
	return nil
}

// NewRoute is the route of a number whose assistant answers at all hours.
func NewRoute(timezone string) *NumberRoute {
	return &NumberRoute{Timezone: timezone, Hours: []OpenHours{}, ClosedDates: []string{}, Otherwise: RouteRefuse,
		Telephones: []RingTarget{}, Ring: RingTogether, RingCallerID: "outbound_number", Unanswered: RouteWords,
		VoicemailSeconds: 120, VoicemailSilence: 5, WhenFull: RouteRefuse, QueuePlaces: 10, QueueSeconds: 300,
		AfterQueue: RouteWords, BlockedCallers: []string{}, SuspectCallers: "none", SuspectStep: RouteRefuse}
}

// RingTarget is somebody who may take a caller.
type RingTarget struct {
	PhoneNumber string `json:"phone_number" required:"true" maxLength:"255" reads:"transfer" doc:"In international format; for a trunk's number also an extension or a sip: address of that trunk."`
	Seconds     int64  `json:"seconds" default:"20" minimum:"5" maximum:"120" doc:"How long it rings, in seconds."`
}

// RingOrder is the order in which telephones ring.
type RingOrder string

// The orders.
const (
	RingTogether RingOrder = "together"
	RingInTurn   RingOrder = "in_turn"
)

// RouteStep is something that may happen to a call.
type RouteStep string

// The steps.
const (
	RouteRefuse    RouteStep = "refuse"
	RouteAssistant RouteStep = "assistant"
	RouteTelephone RouteStep = "telephone"
	RouteVoicemail RouteStep = "voicemail"
	RouteQueue     RouteStep = "queue"
	RouteOtherwise RouteStep = "otherwise" // as outside the hours
	RouteWords     RouteStep = "words"     // the caller is told that nobody can take the call
)

// First is what happens to a call first.
func (r *NumberRoute) First(open bool) RouteStep {
	switch {
	case open && r.RingFirst:
		return RouteTelephone
	case open:
		return RouteAssistant
	}
	return cmp.Or(r.Otherwise, RouteRefuse)
}

// Next is what happens to a call after a step has come to nothing: no telephone was answered, an assistant has no line,
// nobody was free in time. Nothing is tried twice: then, and where no rule is left, the caller is told so.
func (r *NumberRoute) Next(open bool, done ...RouteStep) (next RouteStep) {
	switch done[len(done)-1] {
	case RouteTelephone:
		if next = r.Unanswered; open && r.RingFirst && len(done) == 1 {
			next = RouteAssistant
		}
	case RouteAssistant:
		next = r.WhenFull
	case RouteQueue:
		next = r.AfterQueue
	}
	if next == "" || slices.Contains(done, next) {
		return RouteWords
	}
	return next
}

// Longest is how many seconds a call may last by this route whose assistant talks for so many at most.
func (r *NumberRoute) Longest(talk int64) int64 {
	if r.needs(RouteVoicemail) || r.Unanswered == RouteVoicemail {
		talk = max(talk, r.VoicemailSeconds+GreetingSeconds)
	}
	if r.WhenFull == RouteQueue {
		talk += r.QueueSeconds
	}
	if r.AfterQueue == RouteTelephone {
		talk += int64(r.RingTime() / time.Second)
	}
	return talk
}

// GreetingSeconds is how long a voicemail's greeting may take.
const GreetingSeconds = 120

// RingTime is how long the telephones ring, all in all.
func (r *NumberRoute) RingTime() (d time.Duration) {
	for _, t := range r.Telephones {
		own := time.Duration(t.Seconds) * time.Second
		if r.Ring == RingInTurn {
			d += own
		} else {
			d = max(d, own)
		}
	}
	return d
}

// needs reports whether a step can happen by this route.
func (r *NumberRoute) needs(step RouteStep) bool {
	return r.Otherwise == step || r.WhenFull == step || r.AfterQueue == step ||
		step == RouteTelephone && r.RingFirst
}

// OpenHours are hours of some days.
type OpenHours struct {
	Days []string `json:"days" enum:"monday,tuesday,wednesday,thursday,friday,saturday,sunday" maxItems:"7" doc:"Days on which the hours begin; every day when empty."`
	From string   `json:"from" default:"00:00" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9]$" must:"match the format H:i" doc:"H:i."`
	To   string   `json:"to" default:"00:00" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9]$" must:"match the format H:i" doc:"H:i, when they end. Earlier than from: on the next day. Equal to it: the whole day."`
}

// Open reports whether the hours are on at a time, by the clock of the zone, whatever the zone does to its clocks.
// Hours that span midnight belong to the day on which they begin.
func (r *NumberRoute) Open(now time.Time) bool {
	zone, err := time.LoadLocation(r.Timezone)
	if err != nil {
		zone = time.UTC // the route was made on a system that knows more zones
	}
	now = now.In(zone)
	y, m, d := now.Date()
	today := time.Date(y, m, d, 0, 0, 0, 0, time.UTC) // of the days alone, whatever their hours
	yesterday, clock := today.AddDate(0, 0, -1), now.Format("15:04")
	closed := func(day time.Time) bool { return slices.Contains(r.ClosedDates, day.Format(time.DateOnly)) }
	if len(r.Hours) == 0 {
		return !closed(today)
	}
	return slices.ContainsFunc(r.Hours, func(h OpenHours) bool {
		on := func(day time.Time) bool {
			name := strings.ToLower(day.Weekday().String())
			return (len(h.Days) == 0 || slices.Contains(h.Days, name)) && !closed(day)
		}
		switch {
		case h.From == h.To:
			return on(today)
		case h.From < h.To:
			return on(today) && h.From <= clock && clock < h.To
		}
		return on(today) && h.From <= clock || on(yesterday) && clock < h.To
	})
}

// Blocks reports whether a caller is turned away; "" is one who withholds the number. The blacklist is the caller's to
// look at.
func (r *NumberRoute) Blocks(caller string) bool {
	if caller == "" {
		return r.BlockAnonymous
	}
	return slices.ContainsFunc(r.BlockedCallers, func(b string) bool {
		if prefix, ok := strings.CutSuffix(b, "*"); ok {
			return strings.HasPrefix(caller, prefix)
		}
		return caller == b
	})
}

// Suspects reports whether a caller is suspect by what is known of the number shown; nil: nothing is.
func (r *NumberRoute) Suspects(v *CallVerification) bool {
	return r.SuspectCallers == "failed" && v.Failed() || r.SuspectCallers == "unverified" && !v.Verified()
}

// Tidy brings a route into the form in which it is kept, and says what is wrong with it.
func (r *NumberRoute) Tidy() (wrong Fields) {
	for i, day := range r.ClosedDates {
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			wrong.AddText("closed_dates", "There is no such day as "+r.ClosedDates[i]+".")
		}
	}
	for i, b := range r.BlockedCallers {
		prefix, short := strings.CutSuffix(strings.TrimSpace(b), "*")
		if short {
			digits := strings.TrimPrefix(prefix, "+")
			if len(digits) < 1 || len(digits) > 15 || !strings.HasPrefix(prefix, "+") || strings.Trim(digits, "0123456789") != "" {
				wrong.AddText("blocked_callers", b+" is not a prefix such as +4930*.")
			}
			r.BlockedCallers[i] = prefix + "*"
			continue
		}
		n, ok := NormalizePhone(prefix)
		if !ok {
			wrong.AddText("blocked_callers", b+" is not a phone number in international format, such as +4930901820.")
			continue
		}
		r.BlockedCallers[i] = n
	}
	for i := range r.Telephones {
		t := &r.Telephones[i]
		if to, number, ok := TransferTarget(t.PhoneNumber); !ok {
			wrong.AddText("telephones."+strconv.Itoa(i)+".phone_number",
				"Enter a phone number in international format, an extension of 2 to 6 digits, or a sip: address.")
		} else if t.PhoneNumber = to; number != "" {
			t.PhoneNumber = number
		}
	}
	if r.needs(RouteTelephone) && len(r.Telephones) == 0 {
		wrong.AddText("telephones", "Add a telephone to ring.")
	}
	if (r.Otherwise == RouteAssistant || r.Unanswered == RouteAssistant) && r.OtherwiseAssistantID == nil {
		wrong.AddText("otherwise_assistant_id", "Choose the assistant that answers outside the hours.")
	}
	return wrong
}
