package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/api"
	"parley/internal/auth"
	"parley/internal/mcpserver"
	"parley/internal/parley"
	"parley/internal/store/storetest"
)

const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// The tools are as many as a model can keep apart, say what they do to the world, and take what they say.
func TestTools(t *testing.T) {
	h := open(t, nil)
	res, err := h.connect().ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(res.Tools); n < 25 || n > 35 || res.NextCursor != "" {
		t.Errorf("there are %d tools, want 25 to 35 on one page", n)
	}
	whole := 0
	for _, tool := range res.Tools {
		raw, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		whole += len(raw)
		a := tool.Annotations
		reads := false
		for _, begin := range []string{"list_", "get_", "check_", "compare_", "search_"} {
			reads = reads || strings.HasPrefix(tool.Name, begin)
		}
		destroys := strings.HasPrefix(tool.Name, "delete_") || tool.Name == "hang_up_call"
		if a.ReadOnlyHint != reads || a.DestructiveHint == nil || *a.DestructiveHint != destroys || a.OpenWorldHint == nil {
			t.Errorf("%s has the hints %+v", tool.Name, a)
		}
		if strings.Contains(string(raw), "$ref") || strings.Contains(string(raw), `"null"`) {
			t.Errorf("the schema of %s has references or null: %s", tool.Name, raw)
		}
		if tool.Title == "" || len(tool.Description) < 40 || len(raw) > 8<<10 {
			t.Errorf("%s: title %q, description %q, %d bytes", tool.Name, tool.Title, tool.Description, len(raw))
		}
	}
	if whole > 48<<10 {
		t.Errorf("the tools have %d bytes together", whole)
	}
}

// What a tool does is what the API does: the same rules, the same words, the same row in the audit log.
func TestSameRules(t *testing.T) {
	h := open(t, nil)
	made := h.must("create_assistant", object{"name": "Bakery", "system_prompt": "We open at 7 am."})
	id := made["id"]
	_, a := h.api("GET", fmt.Sprintf("/user/assistant/%v", id), nil)
	if a["name"] != "Bakery" || a["language"] != "en" || a["mode"] != "pipeline" || a["type"] != "inbound" ||
		a["status"] != "inactive" || a["timezone"] != "UTC" || a["voice_id"] == nil || a["llm_model_id"] == nil {
		t.Errorf("the assistant is %v", a)
	}
	german := h.must("create_assistant", object{"name": "Bäckerei", "system_prompt": "Hallo", "language": "de"})
	if german["language_id"] != 4.0 {
		t.Errorf("the German assistant is %v", german)
	}
	h.refused("create_assistant", object{"name": "x", "system_prompt": "y", "language": "xx"}, `"xx"`)
	// the API's own words, with the names that the tool has
	h.refused("create_tool", object{"name": "Bad Name"}, "(422)", "- endpoint: The endpoint field is required.", "- name: ")
	h.refused("get_assistant", object{"assistant_id": 99999}, "(404)", "Assistant not found")
	h.refused("get_assistant", object{}, "assistant_id is missing")
	h.refused("get_assistant", object{"assistant_id": "../../user/api-keys"}, "(404)")
	_, log := h.api("GET", "/user/audit", nil)
	seen := false
	for _, row := range log["data"].([]any) {
		r := row.(object)
		seen = seen || r["action"] == "created" && r["kind"] == "assistant" && strings.Contains(fmt.Sprint(r), "API key “test”")
	}
	if !seen {
		t.Errorf("the audit log is %v", log)
	}
}

// A draft is changed, compared and published; null clears a field.
func TestDraft(t *testing.T) {
	h := open(t, nil)
	id := h.must("create_assistant", object{"name": "Bakery", "system_prompt": "We open at 7 am.", "voice_mail_message": "Bye"})["id"]
	got := h.must("update_draft", object{"assistant_id": id, "system_prompt": "We open at 8 am.", "speech_speed": 1.1,
		"voice_mail_message": nil})
	if changed := fmt.Sprint(got["changed"]); changed != "[system_prompt speech_speed voice_mail_message]" {
		t.Errorf("the draft changes %s", changed)
	}
	if diff := fmt.Sprint(h.must("compare_draft", object{"assistant_id": id})); !strings.Contains(diff, "We open at 8 am.") {
		t.Errorf("the draft differs by %s", diff)
	}
	if live := h.must("get_assistant", object{"assistant_id": id}); live["system_prompt"] != "We open at 7 am." {
		t.Errorf("the live assistant is %v", live)
	}
	h.must("publish_draft", object{"assistant_id": id})
	live := h.must("get_assistant", object{"assistant_id": id})
	if live["system_prompt"] != "We open at 8 am." || live["voice_mail_message"] != nil {
		t.Errorf("the published assistant is %v", live)
	}
	h.refused("publish_draft", object{"assistant_id": id}, "(404)")
}

