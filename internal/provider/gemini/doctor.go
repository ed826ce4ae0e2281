package gemini

import (
	"context"
	"strings"

	"parley/internal/parley"
	"parley/internal/provider/rest"
)

// check asks for each model, which costs nothing.
func (s *Settings) check(ctx context.Context) []parley.Finding {
	if !s.configured() {
		return []parley.Finding{{State: "note", What: Code,
			Text: "not configured: set PARLEY_GEMINI_API_KEY for assistants that think, or hear and speak, with Gemini"}}
	}
	c, err := Open(Config{BaseURL: s.BaseURL, APIKey: s.APIKey, Stall: s.Stall})
	if err != nil {
		return []parley.Finding{{State: "FAIL", What: Code, Text: "PARLEY_GEMINI_BASE_URL: " + err.Error()}}
	}
	defer c.Close()
	named := func(list []string) (models []string) {
		for _, m := range list {
			models = append(models, strings.TrimPrefix(m, "models/"))
		}
		return models
	}
	thinks := rest.Doctor{What: Code, Setting: "PARLEY_GEMINI", Path: "/v1beta/models/", Use: "think"}.Check(ctx, c.rest,
		named(s.models()))
	if thinks.State == "FAIL" {
		return []parley.Finding{thinks}
	}
	speaks := rest.Doctor{What: Code + " live", Setting: "PARLEY_GEMINI_LIVE", Path: "/v1beta/models/",
		Use: "hear and speak"}.Check(ctx, c.rest, named(s.live()))
	if speaks.State == "FAIL" && len(s.Live) == 0 { // nobody asked for it
		speaks.State = "note"
	}
	return []parley.Finding{thinks, speaks}
}
