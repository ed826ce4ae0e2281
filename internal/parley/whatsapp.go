package parley

import (
	"strconv"
	"time"

	"github.com/uptrace/bun"
)

// WhatsAppSender is a number of the server's WhatsApp Business account. The platform keeps it, we follow; the
// operator gives it to a user, and the user to an assistant.
type WhatsAppSender struct {
	bun.BaseModel `bun:"whatsapp_senders" json:"-"`

	ID             int64  `bun:",pk,autoincrement" json:"id"`
	GraphID        string `json:"-"` // the platform's id of the number
	UserID         *int64 `json:"-"` // nil: nobody's yet
	AssistantID    *int64 `json:"assistant_id"`
	PhoneNumber    string `json:"phone_number"` // E.164
	DisplayName    string `json:"display_name"`
	Status         string `json:"status"`          // online, offline
	QualityRating  string `json:"quality_rating"`  // GREEN, YELLOW, RED
	MessagingLimit *int64 `json:"messaging_limit"` // unique recipients in 24 hours; nil: no limit
	CreatedAt      Time   `json:"-"`
	UpdatedAt      Time   `json:"-"`
}

// The statuses of senders.
const (
	SenderOnline  = "online"
	SenderOffline = "offline"
)

// WhatsAppTemplate is a message that the platform has approved, or not yet, with gaps that a sender fills.
type WhatsAppTemplate struct {
	bun.BaseModel `bun:"whatsapp_templates" json:"-"`

	ID        int64          `bun:",pk,autoincrement" json:"id"`
	GraphID   string         `json:"-"`
	Name      string         `json:"name"`
	Language  string         `json:"language"`
	Category  string         `json:"category"` // MARKETING, UTILITY, AUTHENTICATION
	Status    string         `json:"status"`   // APPROVED, PENDING, REJECTED, PAUSED, …
	BodyText  string         `json:"body_text"`
	Slots     []TemplateSlot `bun:"type:json" json:"-"`
	CreatedAt Time           `json:"-"`
	UpdatedAt Time           `json:"-"`
}

// TemplateApproved is the status of a template that may be sent.
const TemplateApproved = "APPROVED"

// TemplateSlot is a gap in a template: which of our variables fills it, and where the platform wants the value.
type TemplateSlot struct {
	Variable  string `json:"variable"`
	Component string `json:"component"` // header, body, button
	// text, image, video, document (values are links), url, copy_code (buttons)
	Kind  string `json:"kind"`
	Index int    `json:"index,omitempty"` // of a button, from 0
	Name  string `json:"name,omitempty"`  // of a named parameter; positional ones go by their order
}

// Variables are the names that a sender has to give values for, in the order of the text. Two gaps may share one.
func (t *WhatsAppTemplate) Variables() []string {
	names, seen := []string{}, map[string]bool{}
	for _, s := range t.Slots {
		if !seen[s.Variable] {
			names = append(names, s.Variable)
		}
		seen[s.Variable] = true
	}
	return names
}

// WhatsAppMessage is a message on WhatsApp's side: what became of it there, and which message of a conversation it is.
type WhatsAppMessage struct {
	bun.BaseModel `bun:"whatsapp_messages" json:"-"`

	ID             int64 `bun:",pk,autoincrement"`
	UserID         int64
	SenderID       int64
	ConversationID string
	MessageID      int64  // of the conversation; 0 while a message that was to be sent is not there yet
	WAMID          string `bun:"wamid"` // the platform's id, "" until it took the message
	Inbound        bool
	Phone          string // the customer's; where the platform keeps it back, what Customer says
	Customer       string // of what came in: what the platform calls the customer, "" where it doesn't say
	Body           string // of what is sent: the text, a template's as the customer reads it
	Status         string
	Error          string // why it failed, for people
	Cost           Money  // what it costs once it is sent
	SaidAt         Time   // of what came in: when the customer sent it
	CreatedAt      Time
	UpdatedAt      Time
}

// Reference is what the ledger calls the message.
func (m *WhatsAppMessage) Reference() string { return "whatsapp:" + strconv.FormatInt(m.ID, 10) }

// The statuses of WhatsApp messages.
const (
	WhatsAppReceived  = "received" // inbound
	WhatsAppQueued    = "queued"   // a job will send it
	WhatsAppSending   = "sending"  // the platform has been asked; what it made of it is not known yet
	WhatsAppSent      = "sent"
	WhatsAppFailed    = "failed"
	WhatsAppDelivered = "delivered"
	WhatsAppRead      = "read"
)

var whatsAppRank = map[string]int{WhatsAppQueued: 0, WhatsAppSending: 1, WhatsAppSent: 2, WhatsAppFailed: 3,
	WhatsAppDelivered: 4, WhatsAppRead: 5}

// Advances says whether a message goes from one status to another. The platform tells them in any order, so they only
// go forward; what was delivered did not fail.
func Advances(from, to string) bool { return whatsAppRank[to] > whatsAppRank[from] }

// WhatsAppWindow is how long after a customer's message free text may be sent to them.
const WhatsAppWindow = 24 * time.Hour

// WhatsAppSession is what may be sent to a customer now.
type WhatsAppSession struct {
	IsOpen           bool `json:"is_open"`
	CanSendFreeform  bool `json:"can_send_freeform"`
	RequiresTemplate bool `json:"requires_template"`
	MinutesRemaining int  `json:"minutes_remaining" doc:"Full minutes left, 0 when the window is closed."`
	ExpiresAt        Time `json:"expires_at" doc:"null when the window is closed."`
}

// SessionAt is the session at an instant, by the customer's last message (0: none).
func SessionAt(last, now Time) WhatsAppSession {
	end := last.Add(WhatsAppWindow)
	if last == 0 || now >= end {
		return WhatsAppSession{RequiresTemplate: true}
	}
	return WhatsAppSession{IsOpen: true, CanSendFreeform: true, MinutesRemaining: int(end.Sub(now) / time.Minute),
		ExpiresAt: end}
}
