package main

import (
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/ai/aitest"
)

// The doctor says which models the server has, and whether vectors come; it names what is missing.
func TestDoctorOnVendors(t *testing.T) {
	srv := aitest.NewServer(t)
	srv.APIKey = "k3y"
	good := Settings{OpenAIBaseURL: srv.URL, OpenAIAPIKey: "k3y", OpenAIChatModel: []string{aitest.ModelName}, OpenAITTSModel: aitest.SpeechModel,
		OpenAISTTModel: aitest.TranscriptionModel, OpenAIEmbeddingModel: aitest.EmbeddingModel}
	for name, c := range map[string]struct {
		change func(*Settings)
		want   []string // state, what, and a part of the text
	}{
		"all is well":         {func(*Settings) {}, []string{"ok|language model|test-model", "ok|speech model|test-tts", "ok|transcription|test-stt", "ok|embedding model|64 dimensions"}},
		"a wrong key":         {func(s *Settings) { s.OpenAIAPIKey = "wr0ng" }, []string{"FAIL|language model|PARLEY_OPENAI_API_KEY", "FAIL|embedding model|401"}},
		"nobody there":        {func(s *Settings) { s.OpenAIBaseURL = "http://127.0.0.1:1/v1" }, []string{"FAIL|language model|can't be reached", "FAIL|embedding model|unreachable"}},
		"other speech models": {func(s *Settings) { s.OpenAITTSModel, s.OpenAISTTModel = "tts-9", "stt-9" }, []string{"ok|language model|", "note|speech model|does not list tts-9", "note|transcription|does not list stt-9", "ok|embedding model|"}},
		"no speech models":    {func(s *Settings) { s.OpenAITTSModel, s.OpenAISTTModel = "", "" }, []string{"ok|language model|", "note|speech model|PARLEY_OPENAI_TTS_MODEL", "note|transcription|PARLEY_OPENAI_STT_MODEL", "ok|embedding model|"}},
		"another embedder":    {func(s *Settings) { s.OpenAIEmbeddingModel = "other" }, []string{"ok|language model|", "ok|speech model|", "ok|transcription|", "FAIL|embedding model|404"}},
		"no vendor":           {func(s *Settings) { *s = Settings{} }, []string{"note|language model|built-in", "note|embedding model|PARLEY_OPENAI_EMBEDDING_MODEL"}},
		"an embedder alone":   {func(s *Settings) { *s = Settings{OpenAIEmbeddingModel: "e"} }, []string{"note|language model|", "FAIL|embedding model|PARLEY_OPENAI_BASE_URL"}},
	} {
		s := good
		c.change(&s)
		compare(t, name, append(checkModels(t.Context(), &s), checkEmbedder(t.Context(), &s)), c.want)
	}
}

func compare(t *testing.T, name string, got []finding, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %+v, want %q", name, got, want)
		return
	}
	for i, f := range got {
		w := strings.SplitN(want[i], "|", 3)
		if f.state != w[0] || f.what != w[1] || !strings.Contains(f.text, w[2]) || strings.Contains(f.text, "k3y") || strings.Contains(f.text, "wr0ng") {
			t.Errorf("%s: got %+v, want %q", name, f, want[i])
		}
	}
}

func TestDoctorOnUploads(t *testing.T) {
	dir := t.TempDir()
	for blob, want := range map[string]string{"": "ok|uploads|takes and gives", filepath.Join(dir, "b"): "ok|uploads|takes and gives", "/dev/null/x": "FAIL|uploads|PARLEY_BLOB", "s3://k:s3cret@": "FAIL|uploads|PARLEY_BLOB"} {
		s := &Settings{Data: dir, Blob: blob}
		f := checkBlob(t.Context(), s)
		compare(t, blob, []finding{f}, []string{want})
		if strings.Contains(f.text, "s3cret") {
			t.Errorf("it tells a secret: %s", f.text)
		}
	}
}
