package parley

import (
	"strings"
	"unicode"
)

// The most that the variables of one thing may hold: their number, and the bytes of their names and values together. No
// rendering brings more.
const (
	MaxVariables     = 200
	MaxVariableBytes = MaxRendered
)

// CheckVariables adds the error of variables that are too many or hold too much.
func CheckVariables(vars map[string]string, f *Fields) {
	size := 0
	for name, value := range vars {
		size += len(name) + len(value)
	}
	switch {
	case len(vars) > MaxVariables:
		f.Add("variables", "must not have more than %d entries.", MaxVariables)
	case size > MaxVariableBytes:
		f.Add("variables", "must not hold more than %d bytes altogether.", MaxVariableBytes)
	}
}

// MaxAnswer is how many characters a visitor may put into one variable: as many as the widget's boxes take.
const MaxAnswer = 500

// Answers are those of vars that the pre-chat fields ask for, as a visitor may give them: others are left out, in a
// field of one line a line break becomes a space, and what is too long is the field's error. Without them a visitor
// could put their own words wherever the owner's variables stand in a prompt.
func (w *WidgetSettings) Answers(vars map[string]string, f *Fields) map[string]string {
	answers := map[string]string{}
	for _, field := range w.PreChatFields {
		given, ok := vars[field.Variable]
		if !ok {
			continue
		}
		text := VisitorText(given, field.Type == "textarea")
		if len([]rune(text)) > MaxAnswer {
			f.Add("variables."+field.Variable, "must not be greater than %d characters.", MaxAnswer)
			continue
		}
		answers[field.Variable] = text
	}
	return answers
}

// VisitorText is what a visitor or a customer wrote, or calls themselves, as it may stand in a prompt: without
// control characters, and in one line unless lines are wanted.
func VisitorText(text string, lines bool) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		switch {
		case c == '\n' && lines:
			return c
		case unicode.IsControl(c) || c == '\u2028' || c == '\u2029':
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD")))
}

// EveryVisitor in Conversation.VisitorNames says that whoever talks to the assistant gave all variables: it is what a
// row says that was written before anybody noted who gave them.
const EveryVisitor = "*"

// GivenBy parts the variables of a conversation: what the assistant's owner gave, and what its visitor wrote.
func (c *Conversation) GivenBy() (owner, visitor map[string]string) {
	if c.Type == TestConversation || c.Type == APIConversation { // they need the owner's credential
		return c.Variables, nil
	}
	if c.VisitorNames == EveryVisitor {
		return nil, c.Variables
	}
	return Part(c.Variables, strings.Fields(c.VisitorNames))
}

// Part parts variables into those that the names don't name, and those that they do.
func Part(vars map[string]string, names []string) (others, named map[string]string) {
	others, named = map[string]string{}, map[string]string{}
	for name, value := range vars {
		others[name] = value
	}
	for _, name := range names {
		if value, ok := vars[name]; ok {
			named[name] = value
			delete(others, name)
		}
	}
	return others, named
}
