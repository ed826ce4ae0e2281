package voice

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/agent"
	"parley/internal/parley"
	"parley/internal/turn"
)

// TestAsyncTools: eight tools run in the background at a time; each answer replaces the word that it was started, and those that still
// run when the call ends run to their end.
func TestAsyncTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []Event
		r := &run{Session: &Session{Tell: func(e Event) { events = append(events, e) }}, inbox: newInbox(), frames: make(chan *frame),
			clock: clock{start: time.Now()}}
		r.ctx, r.cancel = context.WithCancelCause(t.Context())
		r.owned = owned{m: turn.New(turn.Manner{MaxDuration: time.Hour, MaxSilence: time.Hour, Reengage: time.Hour}),
			transcript: transcript{out: &r.out, late: map[string]string{}}}
		go r.own()
		r.happens(turn.Event{Kind: turn.Relieved}) // nobody thinks here
		var broken int
		tool := agent.Tool{Async: func(ctx context.Context, raw json.RawMessage) (string, error) {
			var wait time.Duration
			if err := json.Unmarshal(raw, &wait); err != nil {
				panic(err)
			}
			select {
			case <-time.After(wait):
				return "waited " + wait.String(), nil
			case <-ctx.Done():
				broken++
				return "", ctx.Err()
			}
		}}
		tool.Name = "wait"
		a := &answer{id: 1}
		r.inbox.ask(func() { r.transcript.assistant(a) })
		begin := func(arguments string) (string, error) {
			text, err := r.outlasting([]agent.Tool{tool})[0].Run(t.Context(), json.RawMessage(arguments))
			if err == nil {
				c := agent.ToolCall{Name: "wait", Arguments: json.RawMessage(arguments), Result: text}
				r.inbox.ask(func() { r.toolBegan(a, c); r.toolEnded(a, c, true) })
			}
			return text, err
		}
		for range maxAsync {
			if text, err := begin("1000000000"); err != nil || !strings.HasPrefix(text, "The tool was started in the background, as no. ") {
				t.Fatal(text, err)
			}
		}
		if _, err := begin("1"); err == nil || err.Error() != agent.TooManyStarted(maxAsync).Error() {
			t.Errorf("one more: %v", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for _, arguments := range []string{"60000000000", `"no time"`} { // the second panics
			if _, err := begin(arguments); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		r.cancel(parley.CustomerHangup)
		r.inbox.ask(r.abandon)
		var calls []agent.ToolCall
		r.inbox.ask(func() { calls = r.transcript.calls() })
		time.Sleep(time.Minute)
		r.inbox.close()
		<-r.inbox.done
		want := map[string]int{"waited 1s": maxAsync, "The call was over before the tool had answered.": 1, "Error: the tool failed.": 1}
		told := map[string]int{}
		for _, e := range events {
			if e.Kind == ToolAnswered {
				told[e.Call.Result]++
			}
		}
		for _, c := range calls {
			want[c.Result]--
		}
		for text, n := range want {
			if n != 0 {
				t.Errorf("%d too few of %q in %+v", n, text, calls)
			}
		}
		if told["waited 1s"] != maxAsync || len(told) != 3 {
			t.Errorf("told %v", told)
		}
		if broken > 0 {
			t.Error("a tool was broken off")
		}
		if messages := r.transcript.history(); !strings.HasPrefix(messages[1].Text, "The tool was started in the background") {
			t.Errorf("the model's history begins with %+v", messages)
		}
	})
}
