package parley

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

// EventKind names what happened to something of a user's, as a webhook tells it.
type EventKind string

// The kinds of events.
const (
	EventCallCompleted EventKind = "call.completed" // to webhook_url
	// to inbound_webhook_url, before the call is answered
	EventCallInbound          EventKind = "call.inbound"
	EventCallInboundCompleted EventKind = "call.inbound.completed" // to inbound_webhook_url
	EventConversationEnded    EventKind = "conversation.ended"     // to conversation_ended_webhook_url
	EventBalanceLow           EventKind = "balance.low"            // to the account's endpoint
	EventPublicBudgetLow      EventKind = "public_budget.low"      // to the account's endpoint
	EventCampaignCompleted    EventKind = "campaign.completed"     // to the account's endpoint
	EventCampaignNotStarted   EventKind = "campaign.not_started"   // to the account's endpoint
	EventAlertRaised          EventKind = "alert.raised"           // to the account's endpoint
	EventAlertResolved        EventKind = "alert.resolved"         // to the account's endpoint
)

// DeliveryStatus says how a delivery stands.
type DeliveryStatus string

// The states of a delivery. A failed one can be sent again by hand.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryFailed    DeliveryStatus = "failed"
)

// Delivery is an event on its way to an endpoint. Its content never changes: every attempt has the same id and the same
// body.
type Delivery struct {
	bun.BaseModel `bun:"webhook_deliveries" json:"-"`

	ID         int64          `bun:",pk,autoincrement" json:"id"`
	UserID     int64          `json:"-"`
	WebhookID  string         `json:"webhook_id"` // the webhook-id header
	Event      EventKind      `json:"event"`
	URL        string         `json:"url"`
	Status     DeliveryStatus `json:"status"`
	Attempts   int            `json:"attempts"`
	LastStatus *int           `json:"last_status"` // HTTP status of the last answer; null when none came
	LastError  *string        `json:"last_error"`
	// while an attempt is under way: when another is made if it is cut off
	NextAttemptAt Time `json:"next_attempt_at"`
	CreatedAt     Time `json:"created_at"`

	Payload        string  `json:"-"` // the body, byte for byte
	Answer         string  `json:"-"` // the beginning of the last answer's body
	Earlier        int     `json:"-"` // attempts before it was last sent again: the schedule counts from there
	Lane           int64   `json:"-"` // of its endpoint: what waits behind one another (see store)
	ConversationID *string `json:"-"` // what the payload tells of: the delivery goes with it
	CallID         *int64  `json:"-"`
	Trace          Trace   `json:"-"` // of what the payload tells of
	CustomerPhone  *string `json:"-"`
}

// DeliveryAttempt is one try to deliver.
type DeliveryAttempt struct {
	bun.BaseModel `bun:"webhook_attempts" json:"-"`

	ID         int64   `bun:",pk,autoincrement" json:"-"`
	DeliveryID int64   `json:"-"`
	At         Time    `json:"at"`
	Status     *int    `json:"status"` // null when no answer came
	Error      *string `json:"error"`
	DurationMS int64   `bun:"duration_ms" json:"duration_ms"`

	Answer string `bun:"-" json:"-"` // the beginning of the answer's body
}

// NewDelivery is a payload's way to a URL. The payload is of plain fields, which can't fail to be written.
func NewDelivery(kind EventKind, url string, payload any) *Delivery {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(payload); err != nil {
		panic(fmt.Sprintf("payload of %s: %v", kind, err))
	}
	return &Delivery{Event: kind, URL: url, Status: DeliveryPending, Payload: strings.TrimSuffix(b.String(), "\n")}
}

// DeliveryRetries is how long after a failed attempt the next one follows, jitter aside. When they are used up the
// delivery has failed.
var DeliveryRetries = []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 10 * time.Minute, time.Hour,
	6 * time.Hour}

// Delivered says whether the endpoint took the event.
func (a *DeliveryAttempt) Delivered() bool {
	return a.Status != nil && *a.Status >= 200 && *a.Status <= 299
}

// Gone says whether the endpoint wants no more events.
func (a *DeliveryAttempt) Gone() bool { return a.Status != nil && *a.Status == http.StatusGone }

