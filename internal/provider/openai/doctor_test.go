package openai

import (
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/parley"
)

// The doctor says which models the server has, and whether it makes vectors; it names what is missing.
func TestDoctor(t *testing.T) {
	srv := aitest.NewServer(t)
	srv.APIKey = "k3y"
	good := Settings{BaseURL: srv.URL, APIKey: "k3y", ChatModel: []string{aitest.ModelName},
		TTSModel: aitest.SpeechModel,
		STTModel: aitest.TranscriptionModel, EmbeddingModel: aitest.EmbeddingModel}
	srv.Ends = map[string]string{aitest.DetectingModel: time.Now().AddDate(0, 0, 30).Format(time.DateOnly),
		aitest.TranscriptionModel: time.Now().AddDate(1, 0, 0).Format(time.DateOnly), aitest.SpeechModel: "soon"}
	for name, c := range map[string]struct {
		change func(*Settings)
		want   []string // the state, what it is about, and a part of the text
	}{
		"all is well": {func(*Settings) {},
			[]string{"ok|language model|test-model", "ok|speech model|test-tts", "ok|transcription|test-stt",
				"ok|embedding model|of 64 dimensions"}},
		"a wrong key": {func(s *Settings) { s.APIKey = "wr0ng" },
			[]string{"FAIL|language model|PARLEY_OPENAI_API_KEY", "FAIL|speech model|PARLEY_OPENAI_TTS_API_KEY",
				"FAIL|transcription|PARLEY_OPENAI_STT_API_KEY", "FAIL|embedding model|401"}},
		"nobody there": {func(s *Settings) { s.BaseURL = "http://127.0.0.1:1/v1" },
			[]string{"FAIL|language model|can't be reached", "FAIL|speech model|PARLEY_OPENAI_TTS_BASE_URL",
				"FAIL|transcription|PARLEY_OPENAI_STT_BASE_URL", "FAIL|embedding model|unreachable"}},
		"other speech models": {func(s *Settings) { s.TTSModel, s.STTModel = "tts-9", "stt-9" },
			[]string{"ok|language model|", "note|speech model|does not list tts-9",
				"note|transcription|does not list stt-9", "ok|embedding model|"}},
		"a model that is shut down in a month": {func(s *Settings) { s.STTModel = aitest.DetectingModel },
			[]string{"ok|language model|", "ok|speech model|",
				"note|transcription|gpt-transcribe is retired by " + srv.URL + " on " + time.Now().AddDate(0, 0, 30).UTC().Format("2 January 2006"),
				"ok|embedding model|"}},
		"no speech models": {func(s *Settings) { s.TTSModel, s.STTModel = "", "" },
			[]string{"ok|language model|", "note|speech model|PARLEY_OPENAI_TTS_MODEL",
				"note|transcription|PARLEY_OPENAI_STT_MODEL", "ok|embedding model|"}},
		"another embedder": {func(s *Settings) { s.EmbeddingModel = "other" },
			[]string{"ok|language model|", "ok|speech model|", "ok|transcription|", "FAIL|embedding model|404"}},
		"a GPT-Live model": {func(s *Settings) { s.LiveModel, s.LiveThinker = []string{aitest.SpeechModel}, aitest.ModelName },
			[]string{"ok|language model|", "ok|speech model|", "ok|transcription|", "ok|GPT-Live model|" + aitest.SpeechModel,
				"ok|GPT-Live thinker|" + aitest.ModelName, "ok|embedding model|"}},
		"a GPT-Live model without its thinker": {func(s *Settings) { s.LiveModel, s.LiveThinker = []string{aitest.SpeechModel}, "thinker-9" },
			[]string{"ok|language model|", "ok|speech model|", "ok|transcription|", "ok|GPT-Live model|",
				"note|GPT-Live thinker|does not list thinker-9 (PARLEY_OPENAI_LIVE_THINKER)", "ok|embedding model|"}},
		"a GPT-Live model whose server asks for a key": {func(s *Settings) {
			s.LiveModel, s.RealtimeBaseURL, s.RealtimeAPIKey = []string{aitest.SpeechModel}, srv.URL+"/", "wr0ng"
		}, []string{"ok|language model|", "ok|speech model|", "ok|transcription|", "FAIL|GPT-Live model|PARLEY_OPENAI_REALTIME_API_KEY",
			"FAIL|GPT-Live thinker|PARLEY_OPENAI_REALTIME_API_KEY", "ok|embedding model|"}},
		"no vendor": {func(s *Settings) { *s = Settings{} },
			[]string{"note|language model|built-in", "note|embedding model|PARLEY_OPENAI_EMBEDDING_MODEL"}},
		"an embedder alone": {func(s *Settings) { *s = Settings{EmbeddingModel: "e"} },
			[]string{"note|language model|", "FAIL|embedding model|PARLEY_OPENAI_BASE_URL"}},
		"a voice alone": {func(s *Settings) { *s = Settings{TTSModel: "e"} },
			[]string{"note|language model|", "FAIL|speech model|PARLEY_OPENAI_TTS_BASE_URL", "note|embedding model|"}},
		"servers of their own": {func(s *Settings) {
			s.BaseURL, s.APIKey = "http://127.0.0.1:1/v1", "wr0ng"
			s.TTSBaseURL, s.TTSAPIKey = srv.URL+"/", "k3y"
			s.STTBaseURL, s.RealtimeBaseURL, s.RealtimeModel = srv.URL, srv.URL, []string{aitest.ModelName}
			s.RealtimeAPIKey = "k3y"
			s.EmbeddingBaseURL, s.EmbeddingAPIKey = srv.URL, "k3y"
		}, []string{"FAIL|language model|127.0.0.1:1", "ok|speech model|" + srv.URL,
			"FAIL|transcription|asks for a key: set PARLEY_OPENAI_STT_API_KEY", "ok|realtime model|" + aitest.ModelName,
			"ok|embedding model|" + srv.URL}},
	} {
		s := good
		c.change(&s)
		compare(t, name, Declare(&s).Check(t.Context()), c.want)
	}
}

func compare(t *testing.T, name string, got []parley.Finding, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %+v, want %q", name, got, want)
		return
	}
	for i, f := range got {
		w := strings.SplitN(want[i], "|", 3)
		if f.State != w[0] || f.What != w[1] || !strings.Contains(f.Text, w[2]) ||
			strings.Contains(f.Text, "k3y") || strings.Contains(f.Text, "wr0ng") {
			t.Errorf("%s: got %+v, want %q", name, f, want[i])
		}
	}
}
