package custom

import (
	"encoding/json"

	"parley/internal/ai"
)

// What is sent to the program.
type (
	begun struct {
		Type         string            `json:"type"` // session
		Protocol     int               `json:"protocol"`
		Conversation string            `json:"conversation"`
		Resumed      bool              `json:"resumed"` // it had a session before
		Assistant    assistant         `json:"assistant"`
		Customer     string            `json:"customer"`
		Variables    map[string]string `json:"variables"`
	}
	assistant struct {
		ID       int64  `json:"id"`
		Name     string `json:"name"`
		Language string `json:"language"`
	}
	asked struct {
		Type     string    `json:"type"` // turn
		Turn     int       `json:"turn"`
		Text     string    `json:"text"`
		Messages []message `json:"messages"`
		Prompt   string    `json:"prompt,omitempty"` // where it has changed since the last turn
		Tools    *[]tool   `json:"tools,omitempty"`  // likewise
	}
	answered struct {
		Type string `json:"type"` // result
		Turn int    `json:"turn"`
		ID   string `json:"id"`
		Text string `json:"text"`
	}
	// cut is what becomes of a reply: cancel, interrupted; and end, of the session.
	cut struct {
		Type  string  `json:"type"`
		Turn  int     `json:"turn,omitempty"`
		Heard *string `json:"heard,omitempty"`
		Why   string  `json:"why,omitempty"`
	}
	tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	message struct {
		Role  ai.Role `json:"role"`
		Text  string  `json:"text"`
		Calls []call  `json:"calls,omitempty"`
		ID    string  `json:"id,omitempty"` // of the call whose result it is
	}
	call struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
)

// told is what the program is told at once: a request's body, or messages on the WebSocket in the order of list.
type told struct {
	Session     *begun     `json:"session"`
	cancel      *cut       // on the WebSocket alone: a request that nobody wants any more is closed
	Interrupted *cut       `json:"interrupted,omitempty"`
	Turn        *asked     `json:"turn,omitempty"`
	Results     []answered `json:"results,omitempty"`
	End         *cut       `json:"end,omitempty"`
}

// list are the messages of a turn.
func (t *told) list() (list []any) {
	for _, m := range []*cut{t.cancel, t.Interrupted} {
		if m != nil {
			list = append(list, m)
		}
	}
	if t.Turn != nil {
		list = append(list, t.Turn)
	}
	for _, m := range t.Results {
		list = append(list, m)
	}
	return list
}

// heard is a message of the program's.
type heard struct {
	Type  string `json:"type"` // say, call, transfer, end, done, error
	Turn  int    `json:"turn"`
	Text  string `json:"text"`
	Calls []call `json:"calls"`
	// of transfer: the name of the tool that does it, and what it is given
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Usage     *ai.Usage       `json:"usage"`
}

func messagesOf(list []ai.Message) []message {
	out := make([]message, len(list))
	for i, m := range list {
		out[i] = message{Role: m.Role, Text: m.Text, ID: m.CallID}
		for _, c := range m.Calls {
			out[i].Calls = append(out[i].Calls, call{c.ID, c.Name, argumentsOf(c.Arguments)})
		}
	}
	return out
}

// argumentsOf are arguments as JSON: what a model wrote that is none is a text.
func argumentsOf(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

func toolsOf(list []ai.Tool) []tool {
	out := make([]tool, len(list))
	for i, t := range list {
		out[i] = tool{t.Name, t.Description, t.Schema}
		if len(t.Schema) == 0 {
			out[i].Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
	}
	return out
}
