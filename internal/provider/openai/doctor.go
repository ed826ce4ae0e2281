package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"parley"
	"parley/internal/ai"
)

// check asks the server for its models, which costs nothing, and has one word embedded.
func (s *Settings) check(ctx context.Context) []parley.Finding {
	return append(s.checkModels(ctx), s.checkEmbedder(ctx))
}

func (s *Settings) checkModels(ctx context.Context) []parley.Finding {
	if !s.configured() {
		return []parley.Finding{{State: "note", What: "language model",
			Text: "none: the built-in responder answers from the prompt and the knowledgebase. Set PARLEY_OPENAI_API_KEY, or PARLEY_OPENAI_BASE_URL and PARLEY_OPENAI_CHAT_MODEL for a server of your own"}}
	}
	base := cmp.Or(s.BaseURL, DefaultBaseURL)
	known, err := modelsOf(ctx, base, s.APIKey)
	if err != nil {
		return []parley.Finding{{State: "FAIL", What: "language model", Text: err.Error()}}
	}
	at := func(what string, models ...string) parley.Finding {
		for _, m := range models {
			if len(known) > 0 && !slices.Contains(known, m) {
				return parley.Finding{State: "note", What: what,
					Text: fmt.Sprintf("%s does not list %s; it lists %s", base, m, short(known))}
			}
		}
		return parley.Finding{State: "ok", What: what, Text: base + " with " + strings.Join(models, ", ")}
	}
	list := []parley.Finding{at("language model", s.chatModels()...)}
	if s.TTSModel != "" {
		list = append(list, at("speech model", s.TTSModel))
	} else {
		list = append(list, parley.Finding{State: "note", What: "speech model",
			Text: "none: voices are those of flite and espeak-ng. Set PARLEY_OPENAI_TTS_MODEL, such as gpt-4o-mini-tts"})
	}
	if s.STTModel != "" {
		return append(list, at("transcription", s.STTModel))
	}
	return append(list, parley.Finding{State: "note", What: "transcription",
		Text: "none: pocketsphinx alone listens, to English. Set PARLEY_OPENAI_STT_MODEL, such as gpt-4o-mini-transcribe"})
}

// short names a few of many.
func short(list []string) string {
	const few = 5
	if len(list) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), len(list)-few)
	}
	return strings.Join(list, ", ")
}

// modelsOf is what a server lists; none where it doesn't say.
func modelsOf(ctx context.Context, base, key string) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/models", nil)
	if err != nil {
		return nil, errors.New("PARLEY_OPENAI_BASE_URL is no URL")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s can't be reached: %w", base, err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // what is no list counts as none
	switch {
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden:
		return nil, errors.New(base + " refuses the key in PARLEY_OPENAI_API_KEY")
	case res.StatusCode >= 500:
		return nil, fmt.Errorf("%s answers %s", base, res.Status)
	}
	var answer struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	_ = json.Unmarshal(body, &answer)
	var ids []string
	for _, m := range answer.Data {
		ids = append(ids, m.ID)
	}
	return ids, nil
}

func (s *Settings) checkEmbedder(ctx context.Context) parley.Finding {
	found := func(state, format string, a ...any) parley.Finding {
		return parley.Finding{State: state, What: "embedding model", Text: fmt.Sprintf(format, a...)}
	}
	if s.EmbeddingModel == "" {
		return found("note", "none: documents are found by their words, not by what they mean. Set PARLEY_OPENAI_EMBEDDING_MODEL, such as text-embedding-3-small")
	}
	o, err := s.open()
	if err != nil {
		return found("FAIL", "%v", err)
	}
	defer o.Close()
	e, err := o.Embedder()
	if err != nil {
		return found("FAIL", "%v: set PARLEY_OPENAI_API_KEY or PARLEY_OPENAI_BASE_URL too", err)
	}
	v, err := e.Embed(ctx, []string{"doctor"})
	if err != nil {
		return found("FAIL", "%s: %v; documents can't be read as long as it fails", s.EmbeddingModel,
			ai.TheEmbedder.Of(err))
	}
	return found("ok", "%s answers, with %d dimensions", s.EmbeddingModel, len(v[0]))
}