// Another account's things are not there, for any tool that names one.
func TestTenants(t *testing.T) {
	h := open(t, nil)
	id := h.must("create_assistant", object{"name": "Secret", "system_prompt": "hidden words"})["id"]
	kb := h.must("create_knowledgebase", object{"name": "Secret"})["id"]
	stranger := h.with(h.key(storetest.User(t, h.db, 0), ""))
	for name, args := range map[string]object{
		"get_assistant": {"assistant_id": id}, "update_draft": {"assistant_id": id, "name": "x"}, "delete_assistant": {"assistant_id": id},
		"list_versions": {"assistant_id": id}, "create_test": {"assistant_id": id, "script": "name: x\nsteps:\n  - say: hi\n"},
		"run_tests": {"assistant_id": id}, "search_knowledgebase": {"knowledgebase_id": kb, "query": "x"},
		"list_documents": {"knowledgebase_id": kb},
		"make_call":      {"assistant_id": id, "phone_number": "+12025550123"}} {
		if text := stranger.refused(name, args, "failed (4"); strings.Contains(text, "hidden") || strings.Contains(text, "Secret") {
			t.Errorf("%s tells %q", name, text)
		}
	}
	if got := stranger.must("list_assistants", nil); got["total"] != 0.0 {
		t.Errorf("a stranger sees %v", got)
	}
	if got := h.must("get_assistant", object{"assistant_id": id}); got["name"] != "Secret" {
		t.Errorf("the assistant is now %v", got)
	}
}

// A key that is limited to a role may do no more here.
func TestRoles(t *testing.T) {
	h := open(t, nil)
	id := h.must("create_assistant", object{"name": "Bakery", "system_prompt": "x"})["id"]
	viewer := h.with(h.key(h.user, parley.RoleViewer))
	if got := viewer.must("get_assistant", object{"assistant_id": id}); got["name"] != "Bakery" {
		t.Errorf("a viewer reads %v", got)
	}
	for name, args := range map[string]object{"create_assistant": {"name": "x", "system_prompt": "y"},
		"delete_assistant": {"assistant_id": id},
		"update_draft":     {"assistant_id": id, "name": "x"}, "list_tools": nil} {
		viewer.refused(name, args, "(403)", "role")
	}
}

// A repeated call with the same idempotency key does nothing again; the same key with other arguments is refused.
func TestIdempotency(t *testing.T) {
	h := open(t, nil)
	id := h.must("create_assistant", object{"name": "Bakery", "system_prompt": "x"})["id"]
	h.must("create_test", object{"assistant_id": id, "script": "name: x\nchannel: chat\nsteps:\n  - say: hi\n"})
	run := object{"assistant_id": id, "wait_seconds": 0, "idempotency_key": "once"}
	first, again := h.must("run_tests", run), h.must("run_tests", run)
	if first["id"] == nil || first["id"] != again["id"] {
		t.Errorf("the runs are %v and %v", first, again)
	}
	run["draft"] = true
	h.refused("run_tests", run, "(409)", "Idempotency-Key")
}

// Requests are counted: those to /mcp, and what tools ask for.
func TestRate(t *testing.T) {
	h := open(t, func(c *api.Config, _ *mcpserver.Config) { c.Rates.API = auth.Rate{PerSecond: 0.001, Burst: 3} })
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_assistants","arguments":{}}}`
	if status, _, text := h.post(body); status != 200 || !strings.Contains(text, `total`) {
		t.Errorf("the first is answered %d %s", status, text)
	}
	status, _, text := h.post(body)
	if status != 200 || !strings.Contains(text, `"isError":true`) ||
		!strings.Contains(text, "Too Many Attempts. Try again in ") {
		t.Errorf("the second is answered %d %s", status, text)
	}
	status, header, text := h.post(body)
	if status != 429 || header.Get("Retry-After") == "" {
		t.Errorf("the third is answered %d %v %s", status, header, text)
	}
}

