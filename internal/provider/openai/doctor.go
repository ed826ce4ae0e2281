package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/parley"
)

// check lists each server's models, which costs nothing, and requests the vector of one word.
func (s *Settings) check(ctx context.Context) []parley.Finding {
	d := &doctor{asked: map[server]answer{}, known: s.retired()}
	list := []parley.Finding{d.models(ctx, "language model", ai.TheModel, "", "CHAT_MODEL", s.general(), s.chatModels(),
		"none of this vendor: without another one the built-in responder answers from the prompt and the knowledgebase. "+
			"Set PARLEY_OPENAI_API_KEY, or PARLEY_OPENAI_BASE_URL and PARLEY_OPENAI_CHAT_MODEL for a server of your own")}
	thinker := ""
	if len(s.liveModels()) > 0 {
		thinker = s.thinker()
	}
	for _, a := range []struct {
		what, name, model string
		part              ai.Part
		at                server
		models            []string
		without           string
	}{
		{"speech model", "TTS", "TTS_MODEL", ai.TheVoice, s.tts(), some(s.TTSModel),
			"none: voices are those of flite and espeak-ng. Set PARLEY_OPENAI_TTS_MODEL, such as gpt-realtime-2.1-mini"},
		{"transcription", "STT", "STT_MODEL", ai.TheRecognizer, s.stt(), some(s.STTModel),
			"none: pocketsphinx alone listens, to English. Set PARLEY_OPENAI_STT_MODEL, such as gpt-transcribe"},
		{"realtime model", "REALTIME", "REALTIME_MODEL", ai.TheModel, s.realtime(), s.realtimeModels(), ""},
		{"GPT-Live model", "REALTIME", "LIVE_MODEL", ai.TheModel, s.realtime(), s.liveModels(), ""},
		{"GPT-Live thinker", "REALTIME", "LIVE_THINKER", ai.TheModel, s.realtime(), some(thinker), ""},
	} {
		switch {
		case len(a.models) > 0:
			list = append(list, d.models(ctx, a.what, a.part, a.name+"_", a.model, a.at, a.models,
				fmt.Sprintf("%s has no server: set PARLEY_OPENAI_%s_BASE_URL or PARLEY_OPENAI_API_KEY",
					strings.Join(a.models, ", "), a.name)))
		case a.at.there() && a.without != "":
			list = append(list, parley.Finding{State: parley.DoctorNote, What: a.what, Text: a.without, Part: string(a.part)})
		}
	}
	return append(list, s.checkEmbedder(ctx))
}

// some is a list with one entry, or an empty one.
func some(model string) []string {
	if model == "" {
		return nil
	}
	return []string{model}
}

// doctor asks each server once.
type doctor struct {
	asked map[server]answer
	known ai.Retirements // that are told without asking
}

type answer struct {
	models []string          // none where the server doesn't say
	ends   map[string]string // the days on which models are shut down, where it says so
	err    error
	key    bool   // the key was refused
	stack  *stack // who answers, nil where that is not known
}

