package parley

import (
	"strconv"
	"strings"

	"github.com/uptrace/bun"
)

// ConversationType is the channel of a text conversation.
type ConversationType string

// The types of conversation.
const (
	TestConversation     ConversationType = "test"
	WidgetConversation   ConversationType = "widget"
	WhatsAppConversation ConversationType = "whatsapp"
	APIConversation      ConversationType = "api"
)

// Conversation is a text conversation between an assistant and a customer.
type Conversation struct {
	bun.BaseModel `bun:"conversations" json:"-"`

	Seq           int64  `bun:",pk,autoincrement" json:"-"` // the order of lists
	ID            string `json:"id"`                        // UUID
	UserID        int64  `json:"-"`
	AssistantID   int64  `json:"-"`
	AssistantUUID string `bun:"assistant_uuid,scanonly" json:"assistant_id"`
	AssistantName string `bun:",scanonly" json:"assistant_name"`

	Type      ConversationType  `json:"type"`
	Draft     bool              `json:"-"` // it is held with the assistant's draft while there is one
	Variables map[string]string `bun:"type:json" json:"-"`
	// those of Variables that the visitor or customer wrote, with spaces between; see GivenBy
	VisitorNames       string            `json:"-"`
	ExternalIdentifier *string           `json:"-"` // what the channel calls the customer
	CustomerPhone      *string           `json:"-"`
	MessageCount       int               `json:"message_count"` // of both sides
	TotalCost          Money             `json:"total_cost"`
	AIEnabled          bool              `bun:"ai_enabled" json:"ai_enabled"`
	Extracted          map[string]any    `bun:"type:json,nullzero" json:"-"` // by post_call_schema, once ended
	ExtractedNotes     map[string]string `bun:"type:json,nullzero" json:"-"` // of those that are null, why
	// what its replies used of vendors, and which vendor stood in for which
	VendorUses     []VendorUse    `bun:"type:json,nullzero" json:"-"`
	VendorSwitches []VendorSwitch `bun:"type:json,nullzero" json:"-"`
	EndsAt         Time           `json:"-"` // when silence ends it; 0 once ended
	EndedAt        Time           `json:"-"`
	WaitsSince     Time           `json:"-"`                 // since when it needs a person; 0: it does not
	Assignee       *int64         `json:"-"`                 // who has taken it: Owner, a member, or nil: nobody
	AssigneeName   string         `bun:",scanonly" json:"-"` // "" also where the member is gone
	Trace          Trace          `json:"trace_id,omitempty" doc:"The trace in which OpenTelemetry recorded it; absent where nothing is traced."`
	CreatedAt      DateTime       `json:"created_at"`
	UpdatedAt      DateTime       `json:"updated_at"`
}

// Customer is what the other side calls itself: the name that it gave before the chat or that the account's owner gave,
// else what the channel calls it; "" where nothing is known.
func (c *Conversation) Customer() string {
	if name := c.givenName(); name != "" {
		return name
	}
	for _, text := range []*string{c.ExternalIdentifier, c.CustomerPhone} {
		if text != nil && *text != "" {
			return *text
		}
	}
	return ""
}

// The variables that name a customer, in any case and with or without underscores; the first that is there counts.
var nameVariables = []string{"name", "fullname", "customername", "visitorname", "contactname", "yourname", "firstname",
	"email", "customeremail", "emailaddress"}

func (c *Conversation) givenName() string {
	given := map[string]string{}
	for name, value := range c.Variables {
		if text := VisitorText(value, false); text != "" && len(text) <= MaxAnswer {
			given[strings.ToLower(strings.ReplaceAll(name, "_", ""))] = text
		}
	}
	for _, name := range nameVariables {
		if text := given[name]; text != "" {
			if name == "firstname" && given["lastname"] != "" {
				text += " " + given["lastname"]
			}
			return text
		}
	}
	return ""
}

// Owner is the account's owner among those who may take a conversation.
const Owner int64 = 0

// Person is somebody who works in an account: Owner or a member's id, and their name.
type Person struct {
	ID   int64
	Name string
}

// TakenBy says whether somebody has taken the conversation.
func (c *Conversation) TakenBy(who int64) bool { return c.Assignee != nil && *c.Assignee == who }

// sharedPrefix begins the identifier of a conversation that a share link began; the link's id follows, and something
// that sets the conversation apart.
const sharedPrefix = "share:"

// Share marks the conversation as one that a share link began.
func (c *Conversation) Share(link int64, apart string) {
	id := sharedPrefix + strconv.FormatInt(link, 10) + ":" + apart
	c.ExternalIdentifier = &id
}

// SharedBy is the share link that began the conversation, 0 where none did.
func (c *Conversation) SharedBy() int64 {
	if !c.Draft || c.ExternalIdentifier == nil {
		return 0
	}
	rest, _ := strings.CutPrefix(*c.ExternalIdentifier, sharedPrefix)
	text, _, _ := strings.Cut(rest, ":")
	id, _ := strconv.ParseInt(text, 10, 64)
	return id
}

// The channels of messages that came neither by the API nor by the widget.
const (
	ChannelSMS      = "sms"
	ChannelWhatsApp = "whatsapp"
)

// The roles of messages, as models name them, and their authors.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"

	AuthorCustomer = "customer"
	AuthorAI       = "ai"
	AuthorHuman    = "human" // somebody of the user's, in the assistant's place
)

// MaxMessages is how many messages a conversation has before it takes no more of its customer and of people.
const MaxMessages = 10_000

// Message is one message of a conversation.
type Message struct {
	bun.BaseModel `bun:"messages" json:"-"`

	ID             int64          `bun:",pk,autoincrement" json:"id"`
	ConversationID string         `json:"-"`
	Turn           int64          `json:"-"` // of a reply: the message that it answers
	Role           string         `json:"role"`
	Author         string         `json:"author"`
	AuthorName     string         `json:"author_name,omitempty" doc:"Which person of the account wrote it, by the name they had then."`
	Content        string         `json:"content"`
	Language       string         `json:"language,omitempty" doc:"In which it is written (ISO 639-1), as its words look; absent where that is not clear."`
	FunctionCalls  []FunctionCall `bun:"type:json,nullzero" json:"function_calls,omitempty"`
	// what knowledge the reply was given
	Sources []MessageSource `bun:"type:json,nullzero" json:"sources,omitempty"`
	// of a customer's message: where it came from, where not by the API or the widget ("sms")
	Channel string `json:"-"`
	// the channel's own id of it: what is told twice stands once
	ExternalID string `bun:",nullzero" json:"-"`
	// a customer's message that waits for its reply
	Pending bool `json:"-"`
	// a customer's message that got none, or an apology
	Failed       bool     `json:"-"`
	Edited       bool     `json:"edited,omitempty" doc:"The customer has changed the text; this is the new one."`
	Deleted      bool     `json:"deleted,omitempty" doc:"The customer has deleted it: the text is gone."`
	Failure      *string  `bun:"error" json:"error,omitempty" doc:"Why a customer's message got only an apology or no reply: for the owner, with how to fix it."`
	Attempts     int      `json:"-"` // how often an answer was begun
	Cost         Money    `json:"-"`
	InputTokens  int      `json:"-"`
	OutputTokens int      `json:"-"`
	CreatedAt    DateTime `json:"created_at"`
}