// Who may not ask is told so before anything is read of what they sent.
func TestDoor(t *testing.T) {
	h := open(t, nil)
	port := h.url[strings.LastIndexByte(h.url, ':'):]
	for _, c := range []struct {
		name    string
		status  int
		headers []string
	}{
		{"a key", 200, nil},
		{"no key", 401, []string{"Authorization", ""}},
		{"another's key", 401, []string{"Authorization", "Bearer 1|" + strings.Repeat("x", 43)}},
		{"a page of another origin", 403, []string{"Origin", "https://evil.example"}},
		{"a page without an origin", 403, []string{"Origin", "null"}},
		{"a page of this machine", 200, []string{"Origin", h.url}},
		{"a page of another port of this machine", 403, []string{"Origin", "http://127.0.0.1:1"}},
		{"a page whose name leads here", 403, []string{"Origin", "http://evil.example" + port, "Host", "evil.example" + port}},
		{"a name that leads here", 403, []string{"Host", "evil.example"}},
		{"a proxy on this machine", 200, []string{"Host", "voice.example.com", "X-Forwarded-For", "192.0.2.1"}},
		{"a version that nobody has", 400, []string{"MCP-Protocol-Version", "1999-01-01"}},
		{"another type", 415, []string{"Content-Type", "text/plain"}},
	} {
		if status, header, text := h.post(list, c.headers...); status != c.status {
			t.Errorf("%s is answered %d %s", c.name, status, text)
		} else if status == 401 && !strings.HasPrefix(header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s is told %v", c.name, header)
		}
	}
	long := strings.Replace(list, "1,", "1,"+strings.Repeat(" ", 1<<20), 1)
	if status, _, text := h.post(long); status != 413 {
		t.Errorf("a body of more than a megabyte is answered %d %.100s", status, text)
	}
	if status, _, text := h.post("\n[" + list + "]"); status != 400 || !strings.Contains(text, "one message") {
		t.Errorf("a batch is answered %d %.100s", status, text)
	}
	if status, _, text := h.post("\n" + list); status != 200 {
		t.Errorf("a message after an empty line is answered %d %.100s", status, text)
	}
	init := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	if status, _, text := h.post(init); status != 200 || strings.Contains(text, "listChanged") {
		t.Errorf("it promises to tell of changes: %d %s", status, text)
	}
	for _, arguments := range []string{"null", "{}"} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_assistants","arguments":` + arguments + `}}`
		if _, _, text := h.post(body); !strings.Contains(text, "total") {
			t.Errorf("arguments %s: %s", arguments, text)
		}
	}
	for _, id := range []string{"..", "."} {
		h.refused("delete_assistant", object{"assistant_id": id}, "is no id")
	}
}

// A public address is believed as an origin, and no other.
func TestPublicOrigin(t *testing.T) {
	h := open(t, func(c *api.Config, _ *mcpserver.Config) { c.Front.PublicURL = "https://voice.example.com" })
	for origin, want := range map[string]int{"https://voice.example.com": 200, "http://voice.example.com": 403,
		"https://voice.example.com.evil.example": 403} {
		if status, _, text := h.post(list, "Origin", origin, "Host", "voice.example.com"); status != want {
			t.Errorf("%s is answered %d %s", origin, status, text)
		}
	}
}

// A panic in one request is that request's failure.
func TestPanic(t *testing.T) {
	h := open(t, func(c *api.Config, _ *mcpserver.Config) { c.Exams = nil })
	id := h.must("create_assistant", object{"name": "Bakery", "system_prompt": "x"})["id"]
	h.refused("create_test", object{"assistant_id": id, "script": "name: x\nsteps:\n  - say: hi\n"}, "(500)")
	if got := h.must("list_assistants", nil); got["total"] != 1.0 {
		t.Errorf("then there are %v", got)
	}
}

