package parley

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

// CallType says how a call came to be.
type CallType string

// The types of calls.
const (
	CallInbound  CallType = "inbound"
	CallOutbound CallType = "outbound"
	CallWeb      CallType = "web" // from a browser
)

// CallStatus is where a call is in its life. The last five are ends.
type CallStatus string

// The states of a call.
const (
	CallInitiated  CallStatus = "initiated"
	CallRinging    CallStatus = "ringing"
	CallInProgress CallStatus = "in-progress"
	CallCompleted  CallStatus = "completed"
	CallBusy       CallStatus = "busy"
	CallNoAnswer   CallStatus = "no-answer"
	CallFailed     CallStatus = "failed"
	CallCanceled   CallStatus = "canceled"
)

// Live says whether the call is not over.
func (s CallStatus) Live() bool {
	return s == CallInitiated || s == CallRinging || s == CallInProgress
}

// EndedReason says why a call is over. It is an error, so that it can be the cause that a context ends with, and what
// a leg's Run and a dialler return.
type EndedReason string

// The reasons.
const (
	CustomerHangup      EndedReason = "customer_hangup"
	AssistantHangup     EndedReason = "assistant_hangup"
	APIHangup           EndedReason = "api_hangup"
	Transferred         EndedReason = "transferred"
	MaxDuration         EndedReason = "max_duration"
	MaxSilence          EndedReason = "max_silence"
	Voicemail           EndedReason = "voicemail"
	LineBusy            EndedReason = "busy"
	NoAnswer            EndedReason = "no_answer"
	Rejected            EndedReason = "rejected"
	Unreachable         EndedReason = "unreachable"
	Canceled            EndedReason = "canceled"
	InsufficientBalance EndedReason = "insufficient_balance"
	ProviderFailure     EndedReason = "provider_failure"
	MediaTimeout        EndedReason = "media_timeout"
	NodeLost            EndedReason = "node_lost"
	Shutdown            EndedReason = "shutdown"
)

// ErrAnsweredElsewhere ends a call that rang at several places when another one was answered.
var ErrAnsweredElsewhere = fmt.Errorf("%w: somebody else answered", Canceled)

func (r EndedReason) Error() string {
	return "the call ended: " + strings.ReplaceAll(string(r), "_", " ")
}

// ReasonOfSIP is why a call that a SIP status (300 to 699) refused was not answered.
func ReasonOfSIP(code int) EndedReason {
	switch code {
	case 486, 600:
		return LineBusy
	case 480, 408:
		return NoAnswer
	case 603, 607, 608: // declined, unwanted, blocked on the way
		return Rejected
	case 487:
		return Canceled
	}
	return Unreachable
}

// EndStatus is the state that a call ends in: answered ones are completed, however they ended, the others by their
// reason. A conversation that was torn by a failure of ours has not been completed.
func (r EndedReason) EndStatus(answered bool) CallStatus {
	switch {
	case answered && (r == ProviderFailure || r == NodeLost):
		return CallFailed
	case answered:
		return CallCompleted
	case r == LineBusy:
		return CallBusy
	case r == NoAnswer:
		return CallNoAnswer
	case r == Canceled || r == APIHangup || r == CustomerHangup:
		return CallCanceled
	}
	return CallFailed
}

// Disposition is how a call ended, by the cause that ended it: its state and the reason. A cause is an EndedReason,
// wraps one, or names one by a method Ended() EndedReason. Any other cause is a failure: of the route before an answer,
// and ours afterwards. If either side hangs up before an answer, the call is canceled.
func Disposition(cause error, answered bool) (CallStatus, EndedReason) {
	var reason EndedReason
	var ended interface{ Ended() EndedReason }
	switch {
	case errors.As(cause, &reason):
	case errors.As(cause, &ended):
		reason = ended.Ended()
	case answered:
		reason = ProviderFailure
	default:
		reason = Unreachable
	}
	if !answered && (reason == APIHangup || reason == CustomerHangup) {
		reason = Canceled
	}
	return reason.EndStatus(answered), reason
}