// Note counts an attempt and says what becomes of the delivery. jitter, from 0 to 1, is how much of the tenth that is
// added to a delay at most. An attempt that does not hold the delivery any more, because it was sent again or given
// up meanwhile, changes nothing else, but for the good news.
func (d *Delivery) Note(a *DeliveryAttempt, holds bool, jitter float64) {
	d.Attempts++
	d.LastStatus, d.LastError, d.Answer = a.Status, a.Error, a.Answer
	n := d.Attempts - d.Earlier
	switch {
	case !holds && d.Status == DeliveryPending:
	case a.Delivered():
		d.Status, d.NextAttemptAt = DeliveryDelivered, 0
	case !holds:
	case a.Gone() || n > len(DeliveryRetries):
		d.Status, d.NextAttemptAt = DeliveryFailed, 0
	default:
		delay := DeliveryRetries[n-1]
		over := a.At.Add(time.Duration(a.DurationMS) * time.Millisecond)
		d.NextAttemptAt = over.Add(delay + time.Duration(jitter*float64(delay)/10))
	}
}

// WebhookURL is the endpoint of an assistant's events of a kind, nil when it has none.
func (k EventKind) WebhookURL(a *Assistant) *string {
	switch k {
	case EventCallCompleted:
		return a.WebhookURL
	case EventCallInbound, EventCallInboundCompleted:
		return a.InboundWebhookURL
	case EventConversationEnded:
		return a.ConversationEndedURL
	}
	return nil
}

// EventVersion is the version of all payloads: it grows when a key is taken away or means something else.
const EventVersion = 1

// EventAssistant names the assistant that an event concerns.
type EventAssistant struct {
	ID   int64  `json:"id"`
	UUID string `json:"uuid"`
	Name string `json:"name"`
}

func (a *Assistant) named() EventAssistant { return EventAssistant{a.ID, a.UUID, a.Name} }

// ConversationEnded is the payload of conversation.ended.
type ConversationEnded struct {
	Event              EventKind        `json:"event"`
	Version            int              `json:"version"`
	Test               bool             `json:"test,omitempty"` // made up, for POST …/webhook-test
	ConversationID     string           `json:"conversation_id"`
	AssistantID        string           `json:"assistant_id"` // UUID, as conversations name their assistant
	AssistantName      string           `json:"assistant_name"`
	Assistant          EventAssistant   `json:"assistant"`
	Type               ConversationType `json:"type"`
	Status             string           `json:"status"` // ended
	MessageCount       int              `json:"message_count"`
	ExtractedVariables map[string]any   `json:"extracted_variables"`
	// of the values that are null, why
	ExtractedVariablesNotes map[string]string `json:"extracted_variables_notes,omitempty"`
	InputVariables          map[string]string `json:"input_variables"`
	Transcript              []TranscriptLine  `json:"transcript"`
	FormattedTranscript     string            `json:"formatted_transcript"` // a line per message: "AI: …", "Customer: …"
	CustomerPhone           *string           `json:"customer_phone"`
	// what the channel or the variable customer_name calls them
	CustomerName *string `json:"customer_name"`
	// the number that the customer wrote to, where the channel has one
	Sender    *string `json:"sender"`
	CreatedAt Time    `json:"created_at"`
	EndedAt   Time    `json:"ended_at"`
}

// TranscriptLine is a message in the payload of conversation.ended.
type TranscriptLine struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Language  string `json:"language,omitempty"` // as its words look
	Timestamp Time   `json:"timestamp"`
}

// Delivery is the event's way to the assistant's endpoint, nil where there is none.
func (e ConversationEnded) Delivery(a *Assistant) *Delivery {
	if a.ConversationEndedURL == nil {
		return nil
	}
	e.Event, e.Version, e.Assistant, e.Status = EventConversationEnded, EventVersion, a.named(), "ended"
	if name := e.InputVariables["customer_name"]; name != "" {
		e.CustomerName = &name
	}
	e.ExtractedVariables, e.InputVariables = object(e.ExtractedVariables), object(e.InputVariables)
	if e.Transcript == nil {
		e.Transcript = []TranscriptLine{}
	}
	d := NewDelivery(e.Event, *a.ConversationEndedURL, e)
	d.CustomerPhone = e.CustomerPhone
	if !e.Test {
		d.ConversationID = &e.ConversationID
	}
	return d
}

