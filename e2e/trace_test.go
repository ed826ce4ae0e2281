package e2e

import (
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/parley"
)

// traces is a collector of OpenTelemetry: it keeps the spans that it is sent by OTLP over HTTP.
type traces struct {
	mu    sync.Mutex
	spans []*otlp.Span
}

func (c *traces) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range sent.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// of returns the spans of a trace, as "name below parent", in alphabetical order and each once.
func (c *traces) of(id string) (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := map[string]string{}
	for _, s := range c.spans {
		names[string(s.SpanId)] = s.Name
	}
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == id {
			line := s.Name
			if len(s.ParentSpanId) > 0 {
				line += " below " + names[string(s.ParentSpanId)]
			}
			list = append(list, line)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// texts returns everything that spans say about themselves.
func (c *traces) texts() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, s := range c.spans {
		b.WriteString(s.String())
	}
	return b.String()
}

// One trace has a call from its INVITE to its webhook: turns, the model, tools, speech. The tool and the webhook are told
// of it, and the call's record too. Nothing that was said is in it.
func TestTraceOfACall(t *testing.T) {
	share(t, call)
	spans := new(traces)
	at := serveLocal(t, spans)
	var mu sync.Mutex
	parents := map[string]string{}
	shop := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		parents[r.URL.Path] = r.Header.Get("traceparent")
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"free":true}`))
	}))
	told := func(path string) string {
		mu.Lock()
		defer mu.Unlock()
		return parents[path]
	}
	l, v := bakeryLine(t, map[string]any{"is_webhook_active": true, "webhook_url": shop + "/ended"}, "OTEL_EXPORTER_OTLP_ENDPOINT="+at,
		"OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_SERVICE_NAME=bakery")
	var tool struct{ Data struct{ ID int64 } }
	l.call(t, "POST", "/user/tools", map[string]any{"name": "table_free", "description": "Looks whether a table is free", "method": "GET",
		"endpoint": shop + "/table"}, &tool)
	l.change(t, map[string]any{"tool_ids": []int64{tool.Data.ID}})
	c := l.greeted(t, l.phone)
	v.hears("I would like a table.")
	v.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "call_1", Name: "table_free", Arguments: "{}"}}},
		aitest.Behaviour{Text: "Your table is ready."})
	asks(t, c)
	v.awaits(t, c, "Your table is ready.")
	silent(t, c, 300*time.Millisecond)
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	eventually(t, "the webhook", func() bool { return told("/ended") != "" })
	var record struct {
		Trace string `json:"trace_id"`
	}
	l.call(t, "GET", "/user/calls/"+itoa(row.ID), nil, &record)
	if len(record.Trace) != 32 {
		t.Fatalf("the record has the trace %q", record.Trace)
	}
	for _, path := range []string{"/table", "/ended"} {
		if got := told(path); !strings.HasPrefix(got, "00-"+record.Trace+"-") {
			t.Errorf("%s is told of the trace %q, want %s", path, got, record.Trace)
		}
	}
	want := []string{"call", "endpoint below turn", "execute_tool table_free below reply", "recognition below turn", "reply below call",
		"report below call", "turn below call", "webhook call.completed below report"}
	var got []string
	eventually(t, "all spans", func() bool {
		got = spans.of(record.Trace)
		for _, w := range want {
			if !slices.Contains(got, w) {
				return false
			}
		}
		return true
	})
	for _, begins := range []string{"chat ", "speech "} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, begins) }) {
			t.Errorf("no span of %q among %q", begins, got)
		}
	}
	for _, word := range []string{"table is ready", "would like", "bakery."} {
		if strings.Contains(spans.texts(), word) {
			t.Errorf("a span has what was said: %q", word)
		}
	}
}

// All of a chat is one trace, with its model and tools.
func TestTraceOfAChat(t *testing.T) {
	share(t, call)
	spans := new(traces)
	at := serveLocal(t, spans)
	p, _ := thinking(t, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+at+"/v1/traces", "OTEL_BSP_SCHEDULE_DELAY=100")
	id := p.converse(t)
	p.say(t, id, "Are you open?")
	p.say(t, id, "And on Sunday?")
	var record struct {
		Trace string `json:"trace_id"`
	}
	p.call(t, "GET", "/user/conversations/"+id, nil, &record)
	want := []string{"chat thinker below reply", "conversation", "reply below conversation"}
	var got []string
	eventually(t, "all spans", func() bool {
		got = spans.of(record.Trace)
		return slices.Equal(got, want)
	})
}

// A collector that takes requests and never answers holds nothing up: chats are answered, and the program stops.
func TestTraceWithoutACollector(t *testing.T) {
	share(t, call)
	never := make(chan struct{})
	defer close(never)
	stuck := serveLocal(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-never }))
	p, _ := thinking(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+stuck, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_BSP_MAX_QUEUE_SIZE=8")
	id := p.converse(t)
	for range 20 {
		if status, r := p.say(t, id, "Are you open?"); status != 200 || r.Message == nil {
			t.Fatalf("%d %+v", status, r)
		}
	}
	began := time.Now()
	p.stop(t)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it stopped after %s", took)
	}
}