// Call is a conversation by voice between an assistant and a customer, from its beginning to long after its end.
type Call struct {
	bun.BaseModel `bun:"calls" json:"-"`

	ID            int64   `bun:",pk,autoincrement" json:"id"`
	UserID        int64   `json:"-"`
	AssistantID   int64   `json:"assistant_id"`
	AssistantName string  `bun:",scanonly" json:"assistant_name"`
	CampaignID    *int64  `json:"campaign_id,omitempty"`
	CampaignName  *string `bun:",scanonly" json:"campaign_name,omitempty"`
	LeadID        *int64  `json:"lead_id,omitempty"`
	Attempt       int     `json:"-"` // at the lead, from 1

	Type           CallType   `json:"type"`
	Status         CallStatus `json:"status"`
	AssistantPhone *string    `json:"assistant_phone_number"` // E.164; null for calls that no number has a part in
	CustomerPhone  *string    `json:"client_phone_number"`    // null where the caller has no phone number
	NumberID       *int64     `json:"-"`                      // the own number that it leaves from or came to

	// given at the start, or by the inbound webhook
	InputVariables map[string]string `bun:"type:json" json:"input_variables"`
	// those of InputVariables that the visitor wrote; a live call's alone
	VisitorNames []string       `bun:"-" json:"-"`
	Variables    map[string]any `bun:"type:json" json:"variables"` // found out from it, by post_call_schema
	// of the values that are null
	VariablesNotes map[string]string `bun:"type:json" json:"variables_notes,omitempty" doc:"Of each value that is null in variables, why; absent where none is."`
	Turns          []CallTurn        `bun:"type:json" json:"turns"`
	FunctionCalls  []CallTool        `bun:"type:json" json:"function_calls"`
	// what was used of each vendor, known at the end
	VendorUses []VendorUse `bun:"type:json" json:"vendor_uses,omitempty" doc:"What the call used of each provider; informational."`
	// who stood in for whom, in order
	VendorSwitches []VendorSwitch `bun:"type:json" json:"vendor_switches,omitempty" doc:"When a provider failed during the call and another took over."`
	Media          *CallMedia     `bun:"type:json" json:"media,omitempty" doc:"Sound quality of a telephone call; so far, while it is live."`
	// known at the start; nil where there is nothing to say
	Signalling *CallSignalling `bun:"type:json" json:"signalling,omitempty" doc:"What SIP reported about a telephone call, besides its numbers."`
	AnsweredBy AnsweredBy      `json:"answered_by"`
	// in order; nil where nothing was judged
	Verdicts    []CallVerdict  `bun:"type:json" json:"answer_verdicts,omitempty" doc:"Who or what answered an outgoing call: each judgement with its reason, in order."`
	TakenBy     CallTaker      `json:"taken_by" enum:"assistant,telephone,voicemail,queue,nobody" doc:"Who has the call, or had it at its end: the assistant; a telephone of the number's route; its voicemail; its queue. nobody: the caller was told that nobody could take it."`
	Evaluation  map[string]any `bun:"type:json" json:"evaluation"` // sentiment, outcome, score; {} when off
	EndedReason EndedReason    `json:"ended_reason"`               // "" while it is live
	EndedDetail *string        `json:"ended_detail" doc:"If something failed: which part, why, and how to fix it, in a sentence; null otherwise."`
	Duration    int64          `json:"duration"` // seconds since the answer, begun ones counted

	MaxDuration   int64 `json:"-"` // seconds: it never goes on for longer, and is never charged for more
	CarrierRate   Money `json:"-"` // a started minute
	AssistantRate Money `json:"-"` // a minute, charged by the second
	CarrierCost   Money `json:"carrier_cost"`
	AssistantCost Money `json:"-"`
	LegCost       Money `json:"-"` // of those who were called into it
	Reserved      Money `json:"-"` // set aside for it while it is live

	Recording     string `json:"-"` // its name in blob storage, "" for none
	RecordingSize int64  `json:"-"` // bytes
	RecordingDue  bool   `json:"-"` // it is being recorded, or the recording is on its way into blob storage

	// what lists are filtered by, once it is over; see Judge
	Answerer  string `json:"-"`                  // human, machine, unknown; nobody, telephone, voicemail, queue
	SlowestMS int64  `bun:"slowest_ms" json:"-"` // its slowest reply
	Sentiment string `json:"-"`
	Outcome   string `json:"-"`
	Counted   int    `json:"-"` // whether analytics have it: 1 its end, 2 its report too

	Trace       Trace  `json:"trace_id,omitempty" doc:"The trace in which OpenTelemetry recorded it; absent where nothing is traced."`
	Test        bool   `json:"test" doc:"A test call: nothing is charged, and it does not count as one of the plan's concurrent calls."`
	Node        string `json:"-"` // the process that has it
	SeenAt      Time   `json:"-"` // when that process last said that it has it, by the database's clock
	HangupAt    Time   `json:"-"` // somebody asked for its end, on whatever node
	ReportDue   Time   `json:"-"` // when it is to be read and told; 0 before its end, and once that is done
	ReportTries int    `json:"-"`

	CreatedAt  DateTime `json:"created_at"`
	RingingAt  DateTime `json:"ringing_at"`
	AnsweredAt DateTime `json:"answered_at"`
	TakenAt    DateTime `json:"-"` // when TakenBy took over a call that had been answered; 0: with the answer
	EndedAt    DateTime `json:"ended_at"`
	UpdatedAt  DateTime `json:"updated_at"`
}

