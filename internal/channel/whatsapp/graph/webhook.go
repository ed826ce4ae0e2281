package graph

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/internal/parley"
)

// Verify says whether a webhook's X-Hub-Signature-256 header is the app's signature of its raw body.
func Verify(secret string, body []byte, signature string) bool {
	sum, ok := strings.CutPrefix(signature, "sha256=")
	got, err := hex.DecodeString(sum)
	return ok && err == nil && secret != "" && hmac.Equal(got, digest(secret, body))
}

// Sign is the X-Hub-Signature-256 of a body.
func Sign(secret string, body []byte) string {
	return "sha256=" + hex.EncodeToString(digest(secret, body))
}

func digest(secret string, body []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write(body)
	return h.Sum(nil)
}

// Notice is what a webhook tells.
type Notice struct {
	Messages []Inbound
	Statuses []Status
}

// Inbound is a customer's message.
type Inbound struct {
	Sender string // the id of the number that it came to
	ID     string // the platform's id of it (wamid)
	Kind   Kind
	About  string // the id of the message that it quotes, reacts to, edits or deletes; "" for none
	Phone  string // the customer's, E.164; where the platform keeps it back, what User says
	User   string // what the platform calls the customer (business-scoped user id); "" where it doesn't say
	Name   string // the customer's, as they call themselves; "" when it is not told
	Text   string // what it says, in words also where it is no text
	SaidAt parley.Time
}

// Kind is what a customer did with a message.
type Kind string

// The kinds; anything else is said.
const (
	Reacted Kind = "reaction" // to a message, or took it back
	Edited  Kind = "edit"     // Text is the new text
	Deleted Kind = "revoke"
)

// Status is what became of a message that was sent.
type Status struct {
	ID     string
	Opaque string // as it was sent
	Status string // sent, delivered, read, failed
	Error  string // why it failed
}

type payload struct {
	Entry []struct {
		Changes []struct {
			Field string `json:"field"`
			Value struct {
				Metadata struct {
					ID string `json:"phone_number_id"`
				} `json:"metadata"`
				Contacts []struct {
					WaID    string `json:"wa_id"`
					UserID  string `json:"user_id"`
					Profile struct {
						Name string `json:"name"`
					} `json:"profile"`
				} `json:"contacts"`
				Messages []json.RawMessage `json:"messages"`
				Statuses []json.RawMessage `json:"statuses"`
			} `json:"value"`
		} `json:"changes"`
	} `json:"entry"`
}

// Read reads a webhook's body. Parts that it doesn't understand are left out: one odd message must not keep the others
// away.
func Read(body []byte) (n Notice, err error) {
	var p payload
	if err := decode(body, &p); err != nil {
		return n, fmt.Errorf("read a WhatsApp webhook: %w", err)
	}
	for _, entry := range p.Entry {
		for _, change := range entry.Changes {
			if change.Field != "messages" {
				continue
			}
			names := map[string]string{}
			for _, c := range change.Value.Contacts {
				names[c.WaID], names[c.UserID] = clean(c.Profile.Name), clean(c.Profile.Name)
			}
			for _, raw := range change.Value.Messages {
				if m, ok := readMessage(raw, names); ok {
					m.Sender = change.Value.Metadata.ID
					n.Messages = append(n.Messages, m)
				}
			}
			for _, raw := range change.Value.Statuses {
				if s, ok := readStatus(raw); ok {
					n.Statuses = append(n.Statuses, s)
				}
			}
		}
	}
	return n, nil
}

func readMessage(raw json.RawMessage, names map[string]string) (Inbound, bool) {
	var m struct {
		ID        string      `json:"id"`
		From      string      `json:"from"`
		User      string      `json:"from_user_id"`
		Timestamp json.Number `json:"timestamp"`
		said
	}
	if decode(raw, &m) != nil {
		return Inbound{}, false
	}
	user := UserID(m.User)
	if user == "" {
		user = UserID(m.From)
	}
	phone := user
	if UserID(m.From) == "" && Phone(m.From) != "" {
		phone = Phone(m.From)
	}
	// a changed number is nobody's message
	if clean(m.ID) == "" || phone == "" || m.Type == "system" {
		return Inbound{}, false
	}
	// The platform's clock, for it judges the window; but never a time to come.
	at := time.Now()
	if n, err := strconv.ParseInt(string(m.Timestamp), 10, 64); err == nil && n > 0 && n < at.Unix() {
		at = time.Unix(n, 0)
	}
	kind, about := m.kind()
	return Inbound{ID: clean(m.ID), Kind: kind, About: clean(about), Phone: phone, User: user,
		Name: cmp.Or(names[m.From], names[user]), Text: clean(m.words()), SaidAt: parley.At(at)}, true
}

func readStatus(raw json.RawMessage) (Status, bool) {
	var s struct {
		ID     string       `json:"id"`
		Status string       `json:"status"`
		Opaque string       `json:"biz_opaque_callback_data"`
		Errors []graphError `json:"errors"`
	}
	if decode(raw, &s) != nil || clean(s.ID) == "" {
		return Status{}, false
	}
	out := Status{ID: clean(s.ID), Opaque: s.Opaque, Status: s.Status}
	switch s.Status {
	case parley.WhatsAppSent, parley.WhatsAppDelivered, parley.WhatsAppRead:
		return out, true
	case parley.WhatsAppFailed:
		if len(s.Errors) > 0 {
			out.Error = clean(fmt.Sprintf("%s (%d)", s.Errors[0].text(), s.Errors[0].Code))
		}
		return out, true
	}
	return Status{}, false // played, deleted, warning: nothing that we keep
}

// decode reads JSON; a field of another type than we know stays empty and costs nothing else.
func decode(raw []byte, v any) error {
	err := json.Unmarshal(raw, v)
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return nil
	}
	return err
}

// clean takes out what no database holds.
func clean(s string) string { return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "") }
