package aitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"parley/internal/ai"
)

// Conform checks that a Model keeps the promises of ai.Model. The model must answer from what it is told: a Fake, a
// Server's, the local one, or a real one.
func Conform(t *testing.T, m ai.Model) {
	shop := "You work for the Blue Door bakery. The bakery opens at seven in the morning and closes at six. " +
		"Bread is baked by Zoë and costs 4 €. Orders can be cancelled until noon. Parking is behind the house."
	lookUp := ai.Tool{
		Name: "look_up_order", Description: "Look up an order by its order number.",
		Schema: json.RawMessage(`{"type":"object","properties":{"order_number":{"type":"number","description":"The number of the order"}},"required":["order_number"],"additionalProperties":false}`),
	}
	asked := ai.Message{Role: ai.User, Text: `Please call look_up_order with {"order_number": 4711}`}

	t.Run("answers from the prompt", func(t *testing.T) {
		r := generate(t, m, ai.Request{System: shop, Messages: user("When does the bakery open in the morning?")})
		if !strings.Contains(r.Text, "seven") {
			t.Errorf("the answer doesn't hold what the prompt says: %q", r.Text)
		}
		if r.Finish != ai.Stop || r.Usage.In <= 0 || r.Usage.Out <= 0 {
			t.Errorf("finish %q, usage %+v", r.Finish, r.Usage)
		}
	})
	t.Run("keeps other alphabets whole", func(t *testing.T) {
		r := generate(t, m, ai.Request{System: shop, Messages: user("Who bakes the bread, and what does it cost?")})
		if !strings.Contains(r.Text, "Zoë") || !strings.Contains(r.Text, "4 €") {
			t.Errorf("got %q", r.Text)
		}
	})
	t.Run("takes a history", func(t *testing.T) {
		r := generate(t, m, ai.Request{System: shop, Messages: []ai.Message{
			{Role: ai.Assistant, Text: "Welcome to Blue Door."}, {Role: ai.User, Text: "Good morning"},
			{Role: ai.Assistant, Text: "Good morning!"}, {Role: ai.User, Text: "When does the bakery open?"},
		}})
		if r.Text == "" || len(r.Calls) > 0 {
			t.Errorf("got %+v", r)
		}
	})
	for _, name := range []string{"look_up_order", strings.Repeat("look_up_order_", 10) + "end", "look.up order/é"} {
		t.Run("calls a tool named "+name, func(t *testing.T) {
			tool := lookUp
			tool.Name = name
			r := generate(t, m, ai.Request{System: shop, Tools: []ai.Tool{tool},
				Messages: user("Please look up order number 4711: call look_up_order with {\"order_number\": 4711}")})
			if name != "look_up_order" && len(r.Calls) == 0 {
				return // a model may not see the tool in such a name; it must survive it
			}
			if len(r.Calls) != 1 || r.Calls[0].Name != name || r.Calls[0].ID == "" || r.Finish != ai.ToolCalls {
				t.Fatalf("got %+v", r)
			}
			var args map[string]any
			if err := json.Unmarshal([]byte(r.Calls[0].Arguments), &args); err != nil ||
				args["order_number"] != 4711.0 {
				t.Errorf("arguments %s: %v", r.Calls[0].Arguments, err)
			}
		})
	}
	t.Run("answers from a tool's result", func(t *testing.T) {
		r := generate(t, m, ai.Request{System: shop, Tools: []ai.Tool{lookUp}, Messages: []ai.Message{
			asked,
			{Role: ai.Assistant, Calls: []ai.ToolCall{{ID: "call_1", Name: lookUp.Name,
				Arguments: `{"order_number":4711}`}}},
			{Role: ai.ToolRole, CallID: "call_1", Text: `{"status":"shipped on Tuesday"}`},
		}})
		if !strings.Contains(r.Text, "shipped on Tuesday") || len(r.Calls) > 0 {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("answers in words when it may not call", func(t *testing.T) {
		r := generate(t, m, ai.Request{System: shop, Tools: []ai.Tool{lookUp}, NoCalls: true,
			Messages: []ai.Message{asked}})
		if r.Text == "" || len(r.Calls) > 0 || r.Finish != ai.Stop {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("fills in a schema", func(t *testing.T) { conformSchema(t, m) })
	t.Run("stops", func(t *testing.T) { conformStop(t, m, shop) })
	t.Run("serves many at once", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				text := fmt.Sprintf("When does the bakery close? Number %d asks.", i)
				r, err := m.Generate(t.Context(), ai.Request{System: shop, Messages: user(text)},
					func(ai.Delta) error { return nil })
				if err != nil || r.Text == "" {
					t.Errorf("request %d: %+v, %v", i, r, err)
				}
			})
		}
		wg.Wait()
	})
}

func conformSchema(t *testing.T, m ai.Model) {
	r := generate(t, m, ai.Request{
		System: "Fill in what the transcript says.\n- status (boolean): Whether the goal was reached\n- summary (string): A short summary\n" +
			"- items (number): How many loaves were ordered\n",
		Schema: &ai.Schema{Name: "extraction", JSON: json.RawMessage(
			`{"type":"object","properties":{"status":{"type":["boolean","null"]},"summary":{"type":["string","null"]},"items":{"type":["number","null"]}},"required":["status","summary","items"],"additionalProperties":false}`)},
		Messages: user("AI: How can I help?\nCustomer: I would like to order 3 loaves.\nAI: Done.\nCustomer: Thanks, bye."),
	})
	var o map[string]any
	if err := json.Unmarshal([]byte(r.Text), &o); err != nil {
		t.Fatalf("no JSON object: %q: %v", r.Text, err)
	}
	for _, name := range []string{"status", "summary", "items"} {
		if _, ok := o[name]; !ok {
			t.Errorf("%q is missing in %s", name, r.Text)
		}
	}
	if s, ok := o["summary"].(string); !ok || s == "" {
		t.Errorf("summary is %v", o["summary"])
	}
}

func conformStop(t *testing.T, m ai.Model, shop string) {
	req := ai.Request{System: shop, Messages: user("When does the bakery open and close?")}
	cause := errors.New("the customer hung up")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := m.Generate(ctx, req, func(ai.Delta) error {
		t.Error("yielded after the end")
		return nil
	}); !errors.Is(err, cause) {
		t.Errorf("cancelled before: %v", err)
	}

	ctx, cancel = context.WithCancelCause(t.Context())
	defer cancel(nil)
	var got strings.Builder
	r, err := m.Generate(ctx, req, func(d ai.Delta) error {
		got.WriteString(d.Text)
		cancel(cause)
		return nil
	})
	if !errors.Is(err, cause) || r.Text != got.String() || r.Text == "" {
		t.Errorf("cancelled in the middle: %v, reply %q, yielded %q", err, r.Text, got.String())
	}

	got.Reset()
	r, err = m.Generate(t.Context(), req, func(d ai.Delta) error {
		got.WriteString(d.Text)
		return ErrYield
	})
	if err != ErrYield || r.Text != got.String() { //nolint:errorlint // it must come back as it is
		t.Errorf("refused by yield: %v, reply %q, yielded %q", err, r.Text, got.String())
	}
}

func user(text string) []ai.Message { return []ai.Message{{Role: ai.User, Text: text}} }

// generate makes a request, and checks what must hold for every reply.
func generate(t *testing.T, m ai.Model, req ai.Request) ai.Reply {
	t.Helper()
	var text strings.Builder
	var calls []ai.ToolCall
	r, err := m.Generate(t.Context(), req, func(d ai.Delta) error {
		if !utf8.ValidString(d.Text) {
			t.Errorf("a piece is cut inside a rune: %q", d.Text)
		}
		text.WriteString(d.Text)
		if d.Call != nil {
			calls = append(calls, *d.Call)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Text != text.String() || fmt.Sprint(r.Calls) != fmt.Sprint(calls) {
		t.Errorf("the reply %q %v is not what was yielded: %q %v", r.Text, r.Calls, text.String(), calls)
	}
	seen := map[string]bool{}
	for _, c := range r.Calls {
		if seen[c.ID] {
			t.Errorf("two calls have the id %q", c.ID)
		}
		seen[c.ID] = true
	}
	return r
}
