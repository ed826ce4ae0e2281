package parley

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/uptrace/bun"
)

// Tool is a mid-call tool: an HTTP endpoint of the user's that an assistant calls while it talks, an MCP server with tools of its own, or
// something that the customer's page does.
type Tool struct {
	bun.BaseModel `bun:"tools" json:"-"`

	ID          int64        `bun:",pk,autoincrement" json:"id" readOnly:"true"`
	UserID      int64        `json:"-"`
	Kind        ToolKind     `json:"kind" default:"http" enum:"http,mcp,client" doc:"http: one endpoint. mcp: an MCP server (streamable HTTP) at endpoint, whose own tools the model gets; method, schema and json_schema mean nothing then. client: the customer's page runs it, in a call from a browser or a chat whose client names it; it has no endpoint and no headers."`
	Name        string       `json:"name" required:"true" maxLength:"255" pattern:"^[a-z][a-z_]*$" must:"contain only lowercase letters and underscores, and start with a letter" doc:"Unique among the user's tools; the model calls it by this name. Of kind mcp, it tells tools apart that have the same name."`
	Description string       `json:"description" required:"true" maxLength:"255" doc:"When and how the AI uses the tool. Of kind mcp it is for people: the model goes by the descriptions of the server's tools."`
	Endpoint    string       `json:"endpoint" required:"true" maxLength:"2048" format:"http-url" doc:"Of kind client there is none, and it may be left out. {param} is replaced by an argument, URL-escaped; {{variable}} by a variable."`
	Method      string       `json:"method" required:"true" enum:"GET,POST,PUT,PATCH,DELETE" doc:"Of kinds mcp and client it may be left out, and is POST."`
	Mode        ToolMode     `json:"mode" default:"sync" enum:"sync,async" doc:"sync: the conversation waits for the answer. async: it goes on, and the assistant tells the customer when the answer is there. Kind client: sync only."`
	Timeout     int          `json:"timeout" default:"10" minimum:"1" doc:"Seconds that the answer may take: at most 30, or 600 in mode async."`
	Filler      string       `json:"filler" maxLength:"255" doc:"Said on the telephone while the answer is awaited, after half a second in which nothing is said; {{variable}} is replaced. Empty: one of the assistant's fillers, or a sentence in its language."`
	SecondFill  string       `bun:"second_filler" json:"second_filler" maxLength:"255" doc:"Said when the answer takes eight seconds more."`
	Headers     []ToolHeader `bun:"-" json:"headers" maxItems:"50" doc:"Sent to the endpoint; kept encrypted."`
	Sealed      []byte       `bun:"headers" json:"-"` // Headers as they are stored
	Schema      []ToolParam  `bun:"type:json" json:"schema" maxItems:"50" doc:"The parameters that the AI supplies. Of a tool with a json_schema, as much as this form can say."`
	JSONSchema  JSONSchema   `bun:"json_schema,type:json,nullzero" json:"json_schema" doc:"The parameters as a JSON Schema (draft 2020-12) of an object, in place of schema: with lists, nested objects, enum, integer, format, default. At most 32 KB. Shown of every tool; of both, the one that is changed counts, json_schema before schema."`
	SchemaNotes []string     `bun:"-" json:"schema_notes" readOnly:"true" doc:"What vendors can't do with json_schema."`
	OAuth       *ToolOAuth   `bun:"-" json:"oauth" doc:"Kind mcp: how tokens for the server are had (OAuth 2.1, client credentials). null: without OAuth."`
	StoredOAuth ToolOAuth    `bun:"embed:oauth_" json:"-"` // OAuth as it is stored
	Allowed     ToolNames    `bun:"allowed_tools,type:json" json:"allowed_tools" maxItems:"200" maxLength:"128" uniqueItems:"true" doc:"Kind mcp: names of those of the server's tools that the model gets. null: all."`

	RemoteTools []ListedTool `bun:"-" json:"remote_tools" readOnly:"true" doc:"Kind mcp: the server's tools as they were last listed: when it was saved, by refresh, and now and then while it is used."`
	RemoteMore  bool         `bun:"-" json:"remote_more" readOnly:"true" doc:"Kind mcp: the server has more tools than are listed: 200 at most, and 256 KB of them."`
	RemoteError string       `bun:"-" json:"remote_error" readOnly:"true" doc:"Kind mcp: why the server could not be listed the last time; remote_tools are then those of before. Empty where it could."`
	RemoteAt    Time         `bun:"-" json:"remote_listed_at" readOnly:"true" doc:"Kind mcp: when remote_tools were listed; null: never."`
	Listing     *ToolListing `bun:"-" json:"-"`

	CreatedAt Time `json:"created_at" readOnly:"true"`
	UpdatedAt Time `json:"updated_at" readOnly:"true"`
}

// ToolKind is what a tool is.
type ToolKind string

// The kinds of mid-call tools.
const (
	ToolHTTP   ToolKind = "http"
	ToolMCP    ToolKind = "mcp"
	ToolClient ToolKind = "client"
)

