package parley

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/uptrace/bun"
)

// AuditEntry says who changed what, and when.
type AuditEntry struct {
	bun.BaseModel `bun:"audit" json:"-"`

	ID        int64         `bun:",pk,autoincrement" json:"id"`
	UserID    int64         `json:"-"`
	CreatedAt Time          `json:"created_at"`
	Who       string        `json:"who" doc:"owner, member:ID, key:ID (an API key), invitation:ID (somebody who accepts one), or operator (a command on the server)."`
	WhoName   string        `json:"who_name" doc:"Their name then."`
	Address   string        `json:"address" doc:"The client's address; empty for the operator's commands."`
	Action    AuditAction   `json:"action" enum:"created,changed,deleted"`
	Kind      AuditKind     `json:"kind" doc:"The kind of the thing."`
	ThingID   string        `json:"thing_id" doc:"The id of the thing; empty where it has none."`
	Name      string        `json:"name" doc:"The name of the thing then; empty where it has none. Customers are not named."`
	Changes   []AuditChange `bun:"type:json" json:"changes" doc:"The fields that changed. Empty when the thing was saved as it was."`
}

// AuditChange is a field that changed. Secrets, long texts and lists are named, and not kept.
type AuditChange struct {
	Field string          `json:"field"`
	From  json.RawMessage `json:"from,omitempty" doc:"Absent where the value is not kept."`
	To    json.RawMessage `json:"to,omitempty" doc:"Absent where the value is not kept."`
}

// AuditAction is what was done to a thing.
type AuditAction string

// What is done to things.
const (
	AuditCreated AuditAction = "created"
	AuditChanged AuditAction = "changed"
	AuditDeleted AuditAction = "deleted"
)

// AuditKind is a kind of things that people change.
type AuditKind string

// The kinds of things that people change.
const (
	AuditAccount       AuditKind = "account"
	AuditAlert         AuditKind = "alert"
	AuditKey           AuditKind = "api_key"
	AuditAssistant     AuditKind = "assistant"
	AuditDraft         AuditKind = "assistant_draft" // by its assistant's id
	AuditBlacklist     AuditKind = "blacklist"
	AuditCall          AuditKind = "call"
	AuditCallerID      AuditKind = "caller_id"
	AuditCampaign      AuditKind = "campaign"
	AuditCanned        AuditKind = "canned_answer"
	AuditConversation  AuditKind = "conversation"
	AuditCredit        AuditKind = "credit"
	AuditCustomer      AuditKind = "customer"
	AuditDocument      AuditKind = "document"
	AuditEndpoint      AuditKind = "endpoint"
	AuditFilter        AuditKind = "filter"
	AuditFolder        AuditKind = "folder" // as Folder
	AuditInvitation    AuditKind = "invitation"
	AuditKnowledge     AuditKind = "knowledgebase"
	AuditLabel         AuditKind = "label" // as Label
	AuditLead          AuditKind = "lead"
	AuditMember        AuditKind = "member"
	AuditNumber        AuditKind = "number"
	AuditOrder         AuditKind = "number_order"
	AuditProvider      AuditKind = "provider"   // a key of a vendor, by its code
	AuditShareLink     AuditKind = "share_link" // by its assistant's id
	AuditTest          AuditKind = "test"
	AuditTool          AuditKind = "tool"
	AuditTrunk         AuditKind = "trunk"
	AuditTwoFactor     AuditKind = "two_factor"
	AuditVoicemail     AuditKind = "voicemail_recording" // by its assistant's id
	AuditWebhook       AuditKind = "webhook_endpoint"
	AuditWebhookSecret AuditKind = "webhook_secret"
	AuditSender        AuditKind = "whatsapp_sender"
)

// AuditView is a thing as the audit log compares it: the fields of its JSON, and its secrets, sealed or hashed.
type AuditView map[string]json.RawMessage

// AuditViewOf is a thing's view, nil for none.
func AuditViewOf(thing any) (v AuditView) {
	if s, ok := thing.(Settings); ok {
		return AuditView(s)
	}
	raw, err := json.Marshal(thing)
	if err != nil || json.Unmarshal(raw, &v) != nil || v == nil {
		return nil
	}
	also := func(field string, value any) { v[field], _ = json.Marshal(value) }
	switch t := thing.(type) {
	case *User:
		also("password", t.PasswordHash)
		also("disabled_at", t.DisabledAt)
	case *Member:
		also("password", t.PasswordHash)
	case *Number:
		also("released_at", t.ReleasedAt)
	case *NumberOrder:
		also("phone_number", t.PhoneNumber)
	case *Endpoint:
		delete(v, "api_key")
		delete(v, "headers")
		also("key_and_headers", []any{t.Key, t.Headers}) // no value of a field with such a name is kept
	case *Tool:
		for _, field := range []string{"remote_tools", "remote_more", "remote_error", "remote_listed_at"} {
			delete(v, field) // nobody changed what the server says
		}
	case *Trunk:
		also("sip_password", t.Sealed) // sealed anew only when it is entered
	}
	return v
}

// Name is what a thing is called, "" for nothing.
func (v AuditView) Name() (name string) {
	for _, field := range []string{"name", "phone_number", "email"} {
		if name = text(v[field]); name != "" {
			break
		}
	}
	return name
}

// auditMoving are fields that change with every change, or by themselves.
var auditMoving = []string{"updated_at", "created_at", "total_balance", "last_seen_at"}

// AuditChanges are the fields in which two views of a thing differ. bare: without any values.
func AuditChanges(from, to AuditView, bare bool) []AuditChange {
	names := map[string]bool{}
	for name := range from {
		names[name] = true
	}
	for name := range to {
		names[name] = true
	}
	list := []AuditChange{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if slices.Contains(auditMoving, name) || same(from[name], to[name]) {
			continue
		}
		c := AuditChange{Field: name}
		if was, is := auditKept(name, from[name]), auditKept(name, to[name]); !bare && was != nil && is != nil {
			c.From, c.To = was, is
		}
		list = append(list, c)
	}
	return list
}

// auditSecret are fields that may hold secrets, however short they are, or what was said.
var auditSecret = regexp.MustCompile(`password|secret|token|header|url|endpoint|variables|prompt|message|content|^script$`)

// maxAudited is the longest text that is kept, in characters.
const maxAudited = 80

// auditKept is a value as the log keeps it, nil for one that it doesn't keep.
func auditKept(field string, v json.RawMessage) json.RawMessage {
	v = bytes.TrimSpace(v)
	switch {
	case len(v) == 0:
		return json.RawMessage("null")
	case auditSecret.MatchString(field), v[0] == '{', v[0] == '[':
		return nil
	case v[0] == '"' && utf8.RuneCountInString(text(v)) > maxAudited:
		return nil
	}
	return v
}

// Summary is what changed in one line: "timeout: 5 → 7, headers".
func (e *AuditEntry) Summary() string {
	list := make([]string, 0, len(e.Changes))
	for _, c := range e.Changes {
		if from, to, kept := c.Values(); kept {
			list = append(list, c.Field+": "+from+" → "+to)
		} else {
			list = append(list, c.Field)
		}
	}
	return strings.Join(list, ", ")
}

// Values are the values before and after, as people read them; kept is false where they are not kept.
func (c *AuditChange) Values() (from, to string, kept bool) {
	show := func(v json.RawMessage) string {
		if s := text(v); s != "" {
			return s
		}
		return cmp.Or(strings.ReplaceAll(string(v), "null", ""), "–")
	}
	return show(c.From), show(c.To), c.To != nil
}