// CallTool is the record of a tool that the assistant used in a call.
type CallTool struct {
	FunctionCall
	AtMS int64 `json:"at_ms" doc:"Milliseconds since the answer."`
}

// Answered says whether somebody took the call.
func (c *Call) Answered() bool { return c.AnsweredAt != 0 }

// Talked is how many seconds of conversation there were until a time, begun ones counted.
func (c *Call) Talked(until Time) int64 {
	if c.AnsweredAt == 0 || until <= Time(c.AnsweredAt) {
		return 0
	}
	return int64((until.Sub(Time(c.AnsweredAt)) + time.Second - 1) / time.Second)
}

// TotalCost is what the call cost, all fees included.
func (c *Call) TotalCost() Money { return c.CarrierCost + c.AssistantCost + c.LegCost }

// Possible is what the call can cost at most.
func (c *Call) Possible() Money {
	rest := *c
	rest.TakenBy, rest.TakenAt = TakenByAssistant, 0 // who may take it yet
	carrier, assistant := rest.costs(c.MaxDuration)
	return carrier + assistant
}

// costs are the costs of so many seconds. Time beyond the longest that the call may have lasted is not charged.
func (c *Call) costs(seconds int64) (carrier, assistant Money) {
	return c.CarrierRate * Money((min(seconds, c.MaxDuration)+59)/60), c.AssistantRate.MulRatio(c.served(seconds), 60)
}

// served is how many of so many seconds an assistant, or the voicemail in its voice, had the caller: the others are
// the line's alone.
func (c *Call) served(seconds int64) int64 {
	if c.TakenBy == TakenByTelephone || c.TakenBy == TakenByQueue || c.TakenBy == TakenByNobody {
		return 0
	}
	return max(min(seconds, c.MaxDuration)-int64(c.Waited()/time.Second), 0)
}

// Waited is how long after the answer whoever has the call took over. What is recorded, and the times of the
// transcript, begin there.
func (c *Call) Waited() time.Duration {
	if c.AnsweredAt == 0 || c.TakenAt <= c.AnsweredAt {
		return 0
	}
	return Time(c.TakenAt).Sub(Time(c.AnsweredAt))
}

// End ends the call at a time, for a cause, and counts what it cost until then. A conversation that a vendor's
// failure broke off costs its line alone.
func (c *Call) End(cause error, at Time) {
	c.Status, c.EndedReason = Disposition(cause, c.Answered())
	c.EndedAt, c.Duration = DateTime(at), c.Talked(at)
	c.CarrierCost, c.AssistantCost = c.costs(c.Duration)
	if c.EndedReason == ProviderFailure {
		c.AssistantCost = 0
	}
	c.EndedDetail = nil
	if text := CleanText(c.detail(cause)); text != "" {
		c.EndedDetail = &text
	}
}

// CallCosts says how a call's costs came about.
type CallCosts struct {
	CarrierCost      Money `json:"carrier_cost"`
	CarrierMinutes   int64 `json:"carrier_minutes" doc:"Each minute that was started counts."`
	CarrierRate      Money `json:"carrier_rate" doc:"USD per started minute."`
	AssistantCost    Money `json:"assistant_cost"`
	AssistantSeconds int64 `json:"assistant_seconds"`
	AssistantRate    Money `json:"assistant_rate" doc:"USD per minute, charged by the second."`
	LegCost          Money `json:"leg_cost,omitempty" doc:"Of the people who were added to the call, for a transfer."`
}

// Costs breaks the costs down.
func (c *Call) Costs() CallCosts {
	seconds := min(c.Duration, c.MaxDuration)
	return CallCosts{c.CarrierCost, (seconds + 59) / 60, c.CarrierRate, c.AssistantCost, c.served(seconds), c.AssistantRate,
		c.LegCost}
}

// Complete puts empty lists and objects where there are none: neither answers nor columns hold null in their place.
func (c *Call) Complete() {
	if c.InputVariables == nil {
		c.InputVariables = map[string]string{}
	}
	if c.Variables == nil {
		c.Variables = map[string]any{}
	}
	if c.Evaluation == nil {
		c.Evaluation = map[string]any{}
	}
	if c.Turns == nil {
		c.Turns = []CallTurn{}
	}
	if c.FunctionCalls == nil {
		c.FunctionCalls = []CallTool{}
	}
	if c.AnsweredBy == "" {
		c.AnsweredBy = AnsweredUnknown
	}
	if c.TakenBy == "" {
		c.TakenBy = TakenByAssistant
	}
}

