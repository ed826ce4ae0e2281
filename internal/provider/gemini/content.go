package gemini

import (
	"encoding/json"
	"strings"

	"parley/internal/ai"
	"parley/internal/provider/rest"
)

// seal is what goes back to Gemini with a call: the id that it gave the call, and the signature of the thoughts which
// led to it. Models from 3 on refuse calls of the present turn without it.
type seal struct {
	Vendor    string `json:"vendor"`
	ID        string `json:"id,omitempty"`
	Signature string `json:"signature,omitempty"`
}

func sealed(p part) string {
	if p.Call.ID == "" && p.Signature == "" {
		return ""
	}
	raw, _ := json.Marshal(seal{Code, p.Call.ID, p.Signature}) // plain values can't fail
	return string(raw)
}

// unseal reads a seal of ours; another vendor's is none.
func unseal(c ai.ToolCall) (s seal) {
	if json.Unmarshal([]byte(c.Seal), &s) != nil || s.Vendor != Code {
		return seal{}
	}
	return s
}

// unknown is the signature of calls of which we have none, because another model made them or the process that knew
// was stopped. Google documents it for that.
const unknown = "skip_thought_signature_validator"

const (
	// opening stands for the customer where the assistant speaks first, and closing where it spoke last: a
	// conversation begins and ends with the user.
	opening = "(The conversation begins.)"
	closing = "(Go on.)"
)

// talk is a conversation as Gemini takes it: what one side said in a row is one content, and the results of the calls
// that were made at once stand together, in one content right behind them.
type talk struct {
	list    []content
	results bool            // the last content holds results
	calls   map[string]call // of the last message with calls, by our ids
}

// contents makes a conversation. Without seals the ids and signatures that Gemini gave are left out; sign puts
// unknown in the place of those that are missing.
func contents(list []ai.Message, names rest.Names, unsealed, sign bool) []content {
	t := talk{calls: map[string]call{}}
	for _, m := range list {
		switch {
		case m.Role == ai.ToolRole:
			t.result(m)
		case m.Role == ai.User:
			if strings.TrimSpace(m.Text) != "" {
				t.add("user", part{Text: m.Text})
			}
		default:
			if strings.TrimSpace(m.Text) != "" {
				t.add("model", part{Text: m.Text})
			}
			t.call(m.Calls, names, unsealed, sign)
		}
	}
	if n := len(t.list); n == 0 {
		t.add("user", part{Text: opening})
	} else if t.list[n-1].Role == "model" {
		t.add("user", part{Text: closing})
	}
	return t.list
}

func (t *talk) add(role string, p part) {
	if len(t.list) == 0 && role == "model" {
		t.add("user", part{Text: opening})
	}
	if n := len(t.list); n > 0 && t.list[n-1].Role == role && !t.results {
		t.list[n-1].Parts = append(t.list[n-1].Parts, p)
	} else {
		t.list = append(t.list, content{role, []part{p}})
	}
	t.results = false
}

// call adds calls that were made at once. The first of them is the one that has a signature.
func (t *talk) call(calls []ai.ToolCall, names rest.Names, unsealed, sign bool) {
	for i, c := range calls {
		var s seal
		if !unsealed {
			s = unseal(c)
		}
		made := call{ID: s.ID, Name: names.Wire(c.Name), Args: json.RawMessage(c.Arguments)}
		if made.ID == "" {
			made.ID = c.ID
		}
		if !object(made.Args) {
			made.Args = nil // the result tells what was wrong
		}
		if s.Signature == "" && i == 0 && sign {
			s.Signature = unknown
		}
		t.calls[c.ID] = made
		t.add("model", part{Call: &made, Signature: s.Signature})
	}
}

func (t *talk) result(m ai.Message) {
	c := t.calls[m.CallID]
	r := &response{ID: c.ID, Name: c.Name}
	r.Response.Output = m.Text
	if raw := json.RawMessage(m.Text); object(raw) {
		r.Response.Output = raw
	}
	if t.results {
		last := &t.list[len(t.list)-1]
		last.Parts = append(last.Parts, part{Response: r})
		return
	}
	t.list = append(t.list, content{"user", []part{{Response: r}}})
	t.results = true
}
