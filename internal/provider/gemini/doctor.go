package gemini

import (
	"context"
	"strings"

	"parley"
	"parley/internal/provider/rest"
)

// check asks for each model, which costs nothing.
func (s *Settings) check(ctx context.Context) []parley.Finding {
	if !s.configured() {
		return []parley.Finding{{State: "note", What: Code,
			Text: "not configured: set PARLEY_GEMINI_API_KEY for assistants that think with Gemini"}}
	}
	c, err := Open(Config{BaseURL: s.BaseURL, APIKey: s.APIKey, Stall: s.Stall})
	if err != nil {
		return []parley.Finding{{State: "FAIL", What: Code, Text: "PARLEY_GEMINI_BASE_URL: " + err.Error()}}
	}
	defer c.Close()
	var models []string
	for _, m := range s.models() {
		models = append(models, strings.TrimPrefix(m, "models/"))
	}
	return []parley.Finding{rest.Doctor{What: Code, Setting: "PARLEY_GEMINI", Path: "/v1beta/models/",
		Use: "think"}.Check(ctx, c.rest, models)}
}
