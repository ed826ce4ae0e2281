package anthropic

import (
	"context"

	"parley/internal/parley"
	"parley/internal/provider/rest"
)

// check requests the description of each model, which costs nothing.
func (s *Settings) check(ctx context.Context) []parley.Finding {
	if !s.configured() {
		return []parley.Finding{{State: "note", What: Code,
			Text: "not configured: set PARLEY_ANTHROPIC_API_KEY for assistants that think with Claude"}}
	}
	c, err := Open(Config{BaseURL: s.BaseURL, APIKey: s.APIKey, Stall: s.Stall})
	if err != nil {
		return []parley.Finding{{State: "FAIL", What: Code, Text: "PARLEY_ANTHROPIC_BASE_URL: " + err.Error()}}
	}
	defer c.Close()
	return []parley.Finding{rest.Doctor{What: Code, Setting: "PARLEY_ANTHROPIC", Path: "/v1/models/",
		Use: "think"}.Check(ctx, c.rest, s.models())}
}
