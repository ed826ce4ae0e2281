package call

import (
	"maps"

	"parley"
	"parley/internal/stage"
)

// testOf is the token of the test that a call is, "" for a real call. Only a softphone's calls can be tests, by a token
// that their owner was given; variables of other calls are what they are.
func testOf(c *parley.Call) string {
	if c.Type == parley.CallInbound && c.NumberID == nil && stage.Is(c.InputVariables[stage.Variable]) {
		return c.InputVariables[stage.Variable]
	}
	return ""
}

// staging is a stage that a call begins on.
type staging struct {
	*stage.Stage
	variables map[string]string
}

// staged is the stage of a call from a softphone that calls in a token's name; nil for a real call. Nobody is there for
// a token that is not known or is another assistant's: a call that wants to be a test must not become a real one.
func (d *Center) staged(in Arrival, a *parley.Assistant) (*staging, error) {
	if in.AssistantID == 0 || !stage.Is(in.From) {
		return nil, nil
	}
	s := d.Assistants.Stages.Find(in.From)
	if s == nil || s.AssistantID != a.ID || s.UserID != a.UserID {
		return nil, errNobody
	}
	vars := maps.Clone(s.Variables)
	if vars == nil {
		vars = map[string]string{}
	}
	vars[stage.Variable] = in.From
	return &staging{s, vars}, nil
}
