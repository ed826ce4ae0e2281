package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/parley"
)

// A call goes on while an asynchronous tool runs, whoever the model is: the caller is answered meanwhile, and hears the tool's answer
// when it comes. The record has the answer.
func TestAsyncTool(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"pipeline", "multimodal"} {
		t.Run(mode, func(t *testing.T) {
			share(t, call)
			ready, late := make(chan struct{}), make(chan struct{})
			shop := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/never" {
					<-late
				} else {
					<-ready
				}
				w.Header().Set("Content-Type", "application/json")
				w.Write([]byte(`{"left":3}`))
			}))
			l, v := inMode(t, mode, nil, rich(t, 9))
			var ids []int64
			for _, name := range []string{"stock", "never"} {
				var made struct{ Data struct{ ID int64 } }
				if status := l.call(t, "POST", "/user/tools", map[string]any{"name": name, "description": "Looks into the warehouse", "method": "GET",
					"endpoint": shop + "/" + name, "mode": "async", "timeout": 300}, &made); status != http.StatusCreated {
					t.Fatal(status)
				}
				ids = append(ids, made.Data.ID)
			}
			l.change(t, map[string]any{"tool_ids": ids})
			s := &scene{T: t, l: l, v: v, mode: mode}
			s.ring()
			s.thinks(
				aitest.Behaviour{Calls: []ai.ToolCall{{ID: "call_1", Name: "stock", Arguments: "{}"}, {ID: "call_2", Name: "never", Arguments: "{}"}}},
				aitest.Behaviour{Text: "I am looking it up."})
			s.asks("Do you have it in blue?")
			s.whole("I am looking it up.")
			s.thinks(aitest.Behaviour{Text: "Until six o'clock."})
			s.asks("How long are you open?")
			s.whole("Until six o'clock.")
			s.thinks(aitest.Behaviour{Text: "Three are left in blue."})
			close(ready)
			s.whole("Three are left in blue.")
			told := s.holds(ai.User)
			if last := told[len(told)-1]; !strings.Contains(last, `The tool "stock", which was started`) || !strings.Contains(last, `{"left":3}`) {
				t.Errorf("the model was told %q", last)
			}
			if err := s.c.Hangup(); err != nil {
				t.Error(err)
			}
			var one struct {
				Status parley.CallStatus
				Calls  []parley.CallTool `json:"function_calls"`
			}
			eventually(t, "the end", func() bool {
				l.call(t, "GET", "/user/calls/"+itoa(s.id), nil, &one)
				return one.Status == parley.CallCompleted
			})
			close(late)
			results := map[string]string{}
			for _, c := range one.Calls {
				results[c.Name] = c.Result
			}
			if len(one.Calls) != 2 || results["stock"] != `{"left":3}` || results["never"] != "The call was over before the tool had answered." {
				t.Errorf("the record has %+v", one.Calls)
			}
		})
	}
}

// A tool's own sentences bridge the wait for it, and what the assistant is to find out of a call may be nested: both as the vendor gets
// them.
func TestOwnWordsAndSchema(t *testing.T) {
	share(t, call)
	l, v := inMode(t, "pipeline", map[string]any{"post_call_schema": []any{}}, rich(t, 9))
	answer := make(chan struct{})
	shop := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-answer
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"left":3}`))
	}))
	var made struct{ Data struct{ ID int64 } }
	if status := l.call(t, "POST", "/user/tools", map[string]any{"name": "stock", "description": "Looks into the warehouse", "method": "GET",
		"endpoint": shop, "filler": "I am going to the shelf."}, &made); status != http.StatusCreated {
		t.Fatal(status)
	}
	order := map[string]any{"type": "object", "properties": map[string]any{"items": map[string]any{"type": "array", "items": map[string]any{
		"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}, "count": map[string]any{"type": "integer"}}}}}}
	l.change(t, map[string]any{"tool_ids": []int64{made.Data.ID}, "post_call_json_schema": order})
	s := &scene{T: t, l: l, v: v, mode: "pipeline"}
	s.ring()
	s.thinks(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "call_1", Name: "stock", Arguments: "{}"}}}, aitest.Behaviour{Text: "Three are left."})
	s.asks("Do you have it in blue?")
	s.whole("I am going to the shelf.")
	close(answer)
	s.whole("Three are left.")
	v.Usually(aitest.Behaviour{Text: `{"items":[{"name":"vase","count":2}]}`})
	if err := s.c.Hangup(); err != nil {
		t.Error(err)
	}
	var one struct{ Variables map[string]any }
	eventually(t, "what was found out", func() bool {
		l.call(t, "GET", "/user/calls/"+itoa(s.id), nil, &one)
		return len(one.Variables) > 0
	})
	if got := fmt.Sprint(one.Variables); got != "map[items:[map[count:2 name:vase]]]" {
		t.Errorf("found out: %s", got)
	}
	asked := v.Requests()
	if last := fmt.Sprintf("%+v", asked[len(asked)-1]); !strings.Contains(last, "count") {
		t.Errorf("the model was asked %.2000s", last)
	}
}
