package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A client on standard input gets an answer to each of its requests, and to nothing else, whatever the server does.
func TestBridge(t *testing.T) {
	var mu sync.Mutex
	versions := map[string]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		body := string(raw)
		if r.Header.Get("Authorization") != "Bearer good" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"message":"Unauthenticated."}`)
			return
		}
		for _, method := range []string{"initialize", "json", "events", "none", "broken", "page", "modern", "notifications/initialized"} {
			if strings.Contains(body, `"method":"`+method+`"`) {
				mu.Lock()
				versions[method] = r.Header.Get("MCP-Protocol-Version") + r.Header.Get("Mcp-Method") + r.Header.Get("Mcp-Name")
				mu.Unlock()
			}
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.Contains(body, `"initialize"`):
			fmt.Fprint(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\n\"result\":{\"protocolVersion\":\"2025-11-25\"}}")
		case strings.Contains(body, `"json"`), strings.Contains(body, `"modern"`):
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":"a","result":{}}`)
		case strings.Contains(body, `"events"`):
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n"+
				"id: 2\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":3,\"result\":{}}\n\n")
		case strings.Contains(body, `"broken"`):
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"message":"Too Many Attempts."}`)
		case strings.Contains(body, `"page"`):
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer s.Close()
	say := func(key string, lines ...string) string {
		t.Helper()
		var out bytes.Buffer
		b := &bridge{url: s.URL, key: key, http: s.Client(), out: &out}
		if err := b.run(t.Context(), strings.NewReader(strings.Join(lines, "\n")+"\n")); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize"}`
	for _, c := range []struct{ key, line, want string }{
		{"good", initialize, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`},
		{"good", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
		{"good", `{"jsonrpc":"2.0","id":"a","method":"json"}`, `{"jsonrpc":"2.0","id":"a","result":{}}`},
		{"good", `{"jsonrpc":"2.0","id":3,"method":"events"}`,
			"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}"},
		{"good", `{"jsonrpc":"2.0","id":4,"method":"none"}`, `"id":4,"jsonrpc"`},
		{"good", `{"jsonrpc":"2.0","id":5,"method":"broken"}`, "answered 429: Too Many Attempts."},
		{"good", `{"jsonrpc":"2.0","id":6,"method":"page"}`, "the server gave no answer"},
		{"good", `not JSON`, "-32700"},
		{"bad", `{"jsonrpc":"2.0","id":7,"method":"json"}`, "the API key is not valid"},
	} {
		got := say(c.key, c.line)
		lines := strings.Count(got, "\n")
		if !strings.Contains(got, c.want) || c.want == "" && got != "" || lines != strings.Count(c.want, "\n")+min(len(c.want), 1) {
			t.Errorf("%s is answered %q, want %q", c.line, got, c.want)
		}
	}
	say("good", initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"a","method":"modern","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	mu.Lock()
	defer mu.Unlock()
	if versions["notifications/initialized"] != "2025-11-25" || versions["modern"] != "2026-07-28modernx" {
		t.Errorf("the versions are %v", versions)
	}
}
