package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/egress"
	"parley/internal/tool"
)

// An MCP server is made, its tools are shown and chosen, one is tried, and its secrets stay on the server.
func TestServerPage(t *testing.T) {
	srv := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	type order struct {
		Number int `json:"number"`
	}
	add := func(name string, reads bool) {
		sdk.AddTool(srv, &sdk.Tool{Name: name, Description: "It does " + name + ".", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: reads}},
			func(_ context.Context, _ *sdk.CallToolRequest, _ order) (*sdk.CallToolResult, any, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done by " + name}}}, nil, nil
			})
	}
	add("look_up", true)
	add("cancel", false)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, nil)
	down := false
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down || r.Header.Get("X-Key") != secret {
			http.Error(w, "no", http.StatusBadGateway)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(far.Close)
	guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
	t.Cleanup(guard.Close)
	h := open(t, func(c *Config) { c.Assistants.Tools = tool.New(guard) })
	u := h.user(t)
	v := h.signedIn(t, u)
	form := v.get("/tools/new?kind=mcp").says("New MCP server").form("/tools/new")
	for name, text := range map[string]string{"name": "shop", "description": "Orders.", "endpoint": far.URL, "headers.0.name": "X-Key",
		"headers.0.value": secret, "oauth.client_secret": "hush-hush"} {
		form.Set(name, text)
	}
	v.post("/tools/new", form).is(http.StatusUnprocessableEntity).says("OAuth client id")
	form.Set("oauth.client_secret", "")
	v.post("/tools/new", form)
	list, err := h.DB.Tools(t.Context(), u.ID)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	path := "/tools/" + id(list[0].ID)
	page := v.get(path).says("read-only").says("may change or delete").says("It does cancel.")
	if strings.Contains(page.body, secret) {
		t.Error("the page holds a header's value")
	}
	form = page.form(path)
	form["allowed_tools"] = []string{"look_up", "gone"}
	v.post(path, form)
	if got, err := h.DB.Tool(t.Context(), u.ID, list[0].ID); err != nil || strings.Join(got.Allowed, " ") != "look_up gone" ||
		got.Headers[0].Value != secret {
		t.Errorf("%+v %v", got, err)
	}
	page = v.get(path).says("It is not among the allowed tools.").says("The server has no such tool now.")
	form = page.form(path + "/try")
	form.Set("tool", "look_up")
	form.Set("arguments", `{"number": 7}`)
	r := v.post(path+"/try", form).is(http.StatusOK)
	if told := r.doc().Find("[data-told]").Text(); told != "done by look_up" {
		t.Errorf("the model is told %q", told)
	}
	down = true
	v.post(path+"/list", page.form(path+"/list"))
	v.get(path).says("The server could not be listed: the server answers with HTTP status 502 Bad Gateway.").says("It does cancel.")
	other := h.signedIn(t, h.user(t))
	other.post(path+"/list", page.form(path+"/list")).is(http.StatusNotFound)
}