// Lists say how to go on; long texts are cut, and can be read on to their end.
func TestShape(t *testing.T) {
	h := open(t, nil)
	prompt := strings.Repeat("Öffnungszeiten: ", 6000)[:97000]
	for len(prompt) > 0 && !utf8.ValidString(prompt) {
		prompt = prompt[:len(prompt)-1]
	}
	prompt = strings.TrimSpace(prompt)
	id := h.must("create_assistant", object{"name": "Long", "system_prompt": prompt})["id"]
	for range 3 {
		h.must("create_assistant", object{"name": "Short", "system_prompt": "x"})
	}
	page := h.must("list_assistants", object{"per_page": 3})
	items := page["items"].([]any)
	if len(items) != 3 || page["next_page"] != 2.0 || page["total"] != 4.0 || items[0].(object)["system_prompt"] != nil {
		t.Errorf("the first page is %v", page)
	}
	page = h.must("list_assistants", object{"per_page": 3, "page": 2})
	if items := page["items"].([]any); len(items) != 1 || page["next_page"] != nil {
		t.Errorf("the second page is %v", page)
	}
	text, _ := h.tool("get_assistant", object{"assistant_id": id})
	if len(text) > 20<<10 || !strings.Contains(text, fmt.Sprintf("of %d characters", utf8.RuneCountInString(prompt))) {
		t.Errorf("the assistant has %d bytes: %.300s", len(text), text)
	}
	var whole strings.Builder
	for offset := any(0); offset != nil; {
		part := h.must("get_assistant", object{"assistant_id": id, "field": "system_prompt", "offset": offset})
		whole.WriteString(part["text"].(string))
		offset = part["next_offset"]
	}
	if whole.String() != prompt {
		t.Errorf("the prompt was read as %d bytes of %d", whole.Len(), len(prompt))
	}
	for n := range 5 {
		h.must("create_test", object{"assistant_id": id,
			"script": fmt.Sprintf("name: test %d\nchannel: chat\nsteps:\n  - say: %s\n", n, strings.Repeat("words ", 1200))})
	}
	if text, _ := h.tool("list_tests", object{"assistant_id": id}); len(text) > 20<<10 || !json.Valid([]byte(text)) ||
		!strings.Contains(text, "[cut: ") {
		t.Errorf("five long tests have %d bytes: %.300s", len(text), text)
	}
	h.refused("get_assistant", object{"assistant_id": id, "field": "nothing"}, "no field", "system_prompt")
}

// Prompts are filled in with what a person said; what they left out is left out.
func TestPrompts(t *testing.T) {
	s := open(t, nil).connect()
	get := func(args map[string]string) string {
		t.Helper()
		got, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "make_assistant", Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return got.Messages[0].Content.(*sdk.TextContent).Text
	}
	short := get(map[string]string{"business": "A bakery, {{website}}"})
	if strings.Contains(short, "make_call") || strings.Contains(short, "add_web_page") ||
		!strings.Contains(short, "My business: A bakery, {{website}}\n") || !strings.Contains(short, "\n1. Write its system prompt") {
		t.Errorf("without a website and a number it is:\n%s", short)
	}
	long := get(map[string]string{"business": "A bakery", "website": "https://bakery.example", "phone_number": "+12025550123"})
	if !strings.Contains(long, "read https://bakery.example into it") || !strings.Contains(long, "Call me at +12025550123") ||
		!strings.Contains(long, "\n8. Call me") || strings.Contains(long, "#. ") {
		t.Errorf("with both it is:\n%s", long)
	}
	for _, args := range []map[string]string{{}, {"business": "  "}, {"business": strings.Repeat("x", 21<<10)}} {
		if got, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "make_assistant", Arguments: args}); err == nil {
			t.Errorf("the prompt is %v", got)
		}
	}
	list, err := s.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, tool := range res.Tools {
		named[tool.Name] = true
	}
	for _, p := range list.Prompts {
		args := map[string]string{}
		for _, a := range p.Arguments {
			args[a.Name] = "x"
		}
		got, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: p.Name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range regexp.MustCompile(`[a-z]+(?:_[a-z]+)+`).FindAllString(got.Messages[0].Content.(*sdk.TextContent).Text, -1) {
			if word != "phone_number_id" && !named[word] {
				t.Errorf("the prompt %s names the tool %s, which there is not", p.Name, word)
			}
		}
	}
}

// The account's things, and the guide, are resources; another account's are not there.
func TestResources(t *testing.T) {
	h := open(t, nil)
	id := h.must("create_assistant", object{"name": "Bakery", "system_prompt": "hidden words"})["id"]
	own, stranger := h.connect(), h.with(h.key(storetest.User(t, h.db, 0), "")).connect()
	uri := fmt.Sprintf("parley://assistants/%v", id)
	listed := func(s *sdk.ClientSession) (pages int, mine bool) {
		t.Helper()
		list, err := s.ListResources(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.Resources {
			if strings.HasPrefix(r.URI, "parley://docs/") {
				pages++
			}
			mine = mine || r.URI == uri
		}
		return pages, mine
	}
	if pages, mine := listed(own); pages < 20 || !mine {
		t.Errorf("the account has %d pages listed, and its assistant: %v", pages, mine)
	}
	if pages, mine := listed(stranger); pages < 20 || mine {
		t.Errorf("a stranger has %d pages listed, and another's assistant: %v", pages, mine)
	}
	got, err := own.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
	if err != nil || !strings.Contains(got.Contents[0].Text, `"system_prompt":"hidden words"`) {
		t.Errorf("the assistant is %v %v", got, err)
	}
	for _, page := range []string{"tools", "guide/assistant", "reference/sip"} {
		got, err = own.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "parley://docs/" + page})
		if err != nil || !strings.HasPrefix(got.Contents[0].Text, "# ") {
			t.Errorf("the page %s is %v %v", page, got, err)
		}
	}
	for _, other := range []string{uri, "parley://calls/1/transcript", "parley://docs/none", "parley://assistants/..%2F..%2Fme"} {
		if got, err := stranger.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: other}); err == nil {
			t.Errorf("a stranger reads %s: %v", other, got.Contents[0])
		}
	}
	list, err := own.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(list.ResourceTemplates) != 3 {
		t.Errorf("the templates are %v %v", list, err)
	}
}

