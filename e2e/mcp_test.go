package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/parley"
	needs "parley/internal/testenv"
)

// mcpServers is where scripts/setup installs the servers of the protocol's makers, and the Node.js that runs them, pinned: Debian 12's
// own is too old for them.
func mcpServers(t *testing.T) (node, scope string) {
	t.Helper()
	modules, err := filepath.Abs("../.cache/mcp/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	scope = filepath.Join(modules, "@modelcontextprotocol")
	_, err = os.Stat(filepath.Join(scope, "server-memory"))
	needs.Nil(t, err)
	found, err := filepath.Glob(filepath.Join(modules, "node-linux-*/bin/node")) // npm takes that of this machine's processor alone
	if err != nil || len(found) != 1 {
		t.Fatalf("%q: %v", found, err)
	}
	return found[0], scope
}

// everything starts server-everything, which speaks streamable HTTP itself, and returns its URL.
func everything(t *testing.T) string {
	node, scope := mcpServers(t)
	port := needs.Ports(t, 1)
	guard, err := filepath.Abs("testdata/mcp/loopback.cjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "--require", guard, filepath.Join(scope, "server-everything/dist/index.js"),
		"streamableHttp")
	cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if strings.Contains(lines.Text(), "listening on port") {
				close(ready)
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-over
		_ = cmd.Wait()
	})
	select {
	case <-ready:
	case <-over:
		t.Fatal("server-everything did not start")
	}
	return fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
}

// bridge lets the tools of a server that speaks on its standard input and output be called over HTTP.
func bridge(t *testing.T, env []string, script string, args ...string) string {
	t.Helper()
	node, scope := mcpServers(t)
	cmd := exec.Command(node, append([]string{filepath.Join(scope, script, "dist/index.js")}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	far, err := sdk.NewClient(&sdk.Implementation{Name: "bridge", Version: "1"}, nil).
		Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	list, err := far.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	near := sdk.NewServer(&sdk.Implementation{Name: script, Version: "1"}, nil)
	for _, tool := range list.Tools {
		near.AddTool(tool, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return far.CallTool(ctx, &sdk.CallToolParams{Name: req.Params.Name, Arguments: req.Params.Arguments})
		})
	}
	s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return near }, nil))
	t.Cleanup(s.Close)
	return s.URL
}

// listedServer makes a tool of an MCP server and returns its id and what the model gets of it.
func (p *program) listedServer(t *testing.T, name, url string) (id int64, tools []string) {
	t.Helper()
	var made struct {
		Message string
		Data    struct {
			ID     int64
			Remote []struct {
				Name, Note string
				Given      bool
			} `json:"remote_tools"`
		}
	}
	if status := p.call(t, "POST", "/user/tools", map[string]any{"kind": "mcp", "name": name, "description": "A server.", "endpoint": url,
		"timeout": 30}, &made); status != 201 || made.Message != "Tool created successfully" {
		t.Fatalf("%d %+v", status, made)
	}
	for _, l := range made.Data.Remote {
		if !l.Given {
			t.Errorf("%s: the model doesn't get %s: %s", name, l.Name, l.Note)
		}
		tools = append(tools, l.Name)
	}
	return made.Data.ID, tools
}

