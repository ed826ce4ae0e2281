package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/local"
	"parley/internal/provider/openai"
)

// checkModels asks the OpenAI-compatible server for its models, which costs nothing.
func checkModels(ctx context.Context, s *Settings) []finding {
	if !s.openAI() {
		return []finding{{"note", "language model", "none: the built-in responder answers from the prompt and the knowledgebase. Set PARLEY_OPENAI_API_KEY, or PARLEY_OPENAI_BASE_URL and PARLEY_OPENAI_CHAT_MODEL for a server of your own"}}
	}
	base := s.OpenAIBaseURL
	if base == "" {
		base = openai.DefaultBaseURL
	}
	known, err := modelsOf(ctx, base, s.OpenAIAPIKey)
	if err != nil {
		return []finding{{"FAIL", "language model", err.Error()}}
	}
	at := func(what string, models ...string) finding {
		for _, m := range models {
			if len(known) > 0 && !slices.Contains(known, m) {
				return finding{"note", what, fmt.Sprintf("%s does not list %s; it lists %s", base, m, short(known))}
			}
		}
		return finding{"ok", what, base + " with " + strings.Join(models, ", ")}
	}
	list := []finding{at("language model", s.chatModels()...)}
	if s.OpenAITTSModel != "" {
		list = append(list, at("speech model", s.OpenAITTSModel))
	} else {
		list = append(list, finding{"note", "speech model", "none: voices are those of flite and espeak-ng. Set PARLEY_OPENAI_TTS_MODEL, such as gpt-4o-mini-tts"})
	}
	if s.OpenAISTTModel != "" {
		list = append(list, at("transcription", s.OpenAISTTModel))
	} else {
		list = append(list, finding{"note", "transcription", "none: pocketsphinx alone listens, to English. Set PARLEY_OPENAI_STT_MODEL, such as gpt-4o-mini-transcribe"})
	}
	return list
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

// checkEmbedder has one word embedded.
func checkEmbedder(ctx context.Context, s *Settings) finding {
	const what = "embedding model"
	if s.OpenAIEmbeddingModel == "" {
		return finding{"note", what, "none: documents are found by their words, not by what they mean. Set PARLEY_OPENAI_EMBEDDING_MODEL, such as text-embedding-3-small"}
	}
	p, err := s.providers()
	if err != nil {
		return finding{"FAIL", what, err.Error()}
	}
	defer p.Close()
	e, err := p.Embedder(s.OpenAIEmbeddingModel)
	if err != nil {
		return finding{"FAIL", what, err.Error() + ": set PARLEY_OPENAI_API_KEY or PARLEY_OPENAI_BASE_URL too"}
	}
	v, err := e.Embed(ctx, []string{"doctor"})
	if err != nil {
		return finding{"FAIL", what, fmt.Sprintf("%s: %v; documents can't be read as long as it fails", s.OpenAIEmbeddingModel, ai.TheEmbedder.Of(err))}
	}
	return finding{"ok", what, fmt.Sprintf("%s answers, with %d dimensions", s.OpenAIEmbeddingModel, len(v[0]))}
}

// checkSpeech has the programs that speak and listen without a vendor do so.
func checkSpeech(ctx context.Context) (list []finding) {
	for _, p := range []struct {
		name, voice string
		s           ai.Synthesizer
		find        func() (string, error)
	}{
		{"flite", "rms", local.Flite{}, local.Flite{}.Find},
		{"espeak-ng", "en-us", local.ESpeak{}, local.ESpeak{}.Find},
	} {
		path, err := p.find()
		if err != nil {
			list = append(list, finding{"note", p.name, "not installed: its voices are silent. apt-get install " + p.name})
			continue
		}
		began, first := time.Now(), time.Duration(0)
		err = p.s.Speak(ctx, ai.Speech{Text: "Hello there.", Voice: p.voice, Language: "en", Rate: audio.Narrow}, func([]int16) error {
			if first == 0 {
				first = time.Since(began)
			}
			return nil
		})
		switch {
		case err != nil:
			list = append(list, finding{"FAIL", p.name, ai.TheVoice.Of(err).Error()})
		default:
			list = append(list, finding{"ok", p.name, fmt.Sprintf("%s speaks after %d ms", path, first.Milliseconds())})
		}
	}
	return append(list, checkSphinx(ctx))
}

func checkSphinx(ctx context.Context) finding {
	const what = "pocketsphinx"
	sphinx := local.NewSphinx(local.SphinxConfig{})
	defer sphinx.Close()
	if err := sphinx.Find(); err != nil {
		return finding{"note", what, fmt.Sprintf("not there: nobody listens without a provider. %v", errors.Unwrap(err))}
	}
	if err := sphinx.Check(ctx); err != nil {
		return finding{"FAIL", what, fmt.Sprintf("%v (it needs the packages pocketsphinx, pocketsphinx-en-us and python3)", errors.Unwrap(err))}
	}
	return finding{"ok", what, fmt.Sprintf("understands English, some %d at once on %d cores", local.DecodersPerCore*runtime.NumCPU(), runtime.NumCPU())}
}
