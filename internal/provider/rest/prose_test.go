package rest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/internal/ai"
)

var proseTools = []ai.Tool{
	{Name: "look", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"n":{"type":"integer"}}}`)},
	{Name: "hang_up"}}

// read writes a reply in pieces of so many characters, and returns what is said and called: "said | name args | …".
func read(t *testing.T, tools []ai.Tool, lone bool, text string, size int) (string, bool) {
	t.Helper()
	var said strings.Builder
	var calls []string
	p := NewProse(tools, NewNames(tools), func(s string) error { said.WriteString(s); return nil },
		func(name, args string) error { calls = append(calls, name+" "+args); return nil })
	p.Lone = lone
	for r := []rune(text); len(r) > 0; {
		n := min(size, len(r))
		if err := p.Write(string(r[:n])); err != nil {
			t.Fatal(err)
		}
		r = r[n:]
	}
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(append([]string{said.String()}, calls...), " | "), p.Lone
}

// What models write, and what of it is said and called. A row grows by a form; each is read whole and in pieces.
func TestProse(t *testing.T) {
	const call = `{"city":"Rome"}`
	for _, c := range []struct{ text, want string }{
		{"Hello!", "Hello!"},
		{"a < b, [1] and {x} `y` find it", "a < b, [1] and {x} `y` find it"},
		{"", ""},

		{"<think>Hm, who is it?</think>\n\nHello!", "Hello!"},
		{"<thinking>\nHm\n</thinking>Hello!", "Hello!"},
		{"<reasoning>x</reasoning> Hello!", "Hello!"},
		{"<THINK>x</Think>Hello!", "Hello!"},
		{"Well. <think>x</think>Hello!", "Well. Hello!"},
		{"<think>a < b </thin </think>Hello!", "Hello!"},
		{"<think>never ends", ""},
		{"Hello! <think>never ends", "Hello! "},
		{"<think></think>Hello!", "Hello!"},
		{"◁think▷x◁/think▷Hello!", "Hello!"},
		{"Hello</think> you", "Hello you"},
		{"<thin", "<thin"},
		{"I <think so", "I <think so"},

		{"Hello!</s>", "Hello!"},
		{"Hello!<|im_end|>\n<|im_start|>user\nWhat?", "Hello!"},
		{"Hello!<|eot_id|>", "Hello!"},
		{"Hello!<|endoftext|>", "Hello!"},
		{"Hello!<end_of_turn>", "Hello!"},
		{"Hello!<｜end▁of▁sentence｜>", "Hello!"},
		{"<|im_start|>assistant\nHello!", "Hello!"},

		{`<tool_call>{"name":"look","arguments":{"city":"Rome"}}</tool_call>`, " | look " + call},
		{"Let me see.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"city\":\"Rome\"}}\n</tool_call>", "Let me see.\n | look " + call},
		{`<tool_call>{"name":"look","arguments":{"city":"Rome"}}</tool_call><tool_call>{"name":"hang_up","arguments":{}}</tool_call>`,
			" | look " + call + " | hang_up {}"},
		{`<tool_call>{"name":"look","arguments":{"city":"Rome"}}`, " | look " + call},
		{`<tool_call>{"name":"other","arguments":{"city":"Rome"}}</tool_call>`, " | other " + call},
		{`<tool_call>nonsense here</tool_call>Hello`, "Hello"},
		{`<function_call>{"name":"look","arguments":"{\"city\":\"Rome\"}"}</function_call>`, " | look " + call},
		{`<function=look>{"city":"Rome"}</function>`, " | look " + call},
		{"<tool_call>\n<function=look>\n<parameter=city>\nRome\n</parameter>\n<parameter=n>\n5\n</parameter>\n</function>\n</tool_call>",
			` | look {"city":"Rome","n":5}`},
		{`<function_calls><invoke name="look"><parameter name="city">12345</parameter></invoke></function_calls>`, ` | look {"city":"12345"}`},
		{"<tool_call>look\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>", " | look " + call},
		{`<|python_tag|>{"name":"look","parameters":{"city":"Rome"}}<|eom_id|>`, " | look " + call},
		{`[TOOL_CALLS][{"name":"look","arguments":{"city":"Rome"}}]`, " | look " + call},
		{`[TOOL_CALLS]look[ARGS]{"city":"Rome"}`, " | look " + call},
		{"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>look\n```json\n{\"city\":\"Rome\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
			" | look " + call},
		{`<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{"city":"Rome"}<|tool_call_end|><|tool_calls_section_end|>`, " | look " + call},
		{"```json\n{\"name\":\"look\",\"arguments\":{\"city\":\"Rome\"}}\n```", " | look " + call},
		{"Sure.\n```json\n{\"name\":\"look\",\"arguments\":{\"city\":\"Rome\"}}\n```\n", "Sure.\n | look " + call},
		{"```tool_call\n{\"name\":\"look\",\"arguments\":{\"city\":\"Rome\"}}", " | look " + call},
		{"```json\n{\"price\":5}\n```", "```json\n{\"price\":5}\n```"},
		{"```json\n{\"name\":\"Ana\",\"arguments\":{}}\n```", "```json\n{\"name\":\"Ana\",\"arguments\":{}}\n```"},
		{"`look` is a tool", "`look` is a tool"},
		{`{"name":"look","arguments":{"city":"Rome"}}`, " | look " + call},
		{`  {"name": "look", "parameters": {"city":"Rome"}}`, "   | look " + call},
		{`[{"name":"look","arguments":{"city":"Rome"}},{"name":"hang_up"}]`, " | look " + call + " | hang_up {}"},
		{`{"tool_calls":[{"id":"1","type":"function","function":{"name":"look","arguments":"{\"city\":\"Rome\"}"}}]}`, " | look " + call},
		{`{"tool":"look","tool_input":{"city":"Rome"}}`, " | look " + call},
		{`{"recipient_name":"functions.look","parameters":{"city":"Rome"}}`, " | look " + call},
		{`{"name":"Ana","age":5}`, `{"name":"Ana","age":5}`},
		{`{"name":"look`, `{"name":"look`},
		{`{broken} and more`, `{broken} and more`},
		{`functions.look({"city":"Rome"})`, " | look " + call},
		{`functions.look {"city":"Rome"}`, " | look " + call},
		{"functions.hang_up()", " | hang_up {}"},
		{"functions.other({})", "functions.other({})"},
		{"functions of the body\nfun", "functions of the body\nfun"},

		{"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello!<|return|>", "Hello!"},
		{"<|channel|>final<|message|>Hello!", "Hello!"},
		{`<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"city":"Rome"}<|call|>`,
			" | look " + call},
		{`<|start|>assistant to=functions.look<|channel|>commentary json<|message|>{"city":"Rome"}<|call|>`, " | look " + call},
	} {
		for _, size := range []int{1, 2, 3, 7, 1000} {
			got, _ := read(t, proseTools, false, c.text, size)
			if got != c.want {
				t.Errorf("%q in pieces of %d is %q, want %q", c.text, size, got, c.want)
				break
			}
		}
	}
}

