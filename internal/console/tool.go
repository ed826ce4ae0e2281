package console

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"parley/internal/assistant"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/tool"
)

func (c *Console) toolList(r *request) (*answer, error) {
	list, err := c.DB.Tools(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	return show("Tools", toolList(list)), nil
}

func (c *Console) toolNew(r *request) (*answer, error) {
	t := &parley.Tool{}
	form.Defaults(t)
	t.Method = http.MethodPost
	t.Kind = toolKindOf(r.FormValue("kind"))
	return show(newTool(t.Kind), toolEditor(&toolForm{fields: fieldsOf[parley.Tool](treeOf(t), nil), kind: t.Kind})), nil
}

// newTool heads the page of a new tool.
func newTool(kind parley.ToolKind) string {
	switch kind {
	case parley.ToolMCP:
		return "New MCP server"
	case parley.ToolClient:
		return "New page tool"
	}
	return "New tool"
}

// toolKindOf is the kind of tool that a form names; http where it names none.
func toolKindOf(text any) parley.ToolKind {
	if text == string(parley.ToolMCP) || text == string(parley.ToolClient) {
		return parley.ToolKind(text.(string))
	}
	return parley.ToolHTTP
}

// toolForm is what the page of one tool shows. Values of headers that are stored stay on the server: the form names
// them by their place.
type toolForm struct {
	*fields
	id       int64 // 0: it is new
	kind     parley.ToolKind
	server   *parley.Tool // with its tools, of an MCP server; nil where it was never listed
	secret   bool         // it has one for OAuth
	name     string
	seen     parley.Time
	overtook bool

	params []parley.ToolParam // as they are stored
	own    bool               // it has a JSON Schema, which the parameters can't say
	notes  []string           // what vendors can't do with it
	trial  *toolTrial

	users, others []parley.Assistant // those that may use it, and those that may not
}

// toolTrial is what came of trying a tool with arguments that somebody typed.
type toolTrial struct {
	arguments map[string]string
	typed     string // the arguments of a tool with a JSON Schema
	tool      string // of an MCP server: which one was called
	result    tool.Result
	sent      *tool.Sent // nil: nothing was sent
}

// argument is what was typed for a parameter the last time.
func (t *toolForm) argument(name string) string {
	if t.trial == nil {
		return ""
	}
	return t.trial.arguments[name]
}

// typed are the arguments that were typed as JSON the last time.
func (t *toolForm) typed() string {
	if t.trial == nil {
		return "{}"
	}
	return t.trial.typed
}

// asksJSON says whether a trial's arguments are typed as JSON.
func (t *toolForm) asksJSON() bool { return t.own || t.kind == parley.ToolMCP }

// callable are the tools of an MCP server that can be tried.
func (t *toolForm) callable() (list []option) {
	for _, l := range t.serverList() {
		if len(l.Schema) > 0 {
			list = append(list, option{value: l.Name, label: l.Name})
		}
	}
	return list
}

// called is the tool of an MCP server that was tried the last time.
func (t *toolForm) called() string {
	if t.trial == nil {
		return ""
	}
	return t.trial.tool
}

// serverList are an MCP server's tools, and behind them what is chosen and not there any more.
func (t *toolForm) serverList() (list []parley.ListedTool) {
	if t.server != nil {
		list = slices.Clone(t.server.RemoteTools)
	}
	allowed, _ := t.get("allowed_tools").([]any)
	for _, a := range allowed {
		name, _ := a.(string)
		if name != "" && !slices.ContainsFunc(list, func(l parley.ListedTool) bool { return l.Name == name }) {
			list = append(list, parley.ListedTool{Name: name, Note: "The server has no such tool now."})
		}
	}
	return list
}

// boxes are the parameters that have a box of their own to try them.
func (t *toolForm) boxes() []parley.ToolParam {
	if t.asksJSON() {
		return nil
	}
	return t.params
}

// request is what was sent, as HTTP writes it.
func (t *toolTrial) request() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", t.sent.Method, t.sent.URL)
	for _, name := range t.sent.Headers {
		fmt.Fprintf(&b, "%s: ••••••••\n", name)
	}
	if t.sent.Body != "" {
		b.WriteString("\n" + indented(t.sent.Body))
	}
	return b.String()
}

