package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// thinking starts the program with a language model of the test's own.
func thinking(t *testing.T, env ...string) (*program, *aitest.Server) {
	t.Helper()
	model := aitest.NewServer(t)
	model.Models = []string{"thinker"}
	p := start(t, append([]string{"PARLEY_OPENAI_BASE_URL=" + model.URL, "PARLEY_OPENAI_CHAT_MODEL=thinker",
		"PARLEY_RATE_PUBLIC=off", "PARLEY_RATE_API=off", "PARLEY_CONNECTIONS_PER_ADDRESS=0",
		"PARLEY_EGRESS_ALLOW=127.0.0.0/8"}, env...)...)
	return p, model
}

type history struct {
	History []struct {
		Role, Content string
		FunctionCalls []struct {
			Name      string
			Arguments map[string]any
			Result    string
		} `json:"function_calls"`
	}
}

func (p *program) converse(t *testing.T) string {
	t.Helper()
	var made struct {
		ID string `json:"conversation_id"`
	}
	if status := p.call(t, "POST", "/conversations", map[string]any{"assistant_id": p.AssistantUUID},
		&made); status != 200 {
		t.Fatalf("no conversation: %d", status)
	}
	return made.ID
}

type reply struct {
	Status        bool
	Message       *string
	Error         string
	FunctionCalls []struct {
		Name   string
		Result string
	} `json:"function_calls"`
}

func (p *program) say(t *testing.T, conversation, text string) (int, reply) {
	t.Helper()
	var r reply
	status := p.call(t, "POST", "/conversations/"+conversation+"/messages", map[string]any{"message": text}, &r)
	return status, r
}

func (p *program) balance(t *testing.T) float64 {
	t.Helper()
	var me struct {
		Balance float64 `json:"total_balance"`
	}
	p.call(t, "GET", "/user/me", nil, &me)
	return me.Balance
}

// What a misbehaving model server can do, and what the customer gets.
func TestModelServersMisbehave(t *testing.T) {
	share(t, call)
	p, model := thinking(t, "PARLEY_OPENAI_STALL=2s")
	id := p.converse(t)
	for _, c := range []struct {
		name    string
		script  []aitest.Behaviour
		status  int
		message string
	}{
		{"a stream split inside runes", []aitest.Behaviour{{Text: "Grüße, 世界! 👋🏽", Cut: 1}}, 200, "Grüße, 世界! 👋🏽"},
		{"429 with Retry-After, then well", []aitest.Behaviour{{Status: 429, RetryAfter: "1"},
			{Text: "Here I am."}}, 200, "Here I am."},
		{"500, then well", []aitest.Behaviour{{Status: 500}, {Text: "Back."}}, 200, "Back."},
		{"500 for good", []aitest.Behaviour{{Status: 500}, {Status: 500}, {Status: 500}}, 502, ""},
		{"an error in mid-stream", []aitest.Behaviour{{Text: "Half an answer", Fault: aitest.Failure, After: 2}},
			502, ""},
		{"a stall in mid-stream", []aitest.Behaviour{{Text: "Half an answer", Fault: aitest.Stall, After: 1}}, 502, ""},
		{"garbage", []aitest.Behaviour{{Text: "Half an answer", Fault: aitest.Garbage, After: 1}}, 502, ""},
		{"well again", []aitest.Behaviour{{Text: "All is well."}}, 200, "All is well."},
	} {
		before := p.balance(t)
		model.Script(c.script...)
		status, r := p.say(t, id, c.name)
		if status != c.status || r.Status != (status == 200) || c.message != "" &&
			(r.Message == nil || *r.Message != c.message) || status != 200 && r.Error == "" {
			t.Errorf("%s: %d %+v", c.name, status, r)
		}
		cost := map[bool]float64{true: .01, false: 0}[status == 200]
		if paid := before - p.balance(t); paid < cost-1e-9 || paid > cost+1e-9 {
			t.Errorf("%s cost %v", c.name, paid)
		}
	}
	var h history
	p.call(t, "GET", "/conversations/"+id, nil, &h)
	kept := 0
	for _, m := range h.History {
		if m.Role == "user" {
			kept++
		}
	}
	if kept != 8 {
		t.Errorf("%d of 8 messages were kept", kept)
	}
}