// CustomerSpoke says whether the customer said anything that was understood.
func (c *Call) CustomerSpoke() bool {
	for _, t := range c.Turns {
		if t.Speaker == SpeakerCustomer && strings.TrimSpace(t.Text) != "" {
			return true
		}
	}
	return false
}

// AnsweredBy says who took a call.
type AnsweredBy string

// Who answers.
const (
	AnsweredUnknown AnsweredBy = "unknown" // no verdict (yet)
	AnsweredHuman   AnsweredBy = "human"
	AnsweredMachine AnsweredBy = "machine"
)

// AnswererKind says who or what took an outgoing call, more closely than AnsweredBy.
type AnswererKind string

// Who or what answers.
const (
	AnswererPerson    AnswererKind = "person"
	AnswererVoicemail AnswererKind = "voicemail" // or an announcement
	AnswererScreener  AnswererKind = "screener"  // asks who is calling, and why
	AnswererMenu      AnswererKind = "menu"      // offers keys
	AnswererHold      AnswererKind = "hold"      // asks to wait, with music or without
	AnswererFax       AnswererKind = "fax"
	AnswererMachine   AnswererKind = "machine" // of a kind that is still open
)

// CallVerdict is a judgement on who took an outgoing call.
type CallVerdict struct {
	Kind   AnswererKind `json:"kind" enum:"person,voicemail,screener,menu,hold,fax,machine"`
	Reason string       `json:"reason" doc:"What showed it, or what was done about it."`
	AtMS   int64        `json:"at_ms" doc:"Milliseconds since the answer."`
}

// Who speaks in a call.
const (
	SpeakerCustomer   = "customer"
	SpeakerAssistant  = "assistant"
	SpeakerSupervisor = "supervisor"
	SpeakerGuest      = "guest" // somebody else who was called into the call
)

// CallTurn is what one side said in one go, as it was heard.
type CallTurn struct {
	Speaker     string   `json:"speaker" doc:"customer, assistant; or supervisor or guest, who were added to the call."`
	Text        string   `json:"text"`
	Whispered   bool     `json:"whispered,omitempty" doc:"By a supervisor, heard only by the assistant."`
	StartedAtMS int64    `json:"started_at_ms" doc:"Milliseconds since the answer."`
	Language    string   `json:"language,omitempty" doc:"In which it was said (ISO 639-1): as the recognizer told, or was asked to hear; absent where nobody knows."`
	Interrupted bool     `json:"interrupted" doc:"The other side interrupted; the text ends where the sound did."`
	Latency     *Latency `json:"latency,omitempty" doc:"For replies."`
}

// Latency says when each part of a reply was there, in milliseconds since the customer's last voiced packet. A part
// that a reply did without is 0.
type Latency struct {
	EndpointMS      int64 `json:"endpoint_ms" doc:"When the customer's turn was considered over."`
	TranscriptMS    int64 `json:"transcript_ms" doc:"When its transcript was there."`
	FirstTokenMS    int64 `json:"first_token_ms"`
	FirstSentenceMS int64 `json:"first_sentence_ms"`
	FirstAudioMS    int64 `json:"first_audio_ms"`
	FirstPacketMS   int64 `json:"first_packet_ms" doc:"When the first sound of the reply was sent."`
	// Ahead says what became of a reply that was begun before the turn was known to be over.
	Ahead Ahead `json:"ahead,omitempty" enum:"hit,miss" doc:"Whether the reply was begun before the customer's turn was known to be over (hit), or had to be discarded because the customer went on (miss); absent if there was none."`
}

// Ahead is what became of thinking ahead.
type Ahead string

// The outcomes.
const (
	AheadHit  Ahead = "hit"
	AheadMiss Ahead = "miss"
)

// speakers are how a transcript names who speaks.
var speakers = map[string]string{SpeakerAssistant: "AI", SpeakerSupervisor: "Supervisor", SpeakerGuest: "Guest"}

// CallTranscript is the turns as lines: "AI: ..." and "Customer: ...", and likewise of those who were called in. What
// was whispered is left out: it was not said in the conversation.
func CallTranscript(turns []CallTurn) string {
	var b strings.Builder
	for _, t := range turns {
		if t.Whispered {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(cmp.Or(speakers[t.Speaker], "Customer") + ": ")
		b.WriteString(strings.Join(strings.Fields(t.Text), " "))
	}
	return b.String()
}

// TurnLanguages are the languages of the lines of CallTranscript, in their order ("en, en, es"); "-" stands for one that
// nobody knows, and "" for all of them.
func TurnLanguages(turns []CallTurn) string {
	var list []string
	known := false
	for _, t := range turns {
		if !t.Whispered {
			list = append(list, cmp.Or(t.Language, "-"))
			known = known || t.Language != ""
		}
	}
	if !known {
		return ""
	}
	return strings.Join(list, ", ")
}
