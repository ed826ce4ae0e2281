package call

import (
	"maps"

	"parley/internal/parley"
	"parley/internal/stage"
)

// testOf is the token of the test that a call is, "" for a real call. Only calls from a softphone and calls that are
// made can be tests, by a token that their owner was given; variables of other calls are what they are.
func testOf(c *parley.Call) string {
	own := c.Type == parley.CallInbound && c.NumberID == nil || c.Type == parley.CallOutbound
	if own && stage.Is(c.InputVariables[stage.Variable]) {
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
	return d.staging(in.From, a, nil)
}

// staging is the stage of a token, with the variables of its call: given, and those of the stage where none are.
func (d *Center) staging(token string, a *parley.Assistant, given map[string]string) (*staging, error) {
	s := d.Assistants.Stages.Find(token)
	if s == nil || s.AssistantID != a.ID || s.UserID != a.UserID {
		return nil, errNobody
	}
	vars := map[string]string{}
	maps.Copy(vars, s.Variables)
	maps.Copy(vars, given)
	vars[stage.Variable] = token
	return &staging{s, vars}, nil
}