// Each tool of the servers of the protocol's makers works from a chat.
func TestMCPServers(t *testing.T) {
	share(t, compiler)
	dir := t.TempDir()
	write := func(name, text string) string {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return at
	}
	note, picture, old := write("note.txt", "first line\nsecond line\n"), write("picture.png", "\x89PNG\r\n\x1a\n"), write("old.txt", "moved")
	type args = map[string]any
	type call struct {
		name string
		args args
		want string
	}
	servers := []struct {
		name, url string
		calls     []call
	}{
		{"everything", everything(t), []call{
			{"echo", args{"message": "hello"}, "Echo: hello"},
			{"get-sum", args{"a": 2, "b": 3}, "is 5"},
			{"get-annotated-message", args{"messageType": "success", "includeImage": true}, "[An image (image/png,"},
			{"get-env", nil, "PATH"},
			{"get-resource-links", args{"count": 2}, "[A file that was not read: demo://"},
			{"get-resource-reference", args{"resourceType": "Text", "resourceId": 1}, "[The file demo://"},
			{"get-structured-content", args{"location": "Chicago"}, `"temperature"`},
			{"get-tiny-image", nil, "[An image (image/png,"},
			{"gzip-file-as-resource", args{"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"}, "application/gzip"},
			{"toggle-simulated-logging", nil, "ogging"},
			{"toggle-subscriber-updates", nil, "pdates"},
			{"trigger-long-running-operation", args{"duration": 1, "steps": 2}, "completed"},
			// It only runs as a task, which the SDK has no part of; the model is told what the server says of that.
			{"simulate-research-query", args{"topic": "tea"}, "The tool failed: MCP error -32601: Tool simulate-research-query requires task"},
		}},
		{"memory", bridge(t, []string{"MEMORY_FILE_PATH=" + filepath.Join(dir, "memory.jsonl")}, "server-memory"), []call{
			{"create_entities", args{"entities": []args{{"name": "Ana", "entityType": "person", "observations": []string{"likes tea"}},
				{"name": "Bo", "entityType": "person", "observations": []string{}}}}, "likes tea"},
			{"create_relations", args{"relations": []args{{"from": "Ana", "to": "Bo", "relationType": "knows"}}}, "knows"},
			{"add_observations", args{"observations": []args{{"entityName": "Bo", "contents": []string{"is tall"}}}}, "is tall"},
			{"read_graph", nil, "is tall"},
			{"search_nodes", args{"query": "tea"}, "Ana"},
			{"open_nodes", args{"names": []string{"Bo"}}, "is tall"},
			{"delete_observations", args{"deletions": []args{{"entityName": "Bo", "observations": []string{"is tall"}}}}, "success"},
			{"delete_relations", args{"relations": []args{{"from": "Ana", "to": "Bo", "relationType": "knows"}}}, "success"},
			{"delete_entities", args{"entityNames": []string{"Bo"}}, "success"},
		}},
		{"filesystem", bridge(t, nil, "server-filesystem", dir), []call{
			{"read_file", args{"path": note}, "second line"},
			{"read_text_file", args{"path": note, "head": 1}, "first line"},
			{"read_media_file", args{"path": picture}, "(image/png, 8 bytes)"},
			{"read_multiple_files", args{"paths": []string{note, old}}, "moved"},
			{"write_file", args{"path": filepath.Join(dir, "new.txt"), "content": "new"}, "Successfully wrote"},
			{"edit_file", args{"path": note, "edits": []args{{"oldText": "second", "newText": "last"}}}, "+last line"},
			{"create_directory", args{"path": filepath.Join(dir, "sub")}, "Successfully created"},
			{"list_directory", args{"path": dir}, "[DIR] sub"},
			{"list_directory_with_sizes", args{"path": dir}, "note.txt"},
			{"directory_tree", args{"path": dir}, `"note.txt"`},
			{"move_file", args{"source": old, "destination": filepath.Join(dir, "sub", "old.txt")}, "Successfully moved"},
			{"search_files", args{"path": dir, "pattern": "**/*.txt"}, "note.txt"},
			{"get_file_info", args{"path": note}, "size: "},
			{"list_allowed_directories", nil, dir},
		}},
	}
	p, model := thinking(t)
	var ids []int64
	for _, s := range servers {
		id, tools := p.listedServer(t, s.name, s.url)
		ids = append(ids, id)
		for _, name := range tools {
			if !strings.Contains(fmt.Sprint(s.calls), "{"+name+" ") {
				t.Errorf("%s: nothing calls %s", s.name, name)
			}
		}
	}
	if status := p.call(t, "PUT", fmt.Sprintf("/user/assistant/%d", p.Assistant), map[string]any{"tool_ids": ids}, nil); status != 200 {
		t.Fatal(status)
	}
	for _, s := range servers {
		conversation := p.converse(t)
		for _, c := range s.calls {
			raw, err := json.Marshal(c.args)
			if err != nil {
				t.Fatal(err)
			}
			model.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "c1", Name: c.name, Arguments: string(raw)}}}, aitest.Behaviour{Text: "Done."})
			status, r := p.say(t, conversation, "Go on.")
			if status != 200 || len(r.FunctionCalls) != 1 || !strings.Contains(r.FunctionCalls[0].Result, c.want) ||
				(parley.FunctionCall{Result: r.FunctionCalls[0].Result}).Failed() != strings.HasPrefix(c.want, "The tool failed") {
				t.Errorf("%s %s: %d %.600v", s.name, c.name, status, r.FunctionCalls)
			}
		}
	}
}

// The tools of an MCP server work in a call too, whoever the model is: what they say is spoken, and a caller who speaks while a tool that
// only reads runs has it called off.
func TestMCPInCall(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"pipeline", "multimodal"} {
		t.Run(mode, func(t *testing.T) {
			share(t, call)
			begun, off := make(chan bool, 1), make(chan bool, 1)
			shop := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
			type asked struct {
				People int `json:"people"`
			}
			reads := &sdk.ToolAnnotations{ReadOnlyHint: true}
			sdk.AddTool(shop, &sdk.Tool{Name: "table_free", Description: "Looks whether a table is free", Annotations: reads},
				func(_ context.Context, _ *sdk.CallToolRequest, in asked) (*sdk.CallToolResult, any, error) {
					return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("free for %d", in.People)}}}, nil, nil
				})
			sdk.AddTool(shop, &sdk.Tool{Name: "window", Description: "Looks for a window", Annotations: reads},
				func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
					begun <- true
					<-ctx.Done()
					off <- true
					return nil, nil, ctx.Err()
				})
			at := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return shop }, nil))
			t.Cleanup(at.Close)
			l, v := inMode(t, mode, nil, rich(t, 9))
			id, _ := l.listedServer(t, "shop", at.URL)
			l.change(t, map[string]any{"tool_ids": []int64{id}})
			s := &scene{T: t, l: l, v: v, mode: mode}
			s.ring()
			s.thinks(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "call_1", Name: "table_free", Arguments: `{"people":2}`}}},
				aitest.Behaviour{Text: "Your table is ready."})
			s.asks("For two.")
			s.whole("Your table is ready.")
			if results := s.holds(ai.ToolRole); len(results) != 1 || !strings.Contains(results[0], "free for 2") {
				t.Errorf("the tool told the model %q", results)
			}
			s.thinks(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "call_2", Name: "window", Arguments: "{}"}}},
				aitest.Behaviour{Text: "Then not."})
			s.asks("And by the window?")
			<-begun
			s.asks("Never mind.")
			<-off
			s.whole("Then not.")
			if err := s.c.Hangup(); err != nil {
				t.Error(err)
			}
		})
	}
}
