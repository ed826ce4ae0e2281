package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is a tool: an operation of the API, said for a model. tools.yaml says what each field is.
type tool struct {
	Name, Title, Text, Op string
	Path, Args, Short     words
	Needed                *[]string
	Hints                 []string
	Then                  *then
	Wait                  int
	Own                   object
	Fill                  string
}

// words are names with spaces between them.
type words []string

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *words) UnmarshalText(text []byte) error {
	*w = strings.Fields(string(text))
	return nil
}

// then is an operation that reads how far something is.
type then struct {
	Op    string
	ID    string // the parameter of its path that is the id in the answer of the first operation; "": all are the same
	Going []string
}

//go:embed tools.yaml
var toolsFile []byte

// tools are all of them.
var tools = func() (list []tool) {
	dec := yaml.NewDecoder(bytes.NewReader(toolsFile))
	dec.KnownFields(true)
	if err := dec.Decode(&list); err != nil {
		panic(err) // of our own making
	}
	return list
}()

// maxWait is how long a tool waits for something: clients give up after a minute.
const maxWait = 50

// addTool adds a tool to the protocol's server.
func (s *Server) addTool(server *sdk.Server, t *tool) {
	o := s.ops()[t.Op]
	if o == nil || t.Fill != "" && fills[t.Fill] == nil {
		panic("mcpserver: " + t.Name + ": there is no operation " + t.Op + ", or no fill " + t.Fill)
	}
	has := func(h string) bool { return slices.Contains(t.Hints, h) }
	destroys, reaches := has("destroys"), has("reaches")
	server.AddTool(&sdk.Tool{Name: t.Name, Title: t.Title, Description: t.Text, InputSchema: t.schema(o),
		Annotations: &sdk.ToolAnnotations{Title: t.Title, ReadOnlyHint: has("reads"), DestructiveHint: &destroys,
			IdempotentHint: has("reads") || has("same"), OpenWorldHint: &reaches}},
		func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			args := object{}
			if len(req.Params.Arguments) > 0 {
				dec := json.NewDecoder(bytes.NewReader(req.Params.Arguments))
				dec.UseNumber()
				if err := dec.Decode(&args); err != nil {
					return refused("The arguments must be a JSON object."), nil
				}
			}
			if args == nil { // null, as some clients write no arguments
				args = object{}
			}
			return s.call(ctx, t, o, args), nil
		})
}

// params are the path's parameters: as the operation names them, and as the tool does.
func (t *tool) params() (list [][2]string) {
	for _, pair := range t.Path {
		api, here, _ := strings.Cut(pair, ":")
		list = append(list, [2]string{api, here})
	}
	return list
}

// Arguments that the tools have of their own.
const (
	waitArg, keyArg, fieldArg, offsetArg = "wait_seconds", "idempotency_key", "field", "offset"
)

// schema is what a tool takes, as a JSON Schema.
func (t *tool) schema(o *operation) object {
	props, required := object{}, []string{}
	for _, p := range t.params() {
		sc, _ := o.schema[p[0]].(object)
		props[p[1]] = object{"type": cmp.Or(sc["type"], any("integer")), "description": "From the tool that lists or creates it."}
		required = append(required, p[1])
	}
	for _, name := range t.Args {
		sc, ok := o.schema[name]
		if !ok {
			panic("mcpserver: " + t.Name + ": " + t.Op + " doesn't take " + name)
		}
		props[name] = sc
		if t.Needed == nil && slices.Contains(o.required, name) {
			required = append(required, name)
		}
	}
	if t.Needed != nil {
		required = append(required, *t.Needed...)
	}
	maps.Copy(props, t.Own)
	if o.idempotent {
		props[keyArg] = object{"type": "string", "maxLength": 255, "description": "A text of your choice. A repeated call with the same key " +
			"and arguments gets the first answer, and does nothing again."}
	}
	if t.Then != nil {
		props[waitArg] = object{"type": "integer", "minimum": 0, "maximum": maxWait,
			"description": fmt.Sprintf("How many seconds to wait until it is over. Default: %d.", t.Wait)}
	}
	if t.one() {
		props[fieldArg] = object{"type": "string", "description": "Read only this field of the answer, from offset on. For texts that were cut."}
		props[offsetArg] = object{"type": "integer", "minimum": 0, "description": "With field: how many characters of it to skip. Default: 0."}
	}
	return object{"type": "object", "properties": props, "required": required}
}

// one says whether a tool reads one thing, whose long texts can be read on.
func (t *tool) one() bool { return strings.HasPrefix(t.Name, "get_") }