var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (.+) \\| `[A-Za-z]+` \\| (yes|no|removes) \\|$")

// The guide's table has every tool, and what it does to the world.
func TestGuide(t *testing.T) {
	h := open(t, nil)
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		told[m[1]] = m[2] + ", " + m[3]
	}
	res, err := h.connect().ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	is := map[string]string{}
	for _, tool := range res.Tools {
		changes := "yes"
		switch a := tool.Annotations; {
		case a.ReadOnlyHint:
			changes = "no"
		case *a.DestructiveHint:
			changes = "removes"
		}
		is[tool.Name] = tool.Title + ", " + changes
	}
	if diff := cmp.Diff(is, told); diff != "" {
		t.Errorf("docs/mcp.md differs from the tools:\n%s", diff)
	}
}

// An argument is one part of a path, whatever is in it.
func TestPathIsEscaped(t *testing.T) {
	h := open(t, nil)
	id := h.must("create_assistant", object{"name": "Bakery", "system_prompt": "x"})["id"]
	h.refused("get_assistant", object{"assistant_id": fmt.Sprintf("%v?x=1", id)}, "(404)")
	h.refused("get_assistant", object{"assistant_id": fmt.Sprintf("%v/versions", id)}, "(404)")
	h.refused("get_conversation", object{"conversation_id": fmt.Sprintf("../assistant/%v", id)}, "(404)")
}

// A panic outside the API's handlers is that request's failure, too.
func TestPanicOutside(t *testing.T) {
	free := mcpserver.Fills["free"]
	defer func() { mcpserver.Fills["free"] = free }()
	mcpserver.Fills["free"] = func(context.Context, *mcpserver.Server, map[string]any) error { panic("oops") }
	h := open(t, nil)
	_, err := h.connect().CallTool(t.Context(), &sdk.CallToolParams{Name: "start_conversation", Arguments: object{"assistant_id": "x"}})
	if err == nil || !strings.Contains(err.Error(), "internal error; quote the request id ") || strings.Contains(err.Error(), "oops") {
		t.Errorf("the error is %v", err)
	}
	if got := h.must("list_assistants", nil); got["total"] != 0.0 {
		t.Errorf("then there are %v", got)
	}
}

// An app's access token counts here, with the role that it was given, and nowhere else; who has none is told where to ask for one.
func TestAppToken(t *testing.T) {
	h := open(t, nil)
	id := h.must("create_assistant", object{"name": "Bakery", "system_prompt": "x"})["id"]
	_, header, _ := h.post(list, "Authorization", "")
	if got, want := header.Get("WWW-Authenticate"), `Bearer resource_metadata="`+h.url+
		`/.well-known/oauth-protected-resource/mcp"`; got != want {
		t.Errorf("without a token one is told %s, want %s", got, want)
	}
	code, err := h.authority.GrantCode(t.Context(), &auth.Who{User: h.user, Key: &parley.Key{Kind: parley.Console}}, parley.RoleViewer,
		"Claude", "to")
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.authority.ExchangeCode(t.Context(), code, "to", "app")
	if err != nil {
		t.Fatal(err)
	}
	app := h.with(got.Access)
	if a := app.must("get_assistant", object{"assistant_id": id}); a["name"] != "Bakery" {
		t.Errorf("the app reads %v", a)
	}
	app.refused("delete_assistant", object{"assistant_id": id}, "(403)")
	if status, _ := app.api("GET", "/user/me", nil); status != 401 {
		t.Errorf("the API answers the app %d", status)
	}
	for _, token := range []string{got.Refresh, code} {
		if status, _, _ := h.post(list, "Authorization", "Bearer "+token); status != 401 {
			t.Errorf("a token of another kind is answered %d", status)
		}
	}
}