// CallEnded is the payload of call.completed and call.inbound.completed.
type CallEnded struct {
	Event              EventKind      `json:"event"`
	Version            int            `json:"version"`
	AssistantID        int64          `json:"assistant_id"`
	Assistant          EventAssistant `json:"assistant"`
	Test               bool           `json:"test,omitempty"` // made up, for POST …/webhook-test
	ID                 int64          `json:"id"`
	Type               CallType       `json:"type"`
	Status             CallStatus     `json:"status"`
	CustomerPhone      *string        `json:"customer_phone"`
	AssistantPhone     *string        `json:"assistant_phone"`
	Duration           int64          `json:"duration"` // seconds
	ExtractedVariables map[string]any `json:"extracted_variables"`
	// of the values that are null, why
	ExtractedVariablesNotes map[string]string `json:"extracted_variables_notes,omitempty"`
	InputVariables          map[string]string `json:"input_variables"`
	Transcript              string            `json:"transcript"` // a line per turn: "AI: …", "Customer: …"
	FormattedTranscript     string            `json:"formatted_transcript"`
	Turns                   []CallTurn        `json:"turns"`
	Evaluation              map[string]any    `json:"evaluation"`
	AnsweredBy              AnsweredBy        `json:"answered_by"`
	TakenBy                 CallTaker         `json:"taken_by"`
	EndedReason             EndedReason       `json:"ended_reason"`
	EndedDetail             *string           `json:"ended_detail"` // what failed, where something did
	CarrierCost             Money             `json:"carrier_cost"`
	TotalCost               Money             `json:"total_cost"`
	Legs                    []CallLeg         `json:"legs"` // who else was called into it
	RecordingURL            string            `json:"recording_url,omitempty"`
	CreatedAt               Time              `json:"created_at"`
	FinishedAt              Time              `json:"finished_at"`
	Lead                    *EventLead        `json:"lead,omitempty"`
	Campaign                *EventCampaign    `json:"campaign,omitempty"`
}

// EventLead and EventCampaign are what a call was made for.
type EventLead struct {
	ID          int64             `json:"id"`
	PhoneNumber string            `json:"phone_number"`
	Variables   map[string]string `json:"variables"`
}

// EventCampaign names a campaign in an event.
type EventCampaign struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// Deliveries are a finished call's ways to the assistant's endpoints, by its settings: the post-call event where
// webhooks are on, for an inbound call also the inbound one where there is an endpoint for it. Calls that did not
// complete are told only where the assistant wants them, and the recording only where it is to be included.
func (e CallEnded) Deliveries(a *Assistant) (list []*Delivery) {
	if a.SendWebhookOnlyOnCompleted && e.Status != CallCompleted {
		return nil
	}
	if !a.IncludeRecordingInWebhook {
		e.RecordingURL = ""
		for i := range e.Legs {
			e.Legs[i].RecordingURL = ""
		}
	}
	e.Version, e.AssistantID, e.Assistant = EventVersion, a.ID, a.named()
	if a.IsWebhookActive {
		list = e.add(list, EventCallCompleted, a.WebhookURL)
	}
	if e.Type == CallInbound {
		list = e.add(list, EventCallInboundCompleted, a.InboundWebhookURL)
	}
	return list
}

// Sample is a made-up one on its way to the assistant's endpoint for a kind, whatever its other settings.
func (e CallEnded) Sample(a *Assistant, kind EventKind) *Delivery {
	e.Test, e.Version, e.AssistantID, e.Assistant = true, EventVersion, a.ID, a.named()
	return e.add(nil, kind, kind.WebhookURL(a))[0]
}

func (e CallEnded) add(list []*Delivery, kind EventKind, url *string) []*Delivery {
	if url == nil {
		return list
	}
	e.Event = kind
	e.ExtractedVariables, e.InputVariables, e.Evaluation = object(e.ExtractedVariables), object(e.InputVariables),
		object(e.Evaluation)
	if e.FormattedTranscript == "" {
		e.FormattedTranscript = e.Transcript
	}
	if e.Turns == nil {
		e.Turns = []CallTurn{}
	}
	if e.Legs == nil {
		e.Legs = []CallLeg{}
	}
	d := NewDelivery(kind, *url, e)
	d.CustomerPhone = e.CustomerPhone
	if !e.Test {
		d.CallID = &e.ID
	}
	return append(list, d)
}