// refused is the result of a tool that failed, in words.
func refused(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// call runs a tool.
func (s *Server) call(ctx context.Context, t *tool, o *operation, args object) *sdk.CallToolResult {
	path, wrong := t.path(args)
	if wrong != "" {
		return refused(wrong)
	}
	key, _ := args[keyArg].(string)
	field, _ := args[fieldArg].(string)
	offset, wait := number(args[offsetArg], 0), number(args[waitArg], t.Wait)
	for _, name := range []string{keyArg, fieldArg, offsetArg, waitArg} {
		if !slices.Contains(o.fields, name) {
			delete(args, name)
		}
	}
	if fill := fills[t.Fill]; fill != nil {
		if err := fill(ctx, s, args); err != nil {
			return refused(known(ctx, err))
		}
	}
	query := url.Values{}
	for _, name := range o.query {
		if v, ok := args[name]; ok {
			query.Set(name, textOf(v))
			delete(args, name)
		}
	}
	got, err := s.ask(ctx, o, path, query, args, key)
	if err != nil {
		return refused(known(ctx, err))
	}
	if t.Then != nil && !got.failed() {
		if got, err = s.until(ctx, t.Then, path, got, time.Duration(min(wait, maxWait))*time.Second); err != nil {
			return refused(known(ctx, err))
		}
	}
	if got.failed() {
		return refused(got.refusal(t))
	}
	text := shape(got.value, t.Short)
	if field != "" {
		if text, wrong = part(got.value, field, offset); wrong != "" {
			return refused(wrong)
		}
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// path takes the path's parameters out of the arguments.
func (t *tool) path(args object) (path map[string]string, wrong string) {
	path = map[string]string{}
	for _, p := range t.params() {
		path[p[0]] = textOf(args[p[1]])
		delete(args, p[1])
		if path[p[0]] == "" {
			return nil, p[1] + " is missing."
		}
	}
	return path, ""
}

// textOf is a scalar argument as a path or query has it; "" for other values.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// number is an argument of ours that is a number of zero or more.
func number(v any, otherwise int) int {
	n, err := strconv.Atoi(textOf(v))
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}

// until reads how far something is, until it is over or the wait is.
func (s *Server) until(ctx context.Context, of *then, path map[string]string, got *answer, wait time.Duration) (*answer, error) {
	o, over := s.ops()[of.Op], time.NewTimer(wait)
	defer over.Stop()
	begun := of.ID != "" // got says no more than that
	if begun {
		path[of.ID] = textOf(at(got.value, "data.id"))
	}
	for pause := 100 * time.Millisecond; begun || of.going(got); pause = min(2*pause, 3*time.Second) {
		next := time.NewTimer(pause)
		select {
		case <-next.C:
		case <-over.C:
			return got, nil
		case <-s.stopping:
			return got, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		a, err := s.ask(ctx, o, path, nil, nil, "")
		if err != nil || a.failed() {
			return a, err
		}
		got, begun = a, false
	}
	return got, nil
}

// going says whether an answer is of something that is not over.
func (t *then) going(a *answer) bool {
	o, _ := unwrapped(a.value).(object)
	return slices.Contains(t.Going, textOf(o["status"]))
}

// at is a value within an answer, by the names on the way to it; nil where there is none.
func at(v any, path string) any {
	for _, name := range strings.Split(path, ".") {
		o, _ := v.(object)
		v = o[name]
	}
	return v
}

// mends say, by status, how a refused call can be mended; the API's own words come before them.
var mends = map[int]string{
	http.StatusUnauthorized:        "The credential is no longer valid: the user must connect again.",
	http.StatusPaymentRequired:     "The user must add credit in the console, under Billing.",
	http.StatusForbidden:           "This credential may not do that; tell the user. Another tool won't do it either.",
	http.StatusNotFound:            "Ids come from the tools that list things; another account's are not found.",
	http.StatusConflict:            "Read the thing again before you try once more.",
	http.StatusUnprocessableEntity: "Mend the arguments that are named and call the tool again.",
	http.StatusBadGateway:          "The other side failed; try again later.",
	http.StatusServiceUnavailable:  "Try again later.",
}

// refusal is what a model reads of an answer of the API that is an error.
func (a *answer) refusal(t *tool) string {
	body, _ := a.value.(object)
	text, _ := body["message"].(string)
	if e, ok := body["error"].(string); ok && text == "" {
		text = e
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s failed (%d): %s", t.Name, a.status, cmp.Or(text, http.StatusText(a.status)))
	fields, _ := body["errors"].(object)
	for _, name := range sorted(fields) {
		shown := name
		for _, p := range t.params() {
			if p[0] == name {
				shown = p[1]
			}
		}
		list, _ := fields[name].([]any)
		for _, line := range list {
			fmt.Fprintf(&b, "\n- %s: %v", shown, line)
		}
	}
	if detail, ok := body["detail"].(string); ok && detail != "" {
		b.WriteString("\n" + detail)
	}
	if later := a.header.Get("Retry-After"); later != "" {
		fmt.Fprintf(&b, "\nTry again in %s seconds.", later)
	}
	if mend := mends[a.status]; mend != "" {
		b.WriteString("\n" + mend)
	}
	return b.String()
}
