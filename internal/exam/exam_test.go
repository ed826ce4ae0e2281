package exam

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/internal/parley"
)

func call(name, args, result string) parley.FunctionCall {
	return parley.FunctionCall{Name: name, Arguments: json.RawMessage(args), Result: result}
}

// A call becomes a script that says the same things, without personal data that it does not need.
func TestScriptOfCall(t *testing.T) {
	a := &parley.Assistant{SystemPrompt: "You talk with {{who}}.", MidCallTools: []parley.Tool{{Name: "book"}}}
	s := source{what: "call 7", channel: "call", hungUp: true, lasted: 3 * time.Minute,
		variables: map[string]string{"who": "Ana", "secret": "s3cret", "parley_test": "test-x"},
		dialog: ofCall([]parley.CallTurn{
			{Speaker: "assistant", Text: "Hello!"},
			{Speaker: "customer", Text: "A table \"for\" two,", StartedAtMS: 1000},
			{Speaker: "customer", Text: "my number is +49 170 123 45 67, ana@mail.example.org", StartedAtMS: 1500},
			{Speaker: "assistant", Text: "Done.", StartedAtMS: 4000},
		}, []parley.CallTool{
			{AtMS: 3000, FunctionCall: call("book", `{"party":2,"phone":"+491701234567","name":"Ana"}`, `{"ok":true,"phone":"+491701234567"}`)},
			{AtMS: 5000, FunctionCall: call("end_call", `{}`, "")},
		})}
	got, err := s.script("As in call 7", a, true)
	if err != nil {
		t.Fatal(err)
	}
	want := `name: As in call 7
limit: 300s
variables:
  who: Ana
mock:
  book:
    reply: '{"ok":true,"phone":"+555010055501"}'
steps:
  - hear: greeting
  - say: A table for two, my number is +55 501 005 55 01, somebody@example.com
  - expect:
      tool:
        - 'book{name: "Ana", party: 2}'
end:
  reason: assistant_hangup
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if cases, err := Read(got); err != nil || len(cases) != 1 || len(cases[0].Steps) != 3 {
		t.Errorf("it is read as %v, %v", cases, err)
	}
}

// Whatever was said, its script can be parsed, and says the same.
func TestScriptsCanBeRead(t *testing.T) {
	for _, words := range []string{"yes", "null", "- a list: of things", `"quoted" at reply+1s`, "it's <b>bold</b>", "no: never",
		"#hash", "{a}",
		"multi\nline\n---\ntext", "'", "at reply", "12", "häagen 日本", "wait at reply+600ms", strings.Repeat("long ", 1000), "\\ back \x00 zero"} {
		s := source{what: "a chat", channel: "chat", dialog: ofMessages([]parley.Message{{Role: parley.RoleUser, Content: words}})}
		got, err := s.script("As in a chat", &parley.Assistant{}, true)
		if words == "'" {
			if err == nil {
				t.Errorf("%q became %s", words, got)
			}
			continue
		}
		cases, rerr := Read(got)
		if err != nil || rerr != nil || len(cases) != 1 || len(cases[0].Steps) != 1 || len(cases[0].Steps[0].Parts) == 0 {
			t.Errorf("%q: %v, %v, %s", words, err, rerr, got)
		}
	}
}

func TestSideBySide(t *testing.T) {
	before := ofMessages([]parley.Message{{Role: "assistant", Content: "Hello."}, {Role: "user", Content: "Two"},
		{Role: "assistant", Content: "Booked!", FunctionCalls: []parley.FunctionCall{call("book", `{"party":2}`, "")}}})
	now := ofMessages([]parley.Message{{Role: "assistant", Content: "hello"}, {Role: "user", Content: "Two"},
		{Role: "assistant", Content: "Booked!"}, {Role: "user", Content: "Bye"}})
	want := []Turn{{Before: "Hello.", Now: "hello", ToolsBefore: []string{}, ToolsNow: []string{}, Same: true},
		{Customer: "Two", Before: "Booked!", Now: "Booked!", ToolsBefore: []string{`book{"party":2}`}, ToolsNow: []string{}},
		{Customer: "Bye", ToolsBefore: []string{}, ToolsNow: []string{}, Same: true}}
	if d := cmp.Diff(want, sideBySide(before, now)); d != "" {
		t.Error(d)
	}
	if got := sideBySide(before, now[1:]); got[0].Before != "Hello." || got[0].Now != "" || got[1].Customer != "Two" {
		t.Errorf("where one side did not greet it is %+v", got)
	}
}

func TestCompare(t *testing.T) {
	id := int64(7)
	result := func(name string, s parley.TestState, p50 int64, misheard int) parley.TestResult {
		return parley.TestResult{TestID: &id, Name: name, State: s, Figures: &parley.TestFigures{ReplyP50MS: p50, Misheard: misheard}}
	}
	before := []parley.TestResult{result("a", "pass", 500, 0), result("b", "fail", 500, 0), result("c", "pass", 500, 0),
		result("d", "pass", 900, 2), result("e", "pass", 500, 0)}
	now := []parley.TestResult{result("a", "fail", 500, 0), result("b", "pass", 500, 0), result("c", "pass", 610, 0),
		result("d", "pass", 600, 1), result("e", "pass", 800, 0), result("new", "fail", 1, 1), {Name: "replay", State: "fail"}}
	var got []string
	for _, c := range Compare(now, before) {
		line := c.Name + map[bool]string{true: " better", false: " worse"}[c.Better]
		for _, f := range c.Figures {
			line += "; " + f.Text()
		}
		got = append(got, line)
	}
	want := []string{"a worse", "b better", "d better; Half of the replies within: 900 ms before, now 600 ms; Words misheard: 2 before, now 1",
		"e worse; Half of the replies within: 500 ms before, now 800 ms"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