// An assistant calls the user's system and answers from the result.
func TestToolsInConversation(t *testing.T) {
	share(t, call)
	shop := http.NewServeMux()
	shop.HandleFunc("GET /orders/{n}", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "s3cret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, `{"order":%q,"status":"baked"}`, r.PathValue("n"))
	})
	at := serveLocal(t, shop)
	p, model := thinking(t)
	var made struct{ Data struct{ ID int64 } }
	if status := p.call(t, "POST", "/user/tools", map[string]any{"name": "order_status",
		"description": "Looks up an order", "method": "GET",
		"endpoint": at + "/orders/{number}", "headers": []any{map[string]any{"name": "X-Key", "value": "s3cret"}},
		"schema": []any{map[string]any{"name": "number", "type": "string", "description": "Order number"}}},
		&made); status != 201 {
		t.Fatal(status)
	}
	if status := p.call(t, "PUT", "/user/assistant/"+strconv.FormatInt(p.Assistant, 10),
		map[string]any{"tool_ids": []int64{made.Data.ID}}, nil); status != 200 {
		t.Fatal(status)
	}
	var models []struct {
		ID   int64
		Code string
	}
	p.call(t, "GET", "/user/assistants/models?type=llm", nil, &models)
	if models[0].Code != "thinker" {
		t.Fatalf("models: %+v", models)
	}
	id := p.converse(t)
	model.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "c1", Name: "order_status", Arguments: `{"number":"a/7"}`},
		{ID: "c2", Name: "order_status", Arguments: `{"number":"8"}`}}}, aitest.Behaviour{Text: "Both are baked."})
	status, r := p.say(t, id, "Where are orders a/7 and 8?")
	if status != 200 || *r.Message != "Both are baked." || len(r.FunctionCalls) != 2 ||
		!strings.Contains(r.FunctionCalls[0].Result, `"a/7"`) {
		t.Errorf("%d %+v", status, r)
	}
	var h history
	p.call(t, "GET", "/conversations/"+id, nil, &h)
	if last := h.History[len(h.History)-1]; len(last.FunctionCalls) != 2 ||
		last.FunctionCalls[1].Arguments["number"] != "8" {
		t.Errorf("history: %+v", last)
	}
	var test struct {
		Status int
		Body   string
	}
	if status := p.call(t, "POST", fmt.Sprintf("/user/tools/%d/test", made.Data.ID),
		map[string]any{"arguments": map[string]any{"number": "9"}}, &test); status != 200 || test.Status != 200 ||
		!strings.Contains(test.Body, `"9"`) {
		t.Errorf("the test said %d %+v", status, test)
	}
}

// A program that is killed in the middle of a reply answers once after its restart, and charges once.
func TestKilledInMidReply(t *testing.T) {
	share(t, call)
	p, model := thinking(t)
	gate := make(chan struct{})
	defer close(gate)
	model.Script(aitest.Behaviour{Text: "Never to be heard.", Gate: gate})
	id := p.converse(t)
	body, _ := json.Marshal(map[string]any{"message": "Are you there?"})
	req, err := http.NewRequestWithContext(t.Context(), "POST", p.URL+"/api/conversations/"+id+"/messages",
		bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	// skip the keepalive comments
	for lines.Scan() && (lines.Text() == "" || strings.HasPrefix(lines.Text(), ":")) {
	}
	if line := lines.Text(); line != "event: delta" {
		t.Fatalf("%q %v", line, lines.Err())
	}
	p.kill(t)
	p.restart(t)
	var h history
	look, hang := time.NewTicker(50*time.Millisecond), time.After(60*time.Second)
	defer look.Stop()
	for len(h.History) < 3 {
		select {
		case <-look.C:
			h = history{}
			p.call(t, "GET", "/conversations/"+id, nil, &h)
		case <-hang:
			t.Fatalf("no reply after the restart: %+v", h)
		}
	}
	if got := h.History[2]; got.Role != "assistant" ||
		!strings.HasPrefix(got.Content, "You said: Are you there?") || p.balance(t) != 99.99 {
		t.Errorf("%+v, balance %v", got, p.balance(t))
	}
}

// A thousand streamed replies at once fit into bounded memory.
func TestThousandStreams(t *testing.T) {
	share(t, machine)
	const streams, most = 1000, 400 << 20
	p, model := thinking(t)
	gate := make(chan struct{})
	model.Usually(aitest.Behaviour{Text: strings.Repeat("word ", 200), Gate: gate})
	ids := make([]string, streams)
	for i := range ids {
		ids[i] = p.converse(t)
	}
	var begun, ended sync.WaitGroup
	begun.Add(streams)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams}}
	for _, id := range ids {
		ended.Go(func() {
			req, _ := http.NewRequestWithContext(t.Context(), "POST", p.URL+"/api/conversations/"+id+"/messages",
				strings.NewReader(`{"message":"Go on"}`))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "text/event-stream")
			res, err := client.Do(req)
			if err != nil {
				begun.Done()
				t.Error(err)
				return
			}
			defer res.Body.Close()
			r := bufio.NewScanner(res.Body)
			first, done := r.Scan(), false
			begun.Done()
			for r.Scan() {
				done = done || r.Text() == "event: done"
			}
			if !first || !done {
				t.Errorf("a stream broke: %v", r.Err())
			}
		})
	}
	begun.Wait() // all are in the middle of their reply
	if used := resident(t, p.cmd.Process.Pid); used > most {
		t.Errorf("%d streams take %d MiB", streams, used>>20)
	} else {
		t.Logf("%d streams take %d MiB", streams, used>>20)
	}
	close(gate)
	ended.Wait()
	if got := p.balance(t); got != 90 {
		t.Errorf("a thousand messages left %v of 100", got)
	}
}

// resident is a process's memory in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// sendAndForget sends a message and ignores the result.
func (p *program) sendAndForget(conversation, text string) {
	body, _ := json.Marshal(map[string]any{"message": text})
	res, err := http.Post(p.URL+"/api/conversations/"+conversation+"/messages", "application/json",
		bytes.NewReader(body))
	if err == nil {
		res.Body.Close()
	}
}