// Without tools, JSON is what was asked for, and calls are nobody's.
func TestProseWithoutTools(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"look","arguments":{}}`:                                      `{"name":"look","arguments":{}}`,
		"```json\n{\"a\":1}\n```":                                             "```json\n{\"a\":1}\n```",
		`<think>x</think>{"a":1}`:                                             `{"a":1}`,
		`<tool_call>{"name":"look","arguments":{}}</tool_call>Hello`:          "Hello",
		"functions.look({})":                                                  "functions.look({})",
		"<|channel|>analysis<|message|>x<|end|><|channel|>final<|message|>{}": "{}",
	} {
		for _, size := range []int{1, 5, 1000} {
			if got, _ := read(t, nil, false, text, size); got != want {
				t.Errorf("%q in pieces of %d is %q, want %q", text, size, got, want)
			}
		}
	}
}

// A model whose template begins its thoughts ends them alone: the next reply is silent until it does.
func TestProseLone(t *testing.T) {
	got, lone := read(t, nil, false, "Who is it?\n</think>\nHello!", 3)
	if got != "Who is it?\nHello!" || !lone {
		t.Errorf("%q, %v", got, lone)
	}
	for text, want := range map[string]string{"Who is it?\n</think>\nHello!": "Hello!", "No thought at all.": "No thought at all.",
		"<think>x</think>Hello!": "Hello!"} {
		for _, size := range []int{1, 4, 1000} {
			if got, _ := read(t, nil, true, text, size); got != want {
				t.Errorf("%q in pieces of %d is %q", text, size, got)
			}
		}
	}
	if _, lone := read(t, nil, true, "No thought at all.", 5); lone {
		t.Error("a model that writes no thought is taken for one that does")
	}
}

func FuzzProse(f *testing.F) {
	f.Add("<think>a</think>{\"name\":\"look\"}", 1)
	f.Add("<|channel|>x to=functions.look<|message|>{}", 3)
	f.Add("```json\n[{", 2)
	f.Fuzz(func(t *testing.T, text string, size int) {
		if len(text) > 2000 || size < 1 {
			return
		}
		read(t, proseTools, false, text, size)
		read(t, nil, true, text, size)
		if plain := "Plain words, " + fmt.Sprint(size); true {
			if got, _ := read(t, proseTools, false, plain, size); got != plain {
				t.Errorf("%q", got)
			}
		}
	})
}
