package geminitest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"parley/internal/ai"
)

// request is the body as it is on the wire; a field that isn't here is refused.
type request struct {
	System   *content  `json:"systemInstruction"`
	Contents []content `json:"contents"`
	Tools    []struct {
		Functions []function `json:"functionDeclarations"`
	} `json:"tools"`
	Calling *struct {
		Config struct {
			Mode string `json:"mode"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	Config struct {
		Temperature *float64        `json:"temperature"`
		MaxTokens   int             `json:"maxOutputTokens"`
		Type        string          `json:"responseMimeType"`
		Schema      json.RawMessage `json:"responseJsonSchema"`
		Thinking    *struct {
			Level  string `json:"thinkingLevel"`
			Budget *int   `json:"thinkingBudget"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
}

type content struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	Text      string `json:"text"`
	Signature string `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Response *struct {
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parametersJsonSchema"`
}

var functionName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

// read takes a request apart. What is wrong is said as the API says it.
func (in *request) read(model string) (out Request, wrong string) {
	out = Request{Model: model}
	c := in.Config
	out.Temperature, out.MaxTokens = c.Temperature, c.MaxTokens
	if t := c.Thinking; t != nil {
		out.Level, out.Budget = t.Level, t.Budget
		switch {
		case t.Level != "" && t.Budget != nil:
			return out, "You can only set only one of thinking budget and thinking level."
		case t.Level != "" && model == Old:
			return out, "Thinking level is not supported for this model."
		case t.Level == "minimal" && model == Flash:
			return out, "Thinking level MINIMAL is not supported for this model. Please retry with other thinking level."
		}
	}
	if in.System != nil {
		for _, p := range in.System.Parts {
			out.System += p.Text
		}
	}
	for _, t := range in.Tools {
		for i, f := range t.Functions {
			if !functionName.MatchString(f.Name) {
				return out, fmt.Sprintf("Invalid function name in tools[0].function_declarations[%d]. Must start with a letter or an underscore.", i)
			}
			out.Tools = append(out.Tools, ai.Tool{Name: f.Name, Description: f.Description, Schema: f.Parameters})
		}
	}
	if in.Calling != nil {
		if len(out.Tools) == 0 {
			return out, "Function calling config is set without function_declarations."
		}
		out.NoCalls = in.Calling.Config.Mode == "NONE"
	}
	if len(c.Schema) > 0 {
		if c.Type != "application/json" {
			return out, "response_json_schema is only supported with response_mime_type application/json"
		}
		if strings.Count(string(c.Schema), `"type"`) > 60 {
			return out, "The specified schema produces a constraint that has too many states for serving."
		}
		out.Schema = &ai.Schema{Name: "format", JSON: c.Schema}
	}
	return out, in.conversation(model, &out)
}

// conversation checks the order that the API asks for: the user begins and ends, calls follow the user or results, and
// the results of all calls that were made at once follow in one content.
func (in *request) conversation(model string, out *Request) string {
	if len(in.Contents) == 0 {
		return "* GenerateContentRequest.contents: contents is not specified"
	}
	turn := 0 // where the present turn begins: the user's last words
	for i, c := range in.Contents {
		if c.Role == "user" && len(c.Parts) > 0 && c.Parts[0].Response == nil {
			turn = i
		}
	}
	open := 0
	for i, c := range in.Contents {
		switch {
		case c.Role != "user" && c.Role != "model":
			return "Please use a valid role: user, model."
		case len(c.Parts) == 0:
			return fmt.Sprintf("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i)
		case i == 0 && c.Role != "user":
			return "Please ensure that multiturn requests begin with a user turn."
		}
		m := ai.Message{Role: ai.User}
		if c.Role == "model" {
			m.Role = ai.Assistant
		}
		calls, results := 0, 0
		for _, p := range c.Parts {
			switch {
			case p.Call != nil && c.Role == "model":
				if wrong := signed(model, p, i, calls == 0, i > turn); wrong != "" {
					return wrong
				}
				calls++
				args := string(p.Call.Args)
				if args == "" {
					args = "{}"
				}
				out.Signatures = append(out.Signatures, p.Signature)
				m.Calls = append(m.Calls, ai.ToolCall{ID: p.Call.ID, Name: p.Call.Name, Arguments: args})
			case p.Response != nil && c.Role == "user":
				results++
				var r struct {
					Output any `json:"output"`
				}
				if json.Unmarshal(p.Response.Response, &r) != nil {
					return "function_response.response must be an object"
				}
				text, ok := r.Output.(string)
				if !ok {
					raw, _ := json.Marshal(r.Output) // it was JSON
					text = string(raw)
				}
				out.Messages = append(out.Messages, ai.Message{Role: ai.ToolRole, CallID: p.Response.ID, Text: text})
			case p.Text != "" && p.Call == nil && p.Response == nil:
				m.Text += p.Text
			default:
				return fmt.Sprintf("* GenerateContentRequest.contents[%d].parts: required oneof field 'data' must have one initialized field", i)
			}
		}
		if results != open {
			return "Please ensure that the number of function response parts is equal to the number of function call parts of " +
				"the function call turn."
		}
		if open = calls; m.Text != "" || calls > 0 {
			out.Messages = append(out.Messages, m)
		}
	}
	if last := in.Contents[len(in.Contents)-1]; open > 0 || last.Role != "user" {
		return "Please ensure that single turn requests end with a user role or a function response."
	}
	return ""
}

// signed checks the signature of a call: in the present turn the first of those that were made at once must have the
// one that it came with, or the one that stands for none.
func signed(model string, p part, at int, first, present bool) string {
	switch {
	case model == Old && p.Signature != "" && p.Signature != sign(p.Call.Name, p.Call.Args):
		return "Corrupted thought signature."
	case model == Old || p.Signature == "skip_thought_signature_validator":
		return ""
	case p.Signature == "" && (!first || !present):
		return ""
	case p.Signature == "":
		return fmt.Sprintf("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. "+
			"function call `%s`, position %d.", p.Call.Name, at)
	case p.Signature != sign(p.Call.Name, p.Call.Args):
		return "Corrupted thought signature."
	case !strings.HasPrefix(p.Call.ID, "fn-"):
		return "Corrupted thought signature: the function call has another id."
	}
	return ""
}
