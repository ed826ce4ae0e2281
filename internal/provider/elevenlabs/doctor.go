package elevenlabs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/internal/ai"
	"parley/internal/parley"
)

// check lists ElevenLabs' models, which costs nothing, and says what the key is used for.
func (s *Settings) check(ctx context.Context) []parley.Finding {
	found := func(state, format string, a ...any) []parley.Finding {
		return []parley.Finding{{State: state, What: Code, Text: fmt.Sprintf(format, a...)}}
	}
	if s.APIKey == "" {
		return found("note", "not configured: set PARLEY_ELEVENLABS_API_KEY for its speech and transcription")
	}
	c, err := open(s)
	if err != nil {
		return found("FAIL", "PARLEY_ELEVENLABS_BASE_URL: %v", err)
	}
	defer c.close()
	var models []struct {
		ID     string `json:"model_id"`
		Speaks bool   `json:"can_do_text_to_speech"`
	}
	err = c.ask(ctx, "/v1/models", s.APIKey, &models)
	var failure *ai.Error
	switch {
	case errors.As(err, &failure) && strings.Contains(failure.Error(), "missing_permissions"):
		return found("note", "%s knows the key in PARLEY_ELEVENLABS_API_KEY, which may not list models (models_read); speech with %s, "+
			"transcription with %s are not checked", c.base, s.TTSModel, s.STTModel)
	case failure != nil && failure.Kind == ai.Config:
		return found("FAIL", "%s refuses the key in PARLEY_ELEVENLABS_API_KEY: %v", c.base, failure.Err)
	case err != nil:
		return found("FAIL", "%s: %v", c.base, err)
	}
	var known []string
	for _, m := range models {
		if m.Speaks {
			known = append(known, m.ID)
		}
	}
	if len(known) > 0 && !slices.Contains(known, s.TTSModel) {
		return found("note", "%s does not list %s, which PARLEY_ELEVENLABS_TTS_MODEL names; it lists %s", c.base,
			s.TTSModel, strings.Join(known, ", "))
	}
	return found("ok", "%s answers: speech with %s, transcription with %s", c.base, s.TTSModel, s.STTModel)
}
