package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/internal/ai"
)

func TestTokens(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "abcd": 1, "abcde": 2, "héllo": 2, "日本": 2} {
		if got := Tokens(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// brief writes a history as one word per message: its role, its text, the tools that it calls.
func brief(h []ai.Message) string {
	var out []string
	for _, m := range h {
		s := string(m.Role)[:1] + ":" + m.Text
		for _, c := range m.Calls {
			s += "!" + c.Name
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestTrim(t *testing.T) {
	u := func(s string) ai.Message { return ai.Message{Role: ai.User, Text: s} }
	a := func(s string, calls ...ai.ToolCall) ai.Message {
		return ai.Message{Role: ai.Assistant, Text: s, Calls: calls}
	}
	r := func(id, s string) ai.Message { return ai.Message{Role: ai.ToolRole, CallID: id, Text: s} }
	c := func(id string) ai.ToolCall { return ai.ToolCall{ID: id, Name: "n" + id} }
	long := strings.Repeat("long", 100)
	for _, x := range []struct {
		name   string
		in     []ai.Message
		budget int
		want   string
	}{
		{"all fits", []ai.Message{a("hi"), u("1"), a("2"), u("3")}, 1000, "a:hi u:1 a:2 u:3"},
		{"oldest first", []ai.Message{a("hi"), u("1"), a("2"), u("3")}, 11, "a:2 u:3"},
		{"nothing in between is left out", []ai.Message{a("hi"), u(long), a("2"), u("3")}, 50, "a:2 u:3"},
		{"the latest message stays", []ai.Message{u("1"), u(long)}, 1, "u:" + long},
		{"a call stays with its result", []ai.Message{u("1"), a("", c("x")), r("x", long), a("2"), u("3")}, 40,
			"a:2 u:3"},
		{"a call and its results fit", []ai.Message{u("1"), a("", c("x"), c("y")), r("y", "Y"), r("x", "X"),
			u("3")}, 1000, "u:1 a:!nx!ny t:X t:Y u:3"},
		{"in a turn the question stays", []ai.Message{u("old"), u("3"), a("", c("x")), r("x", long), a("", c("y")),
			r("y", "Y")}, 40, "u:3 a:!ny t:Y"},
		{"the latest result stays", []ai.Message{u("3"), a("", c("x")), r("x", long)}, 1, "u:3 a:!nx t:" + long},
		{"orphans go", []ai.Message{r("z", "?"), u("1"), a("and", c("x")), u("2"), a("", c("y")), u("3"),
			r("y", "late")}, 1000, "u:1 a:and u:2 u:3"},
		{"half answered", []ai.Message{u("1"), a("", c("x"), c("y")), r("x", "X"), u("2")}, 1000, "u:1 a:!nx t:X u:2"},
		{"no customer", []ai.Message{a("hi"), a("there")}, 6, "a:there"},
		{"nothing", nil, 10, ""},
	} {
		before := fmt.Sprintf("%+v", x.in)
		if got := brief(Trim(x.in, x.budget)); got != x.want {
			t.Errorf("%s: got %s, want %s", x.name, got, x.want)
		}
		if fmt.Sprintf("%+v", x.in) != before {
			t.Errorf("%s: the history was changed", x.name)
		}
	}
}

func TestReplay(t *testing.T) {
	stored := []ToolCall{{Name: "a", Arguments: json.RawMessage(`{}`), Result: "1"},
		{Name: "b", Arguments: json.RawMessage(`"{"`), Result: "2"}}
	h := append(Replay("Done.", stored), ai.Message{Role: ai.User, Text: "again"})
	h = append(h, Replay("Done again.", stored)...)
	h = append(h, Replay("plain", nil)...)
	got := Trim(h, 1000)
	if brief(got) != "a:!a!b t:1 t:2 a:Done. u:again a:!a!b t:1 t:2 a:Done again. a:plain" {
		t.Errorf("got %s", brief(got))
	}
	sound(t, got)
}

// sound checks that the result of each call follows it directly, and that each call has its own id.
func sound(t *testing.T, h []ai.Message) {
	t.Helper()
	ids := map[string]bool{}
	for i := 0; i < len(h); i++ {
		m := h[i]
		if m.Role == ai.ToolRole {
			t.Fatalf("message %d is a result without a call: %s", i, brief(h))
		}
		for _, c := range m.Calls {
			i++
			if i >= len(h) || h[i].Role != ai.ToolRole || h[i].CallID != c.ID || ids[c.ID] {
				t.Fatalf("call %s has no result of its own: %s", c.ID, brief(h))
			}
			ids[c.ID] = true
		}
	}
}

func FuzzTrim(f *testing.F) {
	f.Add([]byte("uacrucrr"), 20)
	f.Add([]byte("crcrcrccrru"), 3)
	f.Add([]byte("uUaAcrR"), 500)
	f.Fuzz(func(t *testing.T, script []byte, budget int) {
		if len(script) > 200 {
			return
		}
		var h []ai.Message
		last := ""
		for i, b := range script {
			text := fmt.Sprint("m", i)
			switch b % 7 {
			case 0, 1:
				last = text
				h = append(h, ai.Message{Role: ai.User, Text: text})
			case 2:
				h = append(h, ai.Message{Role: ai.Assistant, Text: strings.Repeat(text, int(b)/4)})
			case 3:
				h = append(h, ai.Message{Role: ai.Assistant,
					Calls: []ai.ToolCall{{ID: fmt.Sprint(b % 3), Name: "n"}, {ID: fmt.Sprint(b % 5), Name: "n"}}})
			default:
				h = append(h, ai.Message{Role: ai.ToolRole, CallID: fmt.Sprint(b % 5), Text: text})
			}
		}
		got := Trim(h, budget)
		sound(t, got)
		kept, total := last == "", 0
		for _, m := range got {
			kept = kept || m.Role == ai.User && m.Text == last
			total += size([]ai.Message{m})
		}
		if !kept {
			t.Errorf("the latest message is gone: %s", brief(got))
		}
		// What must stay may exceed the budget: the customer's message and the last unit.
		units := split(h)
		if len(units) > 0 && budget >= 0 && total > budget+size(units[len(units)-1])+messageTokens+Tokens(last) {
			t.Errorf("%d tokens of %d", total, budget)
		}
	})
}