// models reports whether a server responds and has the models of an ability, whose settings begin with name; model is the setting that
// names them. If the ability has no server and could have one, it says why.
func (d *doctor) models(ctx context.Context, what string, part ai.Part, name, model string, at server, models []string,
	without string) parley.Finding {
	found := func(state, format string, a ...any) parley.Finding {
		return parley.Finding{State: state, What: what, Text: fmt.Sprintf(format, a...), Part: string(part)}
	}
	if !at.there() {
		if name == "" {
			return found("note", "%s", without)
		}
		return found("FAIL", "%s", without)
	}
	a, ok := d.asked[at]
	if !ok {
		a = list(ctx, at)
		d.asked[at] = a
	}
	setting := "PARLEY_OPENAI_" + name
	model = "PARLEY_OPENAI_" + model
	switch {
	case a.key && at.key == "":
		return found("FAIL", "%s asks for a key: set %sAPI_KEY", at.base, setting)
	case a.key:
		return found("FAIL", "%s refuses the key in %sAPI_KEY (or PARLEY_OPENAI_API_KEY)", at.base, setting)
	case a.err != nil:
		return found("FAIL", "%v: check %sBASE_URL (or PARLEY_OPENAI_BASE_URL) and the network", a.err, setting)
	}
	if len(a.models) == 0 {
		if other := elsewhere(ctx, at); other != "" {
			return found("FAIL", "%s has no list of models, but %s has: set %sBASE_URL (or PARLEY_OPENAI_BASE_URL) to that", at.base, other, setting)
		}
	}
	if a.stack != nil && a.stack.mute != "" {
		return found("FAIL", "%s is %s: %s", at.base, a.stack.name, a.stack.mute)
	}
	for _, m := range models {
		if len(a.models) > 0 && !a.has(m) {
			state, text := a.stack.missing(at.base, m, a.models, model)
			return found(state, "%s", text)
		}
	}
	for _, m := range models {
		said := ai.Retirement{Model: m, Day: a.ends[m]}
		if said.Day != "" && d.known.Of(m) == nil && said.Near(time.Now()) {
			return found("note", "%s answers, with %s; %s: set %s to another", at.base, strings.Join(models, ", "),
				said.Said(at.base, m, time.Now()), model)
		}
	}
	if a.stack != nil && name != "REALTIME_" {
		state, text := a.stack.tried(ctx, at, part, models, setting, model)
		return found(state, "%s", text)
	}
	return found("ok", "%s answers, with %s", at.base, strings.Join(models, ", "))
}

// short names the first few of many.
func short(list []string) string {
	const few = 5
	if len(list) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), len(list)-few)
	}
	return strings.Join(list, ", ")
}

// list requests the list of a server's models.
func list(ctx context.Context, at server) answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.base+"/models", nil)
	if err != nil {
		return answer{err: errors.New("the base URL is none")}
	}
	if at.key != "" {
		req.Header.Set("Authorization", "Bearer "+at.key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{err: fmt.Errorf("%s can't be reached: %w", at.base, err)}
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // what is no list counts as none
	switch {
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden:
		return answer{key: true}
	case res.StatusCode >= 500:
		return answer{err: fmt.Errorf("%s answers %s", at.base, res.Status)}
	}
	var all struct {
		Data []struct {
			ID  string `json:"id"`
			End string `json:"shutdown_date"` // as OpenAI's own server has it
		} `json:"data"`
	}
	_ = json.Unmarshal(body, &all)
	a := answer{ends: map[string]string{}, stack: recognize(res.Header, body)}
	if a.stack == nil && at.base != DefaultBaseURL {
		a.stack = identify(ctx, at.base)
	}
	for _, m := range all.Data {
		a.models = append(a.models, m.ID)
		if _, err := time.Parse(time.DateOnly, m.End); err == nil {
			a.ends[m.ID] = m.End
		}
	}
	return a
}

func (s *Settings) checkEmbedder(ctx context.Context) parley.Finding {
	found := func(state, format string, a ...any) parley.Finding {
		return parley.Finding{State: state, What: "embedding model", Text: fmt.Sprintf(format, a...), Part: string(ai.TheEmbedder)}
	}
	if s.EmbeddingModel == "" {
		return found("note", "none: documents are found by their words, not by what they mean. "+
			"Set PARLEY_OPENAI_EMBEDDING_MODEL, such as text-embedding-3-small")
	}
	at := s.embedding()
	if !at.there() {
		return found("FAIL", "%s has no server: set PARLEY_OPENAI_EMBEDDING_BASE_URL, PARLEY_OPENAI_API_KEY or PARLEY_OPENAI_BASE_URL",
			s.EmbeddingModel)
	}
	c, err := Open(Config{BaseURL: at.base, APIKey: at.key, Stall: s.Stall})
	if err != nil {
		return found("FAIL", "%v: check PARLEY_OPENAI_EMBEDDING_BASE_URL (or PARLEY_OPENAI_BASE_URL)", err)
	}
	defer c.Close()
	v, err := c.Embedder(s.EmbeddingModel).Embed(ctx, []string{"doctor"})
	if err != nil {
		return found("FAIL", "%s at %s: %v; documents can't be read as long as it fails", s.EmbeddingModel, at.base,
			ai.TheEmbedder.Of(err))
	}
	return found("ok", "%s answers, with %s, of %d dimensions", at.base, s.EmbeddingModel, len(v[0]))
}
