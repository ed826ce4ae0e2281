package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/parley"
)

// served is an MCP server with tools that all answer the same.
func served(t *testing.T, result *sdk.CallToolResult, tools ...*sdk.Tool) *parley.Tool {
	t.Helper()
	srv := sdk.NewServer(&sdk.Implementation{Name: "x", Version: "1"}, nil)
	for _, one := range tools {
		srv.AddTool(one, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return result, nil })
	}
	far := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, nil))
	t.Cleanup(far.Close)
	return &parley.Tool{Kind: parley.ToolMCP, Name: "shop", Endpoint: far.URL, Timeout: 30}
}

func schemaOf(text string) json.RawMessage { return json.RawMessage(text) }

// What a model gets of a server is bounded, chosen, and judged.
func TestOffered(t *testing.T) {
	r := runner(t)
	tools := []*sdk.Tool{
		{Name: "either", InputSchema: schemaOf(`{"type":"object","anyOf":[{"required":["a"]}],"properties":{"a":{"type":"string"}}}`)},
		{Name: "elsewhere", InputSchema: schemaOf(`{"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}`)},
		{Name: "large", Description: strings.Repeat("x", 5000), InputSchema: schemaOf(`{"type":"object"}`)},
	}
	for i := range 70 {
		tools = append(tools, &sdk.Tool{Name: fmt.Sprintf("small%02d", i), InputSchema: schemaOf(`{"type":"object"}`)})
	}
	shop := served(t, nil, tools...)
	shop.Listing = r.List(t.Context(), shop, Variables{})
	if shop.Listing.Error != "" {
		t.Fatal(shop.Listing.Error)
	}
	given, of := 0, map[string]parley.ListedTool{}
	for _, l := range Offered(shop) {
		of[l.Name] = l
		if l.Given {
			given++
		}
	}
	if given != 64 || !strings.Contains(of["small69"].Note, "at most 64 tools") {
		t.Errorf("%d are given; the last: %q", given, of["small69"].Note)
	}
	if e := of["either"]; !e.Given || strings.Contains(string(e.Schema), "anyOf") {
		t.Errorf("either: %+v", e)
	}
	if e := of["elsewhere"]; e.Given || !strings.Contains(e.Note, "The schema of its arguments") || len(e.Schema) != 0 {
		t.Errorf("elsewhere: %+v", e)
	}
	if n := len(of["large"].Description); n != 4096 {
		t.Errorf("a description of %d bytes", n)
	}
	shop.Allowed = []string{"small69"}
	for _, l := range Offered(shop) {
		if l.Given != (l.Name == "small69") {
			t.Errorf("of those allowed: %+v", l)
		}
	}
}

// A long answer is cut where the model is told so, and a failure is one in the record.
func TestListedResult(t *testing.T) {
	list, _ := json.Marshal(map[string]any{"orders": strings.Split(strings.Repeat("an order of tea,", 8000), ",")})
	for name, c := range map[string]struct {
		text   string
		failed bool
		starts string
		least  int
	}{
		"short": {text: "fine", starts: "fine"},
		"empty": {starts: "The tool succeeded with HTTP status 200 OK and an empty answer."},
		"long": {text: strings.Repeat("tea ", 30_000), starts: "Only the beginning of the tool's answer follows; it is longer than can be read.",
			least: 60 << 10},
		"long JSON":    {text: string(list), starts: "The tool's answer is longer than can be read: of long lists", least: 500},
		"failed":       {text: "no tea", failed: true, starts: "The tool failed: no tea"},
		"failed twice": {failed: true, starts: "The tool failed and doesn't say why."},
		"failed long": {text: strings.Repeat("tea ", 30_000), failed: true,
			starts: "The tool failed; only the beginning of what it says follows.", least: 60 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			r := runner(t)
			shop := served(t, &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: c.text}}, IsError: c.failed},
				&sdk.Tool{Name: "x", InputSchema: schemaOf(`{"type":"object"}`)})
			shop.Listing = r.List(t.Context(), shop, Variables{})
			got := r.RunListed(t.Context(), shop, Offered(shop)[0], "a", nil, Variables{}).Text()
			if !strings.HasPrefix(got, c.starts) || len(got) > MaxAnswer || len(got) < c.least {
				t.Errorf("%d bytes: %.200s", len(got), got)
			}
			if f := (parley.FunctionCall{Result: got}); f.Failed() != c.failed {
				t.Errorf("failed %v", f.Failed())
			}
		})
	}
}

// A server that does not answer in time is told with the time that it had; the list of before stays.
func TestSlowServer(t *testing.T) {
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else it is not seen that the client is gone
		<-r.Context().Done()
	}))
	defer far.Close()
	r := runner(t)
	shop := &parley.Tool{Kind: parley.ToolMCP, Name: "shop", Endpoint: far.URL, Timeout: 1,
		Listing: &parley.ToolListing{Tools: []parley.ListedTool{{Name: "x", Schema: parley.JSONSchema(`{"type":"object"}`)}}, ListedAt: 7}}
	l := r.List(t.Context(), shop, Variables{})
	if l.Error != "no whole answer came within 1 s." || len(l.Tools) != 1 || l.ListedAt != 7 {
		t.Errorf("listing %+v", l)
	}
	if got := r.RunListed(t.Context(), shop, shop.Listing.Tools[0], "a", nil, Variables{}).
		Text(); got != "The tool failed: no whole answer came within 1 s." {
		t.Errorf("told %q", got)
	}
}

// A server is listed once at a time in the background, and all who asked are told.
func TestBackground(t *testing.T) {
	r := runner(t)
	began, goOn := make(chan struct{}), make(chan struct{})
	var told sync.WaitGroup
	told.Add(2)
	times := 0
	list := func(context.Context) *parley.ToolListing {
		times++
		close(began)
		<-goOn
		return &parley.ToolListing{Error: "x"}
	}
	tell := func(l *parley.ToolListing) {
		if l.Error != "x" {
			t.Errorf("told %+v", l)
		}
		told.Done()
	}
	r.Background(1, list, tell)
	<-began
	r.Background(1, list, tell)
	close(goOn)
	told.Wait()
	if times != 1 {
		t.Errorf("listed %d times", times)
	}
}
