package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// bakery is a business's website, and the server behind its tool.
func bakery(t *testing.T) string {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>Bakery</title><main><h1>Bakery on Market Street</h1>
<p>We are open on Saturdays from 7 am to 6 pm, and closed on Sundays.</p><p>A loaf of sourdough costs 6 dollars.</p></main></html>`))
	})
	mux.HandleFunc("POST /book", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(`{"ok":true}`)) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// modelClient is a client of the program's MCP server, by its own bridge.
func (p *program) modelClient(t *testing.T) *sdk.ClientSession {
	t.Helper()
	cmd := exec.Command(binary, "mcp")
	cmd.Env = append(os.Environ(), "PARLEY_SERVER="+p.URL, "PARLEY_KEY="+p.Key)
	cmd.Stderr = p.log
	s, err := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("parley mcp ended with %v", err)
		}
	})
	return s
}

// An assistant is made from a web page, given a tool, tested by a simulated caller, published, and calls: in at most twelve calls of tools.
func TestMCPServerStory(t *testing.T) {
	share(t, recognizer)
	need(t, "flite", "pocketsphinx_batch")
	l := telephone(t, "PARLEY_EGRESS_ALLOW=127.0.0.0/8")
	l.purchase(t)
	site, s, calls := bakery(t), l.modelClient(t), 0
	type args = map[string]any
	call := func(name string, a args) (out map[string]any) {
		t.Helper()
		calls++
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: a})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := res.Content[0].(*sdk.TextContent).Text
		if err := json.Unmarshal([]byte(text), &out); err != nil || res.IsError {
			t.Fatalf("%s: %s", name, text)
		}
		t.Logf("%2d %s: %.300s", calls, name, text)
		return out
	}
	kb := call("create_knowledgebase", args{"name": "Website"})["id"]
	page := call("add_web_page", args{"knowledgebase_id": kb, "name": "Website", "url": site, "relative_links_limit": 1})
	if page["status"] != "active" {
		t.Fatalf("the page is %v", page)
	}
	tool := call("create_tool", args{"name": "book_table", "description": "Books a table.", "endpoint": site + "/book", "method": "POST",
		"schema": []any{args{"name": "party", "type": "number", "description": "How many people"}}})["id"]
	numbers := call("list_phone_numbers", nil)["items"].([]any)
	id := call("create_assistant", args{"name": "Bakery", "type": "outbound", "system_prompt": "You answer for a bakery.",
		"knowledgebase_id": kb, "tool_ids": []any{tool},
		"phone_number_id": numbers[0].(map[string]any)["id"], "initial_message": "Hello, this is the bakery.",
		"max_duration": 20})["id"]
	call("create_test", args{"assistant_id": id,
		"script": "name: opening hours\nchannel: chat\nsteps:\n  - say: When are you open on Saturdays?\n  - expect: {says: 7 am}\n"})
	call("update_draft", args{"assistant_id": id, "status": "active", "record": true})
	if run := call("run_tests", args{"assistant_id": id, "draft": true}); run["status"] != "finished" || run["passed"] != 1.0 {
		t.Errorf("the run is %v", run)
	}
	call("publish_draft", args{"assistant_id": id})
	made := call("make_call", args{"assistant_id": id, "phone_number": "+12025550123", "idempotency_key": "the call"})
	done := call("get_call", args{"call_id": made["call_id"], "wait_seconds": 50})
	if done["status"] != "completed" || !strings.Contains(done["transcript"].(string), "Hello, this is the bakery.") {
		t.Errorf("the call is %v", done)
	}
	if calls > 12 {
		t.Errorf("that took %d calls", calls)
	}
}

// withKey leads to the program, with its key: for programs that can't be given one.
func (p *program) withKey(t *testing.T) string {
	to, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = strings.Replace(r.In.Host, r.In.Host[strings.LastIndexByte(r.In.Host, ':')+1:], to.Port(), 1)
		if origin := r.In.Header.Get("Origin"); origin != "" {
			r.Out.Header.Set("Origin", strings.Replace(origin, "://"+r.In.Host, "://"+r.Out.Host, 1))
		}
		r.Out.Header.Set("Authorization", "Bearer "+p.Key)
	}})
	t.Cleanup(s.Close)
	return s.URL + "/mcp"
}

// The conformance runner of the protocol's makers finds nothing wrong with the server.
func TestMCPServerConformance(t *testing.T) {
	share(t, compiler)
	node, scope := mcpServers(t)
	shim, err := filepath.Abs("testdata/mcp/glob.mjs")
	if err != nil {
		t.Fatal(err)
	}
	known, err := filepath.Abs("testdata/mcp/conformance.yml")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, "PARLEY_SIP_LISTEN=off")
	cmd := exec.CommandContext(t.Context(), node, "--import", shim, filepath.Join(scope, "conformance/dist/index.js"), "server",
		"--url", p.withKey(t), "--expected-failures", known)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	_, summary, _ := strings.Cut(string(out), "=== SUMMARY ===")
	if err != nil {
		t.Errorf("the runner: %v\n%s", err, out)
	}
	for _, name := range []string{"server-initialize", "ping", "logging-set-level", "tools-list", "resources-list", "prompts-list",
		"dns-rebinding-protection"} {
		if !strings.Contains(summary, "✓ "+name+": ") {
			t.Errorf("%s did not pass:\n%s", name, summary)
		}
	}
}

// The inspector's command line lists and calls.
func TestMCPServerInspector(t *testing.T) {
	share(t, compiler)
	node, scope := mcpServers(t)
	p := start(t, "PARLEY_SIP_LISTEN=off")
	inspect := func(args ...string) (out struct {
		Tools     []struct{ Name string }
		Prompts   []struct{ Name string }
		Resources []struct{ URI string }
		Contents  []struct{ Text string }
		Messages  []struct{ Content struct{ Text string } }
		Content   []struct{ Text string }
	}) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, append([]string{filepath.Join(scope, "inspector/clients/launcher/build/index.js"), "--cli",
			p.URL + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + p.Key, "--method"}, args...)...)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "HOME="+cmd.Dir)
		var failed strings.Builder
		cmd.Stderr = &failed
		said, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(said, &out)
		}
		if err != nil {
			t.Fatalf("%q: %v\n%s%s", args, err, said, failed.String())
		}
		return out
	}
	if list := inspect("tools/list").Tools; len(list) < 25 || len(list) > 35 {
		t.Errorf("there are %d tools", len(list))
	}
	if got := inspect("tools/call", "--tool-name", "list_assistants").Content; len(got) != 1 || !strings.Contains(got[0].Text, "Front desk") {
		t.Errorf("list_assistants is answered %v", got)
	}
	if list := inspect("prompts/list").Prompts; len(list) < 3 {
		t.Errorf("there are the prompts %v", list)
	}
	if got := inspect("prompts/get", "--prompt-name", "make_assistant", "--prompt-args", "business=A bakery").Messages; len(got) != 1 ||
		!strings.Contains(got[0].Content.Text, "My business: A bakery") {
		t.Errorf("the prompt is %v", got)
	}
	mine := false
	for _, r := range inspect("resources/list").Resources {
		mine = mine || r.URI == "parley://assistants/1"
	}
	if !mine {
		t.Error("the first assistant is not among the resources")
	}
	got := inspect("resources/read", "--uri", "parley://docs/testing").Contents
	if len(got) != 1 || !strings.HasPrefix(got[0].Text, "# Testing assistants") {
		t.Errorf("the page is %.200v", got)
	}
}