// CallArriving is the payload of call.inbound.
type CallArriving struct {
	Event          EventKind      `json:"event"`
	Version        int            `json:"version"`
	Test           bool           `json:"test,omitempty"`
	CustomerPhone  string         `json:"customer_phone"`
	AssistantPhone string         `json:"assistant_phone"`
	AssistantID    int64          `json:"assistant_id"`
	Assistant      EventAssistant `json:"assistant"`
	// as the call's signalling has them
	CallerName   string            `json:"caller_name"`
	Verification *CallVerification `json:"verification"`
}

// CallArrives is the event of a call that comes in for an assistant; s is what its signalling said, nil for nothing.
func CallArrives(a *Assistant, customerPhone, assistantPhone string, s *CallSignalling) CallArriving {
	e := CallArriving{Event: EventCallInbound, Version: EventVersion, CustomerPhone: customerPhone,
		AssistantPhone: assistantPhone, AssistantID: a.ID, Assistant: a.named()}
	if s != nil {
		e.CallerName, e.Verification = s.CallerName, s.Verification
	}
	return e
}

// WebhookResponse is an endpoint's answer to the post-call event, as a call shows it.
type WebhookResponse struct {
	Status int    `json:"status"`
	Body   string `json:"body"`
}

// BalanceLow is the payload of balance.low.
type BalanceLow struct {
	Event        EventKind `json:"event"`
	Version      int       `json:"version"`
	TotalBalance Money     `json:"total_balance"`
	Threshold    Money     `json:"threshold"`
	CreatedAt    Time      `json:"created_at"`
}

// Delivery is the event's way to the account's endpoint.
func (e BalanceLow) Delivery(url string) *Delivery {
	e.Event, e.Version = EventBalanceLow, EventVersion
	return NewDelivery(e.Event, url, e)
}

// PublicBudgetLow is the payload of public_budget.low.
type PublicBudgetLow struct {
	Event     EventKind `json:"event"`
	Version   int       `json:"version"`
	Spent     Money     `json:"spent"` // today, with what is set aside for what is under way
	Budget    Money     `json:"budget"`
	CreatedAt Time      `json:"created_at"`
}

// Delivery is the event's way to the account's endpoint.
func (e PublicBudgetLow) Delivery(url string) *Delivery {
	e.Event, e.Version = EventPublicBudgetLow, EventVersion
	return NewDelivery(e.Event, url, e)
}

// CampaignCompleted is the payload of campaign.completed.
type CampaignCompleted struct {
	Event       EventKind      `json:"event"`
	Version     int            `json:"version"`
	CampaignID  int64          `json:"campaign_id"`
	Name        string         `json:"name"`
	Status      string         `json:"status"`
	Stats       map[string]any `json:"stats"` // as GET /user/campaigns/{id}/stats
	CompletedAt Time           `json:"completed_at"`
}

// Delivery is the event's way to the account's endpoint.
func (e CampaignCompleted) Delivery(url string) *Delivery {
	e.Event, e.Version, e.Stats = EventCampaignCompleted, EventVersion, object(e.Stats)
	return NewDelivery(e.Event, url, e)
}

// CampaignNotStarted is the payload of campaign.not_started: a scheduled start was refused.
type CampaignNotStarted struct {
	Event      EventKind `json:"event"`
	Version    int       `json:"version"`
	CampaignID int64     `json:"campaign_id"`
	Name       string    `json:"name"`
	Reason     string    `json:"reason"`
	StartsAt   Time      `json:"starts_at"` // when it was to start
	CreatedAt  Time      `json:"created_at"`
}

// Delivery is the event's way to the account's endpoint.
func (e CampaignNotStarted) Delivery(url string) *Delivery {
	e.Event, e.Version = EventCampaignNotStarted, EventVersion
	return NewDelivery(e.Event, url, e)
}

// object is a map that is {} and not null when it is empty.
func object[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}
