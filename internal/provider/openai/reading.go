package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"parley/internal/ai"
	"parley/internal/provider/rest"
)

// reading is the part of a reply that was read.
type reading struct {
	*rest.Reading
	prose *rest.Prose
	open  map[number]*openCall // by the index of the deltas
}

// openCall is a call of which more may come.
type openCall struct {
	*rest.Call
	again string // the name came once more behind a whole call: arguments that follow are another call's
}

func newReading(r *rest.Reading, tools []ai.Tool, names rest.Names) *reading {
	in := &reading{Reading: r, open: map[number]*openCall{}}
	in.prose = rest.NewProse(tools, names, r.Say, func(name, arguments string) error {
		c, err := r.Begin()
		if err != nil {
			return err
		}
		c.Name = names.Wire(name)
		return r.Write(c, arguments)
	})
	return in
}

// end is called when the stream has ended.
func (r *reading) end(names rest.Names) error {
	if err := r.prose.End(); err != nil {
		return err
	}
	if r.Finish == "" && r.Whole() { // many servers say no reason
		r.Finish = ai.Stop
	}
	return r.End(names)
}

// chatChunk is an event of the stream.
type chatChunk struct {
	Choices []choice        `json:"choices"`
	Error   json.RawMessage `json:"error"`
	Usage   struct {
		In      number `json:"prompt_tokens"`
		Out     number `json:"completion_tokens"`
		Details struct {
			Cached number `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

type choice struct {
	Delta   part   `json:"delta"`
	Message *part  `json:"message"` // in place of the delta, from servers that don't stream
	Finish  scalar `json:"finish_reason"`
}

// part is what a choice adds to the reply.
type part struct {
	Content content `json:"content"`
	Refusal scalar  `json:"refusal"`
	Calls   []piece `json:"tool_calls"`
}

// piece is a fragment of a tool call.
type piece struct {
	Index    number `json:"index"`
	ID       scalar `json:"id"`
	Function struct {
		Name      scalar `json:"name"`
		Arguments scalar `json:"arguments"`
	} `json:"function"`
}

// scalar is a string. What a server sends in its place is kept as its JSON: arguments that are an object, ids that are
// numbers.
type scalar string

// UnmarshalJSON implements json.Unmarshaler.
func (s *scalar) UnmarshalJSON(raw []byte) error {
	switch {
	case raw[0] == '"':
		return json.Unmarshal(raw, (*string)(s))
	case string(raw) != "null":
		*s = scalar(raw)
	}
	return nil
}

// content is a text, or the text of a list of parts.
type content string

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case '"':
		return json.Unmarshal(raw, (*string)(c))
	case '[':
		*c = content(parts(raw))
	}
	return nil
}

// number is a whole number, which some servers send as 12.0 or "12". What is none counts as 0.
type number int

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(raw []byte) error {
	const most = 1 << 40
	if f, err := strconv.ParseFloat(string(bytes.Trim(raw, `"`)), 64); err == nil && f > -most && f < most {
		*n = number(f)
	}
	return nil
}

// take handles an event.
func (r *reading) take(_ string, data []byte) error {
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		return rest.ErrEnough
	}
	var c chatChunk
	err := json.Unmarshal(data, &c)
	if shape, ok := errors.AsType[*json.UnmarshalTypeError](err); err != nil && (!ok || shape.Field == "") {
		return err // a field of another type counts as missing, but an event that is no object is none
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return r.broken(data)
	}
	if u := c.Usage; u.In > 0 || u.Out > 0 {
		r.Usage = ai.Usage{In: int(u.In), Out: int(u.Out), Cached: int(u.Details.Cached)}
	}
	if len(c.Choices) == 0 {
		return nil
	}
	one := c.Choices[0]
	if one.Finish != "" {
		r.Finish = finish(string(one.Finish))
	}
	delta := one.Delta
	if one.Message != nil && delta.Content == "" && len(delta.Calls) == 0 {
		delta = *one.Message
		for i := range delta.Calls {
			delta.Calls[i].Index = number(i) // they have none in a whole message
		}
	}
	for _, p := range delta.Calls {
		if err := r.piece(p); err != nil {
			return err
		}
	}
	return r.prose.Write(string(delta.Content) + string(delta.Refusal))
}

// broken is the error of an event, which may come after 200 and after text.
func (r *reading) broken(data []byte) error {
	s := parse(data)
	kind := s.kind(0)
	if r.Seen() && (kind == ai.Overloaded || kind == ai.RateLimited) {
		kind = ai.Interrupted
	}
	return &ai.Error{Kind: kind, Err: fmt.Errorf("in mid-stream: %s", s.Message)}
}

// parts is the text of a content that is a list.
func parts(raw []byte) string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return ""
	}
	var b strings.Builder
	for _, item := range list {
		var text string
		var part struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		switch {
		case json.Unmarshal(item, &text) == nil:
			b.WriteString(text)
		case json.Unmarshal(item, &part) == nil && !strings.Contains(part.Type, "think") && !strings.Contains(part.Type, "reason"):
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

// piece adds a fragment of a tool call. Some servers give every call the same index, and some give none an id: then ids,
// names and whole arguments tell them apart.
func (r *reading) piece(d piece) error {
	c := r.open[d.Index]
	id, name, args := string(d.ID), string(d.Function.Name), string(d.Function.Arguments)
	another := c == nil || id != "" && c.ID != "" && id != c.ID
	if !another && name != "" && c.Name != "" && (id == "" || id != c.ID) {
		switch {
		case name != c.Name, c.Complete() && args != "":
			another = true
		case c.Complete():
			c.again = name
		}
	}
	if !another && c.again != "" && args != "" && name == "" {
		another, name = true, c.again
	}
	if another {
		begun, err := r.Begin()
		if err != nil {
			return err
		}
		c = &openCall{Call: begun}
		r.open[d.Index] = c
	}
	if id != "" {
		c.ID = id
	}
	if c.Name == "" {
		c.Name = strings.TrimPrefix(name, "functions.") // whole in its first piece; some servers repeat it
	}
	return r.Write(c.Call, args)
}

func finish(reason string) ai.Finish {
	switch reason {
	case "length":
		return ai.Length
	case "tool_calls", "function_call":
		return ai.ToolCalls
	case "content_filter":
		return ai.Filtered
	}
	return ai.Stop
}
