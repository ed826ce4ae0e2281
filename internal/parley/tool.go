package parley

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/uptrace/bun"
)

// Tool is a mid-call tool: an HTTP endpoint of the user's that an assistant calls while it talks.
type Tool struct {
	bun.BaseModel `bun:"tools" json:"-"`

	ID          int64        `bun:",pk,autoincrement" json:"id" readOnly:"true"`
	UserID      int64        `json:"-"`
	Name        string       `json:"name" required:"true" maxLength:"255" pattern:"^[a-z][a-z_]*$" must:"contain only lowercase letters and underscores, and start with a letter" doc:"Unique among the user's tools; the model calls it by this name."`
	Description string       `json:"description" required:"true" maxLength:"255" doc:"When and how the AI uses the tool."`
	Endpoint    string       `json:"endpoint" required:"true" maxLength:"2048" format:"http-url" doc:"{param} is replaced by an argument, URL-escaped; {{variable}} by a variable."`
	Method      string       `json:"method" required:"true" enum:"GET,POST,PUT,PATCH,DELETE"`
	Timeout     int          `json:"timeout" default:"10" minimum:"1" maximum:"30" doc:"Seconds."`
	Filler      string       `json:"filler" maxLength:"255" doc:"Said on the telephone while the answer is awaited, after half a second in which nothing is said; {{variable}} is replaced. Empty: one of the assistant's fillers, or a sentence in its language."`
	SecondFill  string       `bun:"second_filler" json:"second_filler" maxLength:"255" doc:"Said when the answer takes eight seconds more."`
	Headers     []ToolHeader `bun:"-" json:"headers" maxItems:"50" doc:"Sent to the endpoint; kept encrypted."`
	Sealed      []byte       `bun:"headers" json:"-"` // Headers as they are stored
	Schema      []ToolParam  `bun:"type:json" json:"schema" maxItems:"50" doc:"The parameters that the AI supplies. Of a tool with a json_schema, as much as this form can say."`
	JSONSchema  JSONSchema   `bun:"json_schema,type:json,nullzero" json:"json_schema" doc:"The parameters as a JSON Schema (draft 2020-12) of an object, in place of schema: with lists, nested objects, enum, integer, format, default. At most 32 KB. Shown of every tool; of both, the one that is changed counts, json_schema before schema."`
	SchemaNotes []string     `bun:"-" json:"schema_notes" readOnly:"true" doc:"What vendors can't do with json_schema."`
	CreatedAt   Time         `json:"created_at" readOnly:"true"`
	UpdatedAt   Time         `json:"updated_at" readOnly:"true"`
}

// ToolHeader is a header sent to a tool's endpoint. Values are encrypted at rest.
type ToolHeader struct {
	Name  string `json:"name" required:"true" maxLength:"255" pattern:"^[A-Za-z0-9!#$%&'*+.^_|~-]+$" must:"be a valid HTTP header name"`
	Value string `json:"value" maxLength:"4096" pattern:"^[^\\x00-\\x08\\x0a-\\x1f\\x7f]*$" must:"not hold line breaks or other control characters" doc:"{{variable}} is replaced."`
}

// ToolParam is a parameter that the model fills in.
type ToolParam struct {
	Name        string `json:"name" required:"true" minLength:"2" maxLength:"32" pattern:"^[A-Za-z][A-Za-z0-9_]*$" must:"contain only letters, digits and underscores, and start with a letter"`
	Type        string `json:"type" required:"true" enum:"string,number,boolean"`
	Description string `json:"description" required:"true" minLength:"3" maxLength:"255"`
	Required    bool   `json:"required" default:"true"`
}

// BuiltinTools are the names that mid-call tools may not take.
var BuiltinTools = []string{"end_call", "call_transfer", "dtmf_input", "collect_keypad", "assistant_transfer",
	"warm_call_transfer", "search_knowledgebase"}

// Check adds what the fields' own rules can't see.
func (t *Tool) Check(f *Fields) {
	if slices.Contains(BuiltinTools, t.Name) {
		f.AddText("name", "The name field must not be the name of a built-in tool ("+t.Name+").")
	}
	seen := map[string]bool{}
	for i, p := range t.Schema {
		if p.Name != "" && seen[p.Name] {
			f.Add("schema."+strconv.Itoa(i)+".name", "has a duplicate value.")
		}
		seen[p.Name] = true
	}
}

// FunctionCall is the record of a tool that the assistant used.
type FunctionCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Result    string          `json:"result"`
}

// Failed says whether the tool could not do what it was asked for, by what the model was told.
func (f FunctionCall) Failed() bool {
	return slices.ContainsFunc([]string{"Error: ", "The tool failed", "The tool was not called"},
		func(s string) bool { return strings.HasPrefix(f.Result, s) })
}
