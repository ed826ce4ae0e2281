package exam

import (
	"slices"
	"strings"

	"parley/internal/parley"
)

// exchange is what the customer said, and what came of it. The first of a dialog may have no customer: it is what the
// assistant said first.
type exchange struct {
	customer, assistant string
	tools               []parley.FunctionCall
}

// dialog is a conversation in exchanges.
type dialog []exchange

func (d *dialog) customer(text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	if n := len(*d) - 1; n >= 0 && (*d)[n].customer != "" && (*d)[n].assistant == "" && len((*d)[n].tools) == 0 {
		(*d)[n].customer += " " + text // they went on
		return
	}
	*d = append(*d, exchange{customer: text})
}

func (d *dialog) last() *exchange {
	if len(*d) == 0 {
		*d = append(*d, exchange{})
	}
	return &(*d)[len(*d)-1]
}

func (d *dialog) assistant(text string) {
	e := d.last()
	e.assistant = strings.TrimSpace(e.assistant + " " + strings.TrimSpace(text))
}

func (d *dialog) tool(f parley.FunctionCall) {
	e := d.last()
	e.tools = append(e.tools, f)
}

// ofCall is a call's dialog. A tool belongs to what the customer said before it was called.
func ofCall(turns []parley.CallTurn, tools []parley.CallTool) (d dialog) {
	turns = slices.Clone(turns)
	slices.SortStableFunc(turns, func(a, b parley.CallTurn) int { return int(a.StartedAtMS - b.StartedAtMS) })
	for _, t := range turns {
		for len(tools) > 0 && tools[0].AtMS < t.StartedAtMS {
			d.tool(tools[0].FunctionCall)
			tools = tools[1:]
		}
		if t.Speaker == "customer" {
			d.customer(t.Text)
		} else {
			d.assistant(t.Text)
		}
	}
	for _, t := range tools {
		d.tool(t.FunctionCall)
	}
	return d
}

// ofMessages is a text conversation's dialog.
func ofMessages(list []parley.Message) (d dialog) {
	for i := range list {
		m := &list[i]
		if m.Role == parley.RoleUser {
			d.customer(m.Content)
			continue
		}
		for _, f := range m.FunctionCalls {
			d.tool(f)
		}
		d.assistant(m.Content)
	}
	return d
}

// Turn is one exchange of a conversation that was replayed: what the assistant said then, and what it says now.
type Turn struct {
	Customer    string   `json:"customer" doc:"Empty if the assistant began."`
	Before      string   `json:"before"`
	Now         string   `json:"now"`
	ToolsBefore []string `json:"tools_before" doc:"Calls of tools, such as book{\"party\":2}."`
	ToolsNow    []string `json:"tools_now"`
	Same        bool     `json:"same" doc:"Words and calls of tools are the same."`
}

// sideBySide pairs what was said then and now, by the customer's turns.
func sideBySide(before, now dialog) []Turn {
	// the one that the customer began has no first words of the assistant's to pair
	if len(before) > 0 && len(now) > 0 && (before[0].customer == "") != (now[0].customer == "") {
		if before[0].customer != "" {
			before = append(dialog{{}}, before...)
		} else {
			now = append(dialog{{}}, now...)
		}
	}
	list := []Turn{}
	for i := range max(len(before), len(now)) {
		var b, n exchange
		if i < len(before) {
			b = before[i]
		}
		if i < len(now) {
			n = now[i]
		}
		t := Turn{Customer: b.customer, Before: b.assistant, Now: n.assistant, ToolsBefore: b.calls(), ToolsNow: n.calls()}
		if i >= len(before) {
			t.Customer = n.customer
		}
		t.Same = words(t.Before) == words(t.Now) && slices.Equal(t.ToolsBefore, t.ToolsNow)
		list = append(list, t)
	}
	return list
}

// words are a text's words, whatever their case and the marks between them.
func words(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return strings.ContainsRune(" \t\r\n.,;:!?…\"'", r) }), " ")
}

func (e *exchange) calls() []string {
	list := []string{}
	for _, f := range e.tools {
		list = append(list, f.Name+string(f.Arguments))
	}
	return list
}
