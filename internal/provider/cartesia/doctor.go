package cartesia

import (
	"context"
	"errors"
	"fmt"

	"parley/internal/ai"
	"parley/internal/parley"
)

// check requests one voice, which costs nothing, and says what the key is used for.
func (s *Settings) check(ctx context.Context) []parley.Finding {
	found := func(state, format string, a ...any) []parley.Finding {
		return []parley.Finding{{State: state, What: Code, Text: fmt.Sprintf(format, a...)}}
	}
	if s.APIKey == "" {
		return found("note", "not configured: set PARLEY_CARTESIA_API_KEY for its speech and transcription")
	}
	c, err := open(s)
	if err != nil {
		return found("FAIL", "PARLEY_CARTESIA_BASE_URL: %v", err)
	}
	defer c.close()
	err = c.reach(ctx)
	var failure *ai.Error
	switch {
	case errors.As(err, &failure) && failure.Kind == ai.Config:
		return found("FAIL", "%s refuses the key in PARLEY_CARTESIA_API_KEY: %v", c.base, failure.Err)
	case err != nil:
		return found("FAIL", "%s: %v", c.base, err)
	}
	return found("ok", "%s answers: speech with %s, transcription with %s", c.base, s.TTSModel, s.STTModel)
}