// ToolMode says whether a conversation waits for a tool.
type ToolMode string

// The modes of mid-call tools.
const (
	ToolSync  ToolMode = "sync"
	ToolAsync ToolMode = "async"
)

// MaxToolWait is how many seconds a conversation waits for a tool at most.
const MaxToolWait = 30

// maxToolTime is how many seconds a tool may take that no conversation waits for.
const maxToolTime = 600

// For is the tool as a member with a role may see it: who may not change it sees no address and no secrets.
func (t *Tool) For(role Role) *Tool {
	if role.Includes(RoleEditor) {
		return t
	}
	b := *t
	b.Endpoint, b.OAuth, b.Headers = "", nil, slices.Clone(t.Headers)
	for i := range b.Headers {
		b.Headers[i].Value = ""
	}
	return &b
}

// Waited is the tool for somebody who waits for its answer.
func (t *Tool) Waited() *Tool {
	out := *t
	out.Timeout = min(t.Timeout, MaxToolWait)
	return &out
}

// ToolOAuth are the credentials by which we get tokens for an MCP server (OAuth 2.1, client credentials).
type ToolOAuth struct {
	TokenURL string `bun:"token_url" json:"token_url" maxLength:"2048" format:"http-url" doc:"Where tokens are had. Empty: where the server's metadata says (RFC 9728)."`
	ClientID string `bun:"client_id" json:"client_id" maxLength:"255"`
	Secret   string `bun:"-" json:"client_secret" maxLength:"1024" trim:"off" doc:"Kept encrypted."`
	Scope    string `bun:"scope" json:"scope" maxLength:"1024" doc:"The scopes that are asked for, with spaces between them. Empty: those that the server names."`
	Sealed   []byte `bun:"secret" json:"-"` // Secret as it is stored
}

// ToolNames are names of an MCP server's tools. None are null in JSON.
type ToolNames []string

// MarshalJSON returns null for no names.
func (n ToolNames) MarshalJSON() ([]byte, error) {
	if len(n) == 0 {
		return []byte("null"), nil
	}
	return json.Marshal([]string(n))
}

// ToolListing is what an MCP server said of its tools.
type ToolListing struct {
	bun.BaseModel `bun:"tool_listings" json:"-"`

	ToolID   int64        `bun:",pk" json:"-"`
	UserID   int64        `json:"-"`
	Tools    []ListedTool `bun:"type:json"`
	More     bool         // the server has more tools than are listed
	Error    string       // why the server could not be listed the last time; "" where it could
	ListedAt Time         `bun:",nullzero"`
	TriedAt  Time
}

// ListedTool is a tool of an MCP server.
type ListedTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Schema      JSONSchema      `json:"json_schema" doc:"Of its arguments."`
	Annotations ToolAnnotations `json:"annotations"`
	ReadOnly    bool            `json:"read_only" doc:"The server says that it changes nothing."`
	Destructive bool            `json:"destructive" doc:"It may change or delete what is there; also where the server doesn't say."`
	Given       bool            `json:"given" doc:"The model gets it."`
	SchemaNotes []string        `json:"schema_notes" doc:"What vendors can't do with its json_schema."`
	Note        string          `json:"note" doc:"Why the model doesn't get it, or what it is not told of it."`
}

// ToolAnnotations is what an MCP server says of a tool, as it says it; what it doesn't say is absent
// (https://modelcontextprotocol.io/specification/2025-06-18/schema#toolannotations).
type ToolAnnotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    *bool  `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  *bool  `json:"idempotentHint,omitempty"`
	OpenWorld   *bool  `json:"openWorldHint,omitempty"`
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
	if t.Kind != ToolClient && t.Endpoint == "" && !f.Has("endpoint") {
		f.Add("endpoint", "is required.")
	}
	if t.Kind == ToolClient && t.Mode == ToolAsync {
		f.AddText("mode", "The mode field must be sync: the conversation waits for what the customer's page answers.")
	}
	t.checkServer(f)
	most := MaxToolWait
	if t.Mode == ToolAsync {
		most = maxToolTime
	}
	if t.Timeout > most {
		f.Add("timeout", "must not be greater than %d.", most)
	}
	seen := map[string]bool{}
	for i, p := range t.Schema {
		if p.Name != "" && seen[p.Name] {
			f.Add("schema."+strconv.Itoa(i)+".name", "has a duplicate value.")
		}
		seen[p.Name] = true
	}
}

// checkServer checks what only an MCP server has.
func (t *Tool) checkServer(f *Fields) {
	if t.Kind != ToolMCP {
		return
	}
	if strings.ContainsAny(t.Endpoint, "{}") {
		f.AddText("endpoint", "The endpoint field must not have placeholders: an MCP server has one address. Headers may have variables.")
	}
	if o := t.OAuth; o != nil && o.ClientID == "" && !f.Has("oauth.client_id") {
		f.Add("oauth.client_id", "is required.")
	}
	if o := t.OAuth; o != nil && o.Secret == "" && !f.Has("oauth.client_secret") {
		f.Add("oauth.client_secret", "is required.")
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
