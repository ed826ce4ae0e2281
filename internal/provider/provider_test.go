package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/provider/local"
	"parley/internal/provider/openai"
)

func TestModel(t *testing.T) {
	s := aitest.NewServer(t)
	alone, err := Open(All())
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	with, err := Open(All(openai.Declare(&openai.Settings{BaseURL: s.URL})))
	if err != nil {
		t.Fatal(err)
	}
	defer with.Close()
	for _, c := range []struct {
		set             *Set
		provider, model string
		want            string // a part of the answer; "" when there is no such model
	}{
		{alone, "local", "local", "The sky is blue."},
		{alone, "local", "other", ""},
		{alone, "openai", aitest.ModelName, ""},
		{alone, "nobody", "local", ""},
		{with, "local", "local", "The sky is blue."},
		{with, "openai", aitest.ModelName, "You said: What colour is the sky?"},
		{with, "openai", "", ""},
		{with, "", "", ""},
	} {
		m, err := c.set.Model(c.provider, c.model)
		if c.want == "" {
			if ai.KindOf(err) != ai.Config {
				t.Errorf("%s/%s: got %v, %v", c.provider, c.model, m, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s/%s: %v", c.provider, c.model, err)
			continue
		}
		r, err := m.Generate(t.Context(), ai.Request{System: "The sky is blue.",
			Messages: []ai.Message{{Role: ai.User, Text: "What colour is the sky?"}}},
			func(ai.Delta) error { return nil })
		if err != nil || !strings.Contains(r.Text, c.want) {
			t.Errorf("%s/%s: got %q, %v", c.provider, c.model, r.Text, err)
		}
	}
	if _, err := Open(All(openai.Declare(&openai.Settings{BaseURL: "nonsense"}))); err == nil {
		t.Error("a base URL that is none was accepted")
	}
}

// A voice or recognizer is found by its code. For one that is not there, the error is of kind Config and says what to
// do.
func TestSpeech(t *testing.T) {
	s := aitest.NewServer(t)
	nowhere := local.Declare(local.Programs{Flite: local.Flite{Path: "/nowhere/flite"},
		ESpeak: local.ESpeak{Path: "/nowhere/espeak-ng"}, Sphinx: local.SphinxConfig{Model: "/nowhere"}})
	half := openai.Declare(&openai.Settings{BaseURL: s.URL})
	whole := openai.Declare(&openai.Settings{BaseURL: s.URL, TTSModel: aitest.SpeechModel,
		STTModel: aitest.TranscriptionModel})
	here := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(here, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	model := t.TempDir()
	if err := os.WriteFile(filepath.Join(model, "en-us.lm.bin"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	installed := local.Declare(local.Programs{Flite: local.Flite{Path: here}, ESpeak: local.ESpeak{Path: here},
		Sphinx: local.SphinxConfig{Python: here, Model: model}})
	for _, c := range []struct {
		vendor *ai.Vendor
		code   string
		speaks string // a part of the error; "" when it can
		hears  string
	}{
		{nowhere, local.FliteCode, "apt-get install flite", "not configured"},
		{nowhere, local.ESpeakCode, "apt-get install espeak-ng", "not configured"},
		{nowhere, local.SphinxCode, "not configured", "apt-get install pocketsphinx"},
		{nowhere, openai.Code, "PARLEY_OPENAI_TTS_MODEL", "PARLEY_OPENAI_STT_MODEL"},
		{half, openai.Code, "PARLEY_OPENAI_TTS_MODEL", "PARLEY_OPENAI_STT_MODEL"},
		{whole, openai.Code, "", ""},
		{installed, local.FliteCode, "", "not configured"},
		{installed, local.ESpeakCode, "", "not configured"},
		{installed, local.SphinxCode, "not configured", ""},
		{whole, "elevenlabs", "not configured", "not configured"},
		{whole, "", "not configured", "not configured"},
	} {
		set, err := Open(All(c.vendor))
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		voice, err := set.Synthesizer(c.code)
		told(t, c.code+" speaks", voice != nil, err, c.speaks)
		recognizer, err := set.Recognizer(c.code)
		told(t, c.code+" hears", recognizer != nil, err, c.hears)
	}
}

func told(t *testing.T, what string, there bool, err error, want string) {
	t.Helper()
	if there != (want == "") || (err == nil) != there || err != nil &&
		(ai.KindOf(err) != ai.Config || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: there %v, %v, want %q", what, there, err, want)
	}
}