// statusText is an HTTP status with its name.
func statusText(code int) string {
	return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
}

func (t *toolForm) path(more string) string {
	if t.id == 0 {
		return "/tools/new"
	}
	return "/tools/" + strconv.FormatInt(t.id, 10) + more
}

func (c *Console) toolCreate(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[parley.Tool]())
	keepOAuth(tree, nil)
	made, err := c.Assistants.CreateTool(r.Context(), r.UserID(), tree, r.who.Timezone())
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil && made.Kind == parley.ToolMCP:
		return see("/tools/"+strconv.FormatInt(made.ID, 10), "created"), nil
	case err == nil:
		return see("/tools", "created"), nil
	case !ok:
		return nil, err
	}
	kind := toolKindOf(tree["kind"])
	maskOAuth(tree)
	return invalid(newTool(kind), toolEditor(&toolForm{fields: fieldsOf[parley.Tool](tree, wrong), kind: kind})), nil
}

func (c *Console) toolEdit(r *request) (*answer, error) {
	t, err := c.DB.Tool(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	f := editTool(t, masked(t), nil)
	all, err := c.Assistants.All(r.Context(), r.UserID(), "")
	for _, a := range all {
		if slices.Contains(a.ToolIDs, t.ID) {
			f.users = append(f.users, a)
		} else {
			f.others = append(f.others, a)
		}
	}
	return show(t.Name, toolEditor(f)), err
}

func editTool(t *parley.Tool, tree map[string]any, wrong parley.Fields) *toolForm {
	shown := tool.Shown(t)
	f := &toolForm{fields: fieldsOf[parley.Tool](tree, wrong), id: t.ID, name: t.Name, seen: t.UpdatedAt, params: t.Schema,
		own: len(t.JSONSchema) > 0, notes: shown.SchemaNotes, kind: t.Kind, secret: t.OAuth != nil}
	if t.Listing != nil {
		f.server = shown
	}
	return f
}

// toolTry calls a tool as it is saved, with the arguments of the form: an empty box gives none.
func (c *Console) toolTry(r *request) (*answer, error) {
	t, err := c.DB.Tool(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	trial, given := &toolTrial{arguments: map[string]string{}}, map[string]any{}
	for _, p := range t.Schema {
		if text := r.PostFormValue("argument." + p.Name); text != "" && len(t.JSONSchema) == 0 {
			trial.arguments[p.Name], given[p.Name] = text, text
		}
	}
	if len(t.JSONSchema) > 0 || t.Kind == parley.ToolMCP {
		trial.typed, trial.tool = r.PostFormValue("arguments"), r.PostFormValue("tool")
		tree, ok := typedJSON(trial.typed).(map[string]any)
		if given = tree; !ok && strings.TrimSpace(trial.typed) != "" {
			trial.result = tool.Result{Error: "The arguments are no JSON object, such as {\"number\": 4711}: nothing was sent."}
			f := editTool(t, masked(t), nil)
			f.trial = trial
			return show(t.Name, toolEditor(f)), nil
		}
	}
	trial.result, trial.sent, err = c.Assistants.Try(r.Context(), r.UserID(), t.ID,
		assistant.Trial{Arguments: given, Tool: trial.tool, Timezone: r.who.Timezone()})
	if wrong, ok := fieldErrors(err); ok {
		trial.result, err = tool.Result{Error: wrong[0].Messages[0]}, nil
	}
	if err != nil {
		return nil, err
	}
	f := editTool(t, masked(t), nil)
	f.trial = trial
	return show(t.Name, toolEditor(f)), nil
}

// masked is the tree of a tool without the values of its headers: kept says which stored header each row is.
func masked(t *parley.Tool) map[string]any {
	tree := treeOf(t)
	headers, _ := tree["headers"].([]any)
	for i, h := range headers {
		h := h.(map[string]any)
		h["value"], h["kept"] = "", strconv.Itoa(i)
	}
	maskOAuth(tree)
	return tree
}

// unmask puts the stored values into the headers whose box was left empty. rows are the headers as the form sent them.
func unmask(r *request, tree map[string]any, stored []parley.ToolHeader) {
	headers, _ := tree["headers"].([]any)
	row := 0
	for _, i := range indexes(r.PostForm, "headers") {
		at := "headers." + strconv.Itoa(i)
		kept := r.PostFormValue(at + ".kept")
		if r.PostFormValue(at+".name") == "" && r.PostFormValue(at+".value") == "" {
			continue // decode left it out as well
		}
		h := headers[row].(map[string]any)
		row++
		if n, err := strconv.Atoi(kept); err == nil && n >= 0 && n < len(stored) && h["value"] == "" {
			h["value"], h["kept"] = stored[n].Value, kept
		}
	}
}

// oauthSecret is the field of an OAuth client's secret, which is written and never read back.
const oauthSecret = "client_secret"

// keepOAuth puts the stored secret in where its box was left empty, and has no OAuth where the client's was.
func keepOAuth(tree map[string]any, stored *parley.ToolOAuth) {
	oauth, ok := tree["oauth"].(map[string]any)
	switch {
	case !ok:
	case oauth["client_id"] == "" && oauth[oauthSecret] == "":
		tree["oauth"] = nil
	case oauth[oauthSecret] == "" && stored != nil:
		oauth[oauthSecret] = stored.Secret
	}
}

// hide takes the stored values out again before the form is shown with its errors.
func hide(tree map[string]any) map[string]any {
	headers, _ := tree["headers"].([]any)
	for _, h := range headers {
		if h := h.(map[string]any); h["kept"] != nil {
			h["value"] = ""
		}
	}
	maskOAuth(tree)
	return tree
}

// maskOAuth takes an OAuth client's secret out of a tree before it is shown.
func maskOAuth(tree map[string]any) {
	if oauth, ok := tree["oauth"].(map[string]any); ok {
		delete(oauth, oauthSecret)
	}
}

var errOvertaken = errors.New("somebody else has saved it meanwhile")

func (c *Console) toolSave(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[parley.Tool]())
	var old *parley.Tool
	overtook := false
	_, err := c.Assistants.ChangeTool(r.Context(), r.UserID(), r.id("id"), r.who.Timezone(), func(now parley.Tool) (map[string]any, error) {
		old = &now
		keepOAuth(tree, now.OAuth)
		unmask(r, tree, now.Headers)
		if overtook = r.PostFormValue("seen") != strconv.FormatInt(int64(now.UpdatedAt), 10); overtook {
			return nil, errOvertaken
		}
		return tree, nil
	})
	wrong, ok := fieldErrors(err)
	switch {
	case overtook:
		f := editTool(old, hide(tree), nil)
		f.overtook = true
		a := show(old.Name, toolEditor(f))
		a.status = http.StatusConflict
		return a, nil
	case err == nil:
		return see("/tools/"+r.PathValue("id"), "saved"), nil
	case !ok:
		return nil, err
	}
	return invalid(old.Name, toolEditor(editTool(old, hide(tree), wrong))), nil
}

// toolRelist lists the tools of an MCP server anew.
func (c *Console) toolRelist(r *request) (*answer, error) {
	_, err := c.Assistants.ListTool(r.Context(), r.UserID(), r.id("id"), assistant.Trial{Timezone: r.who.Timezone()})
	if err != nil {
		return nil, err
	}
	return see("/tools/" + r.PathValue("id") + "#server-tools"), nil
}

func (c *Console) toolDelete(r *request) (*answer, error) {
	if err := tool.Delete(r.Context(), c.DB, r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/tools", "deleted"), nil
}
