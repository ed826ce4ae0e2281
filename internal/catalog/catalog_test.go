package catalog

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"parley"
)

var update = flag.Bool("update", false, "append new rows to testdata/ids.txt")

// everything is a server where all is configured.
var everything = Config{
	PublicURL:  "https://voice.example.com/",
	OpenAI:     OpenAIModels{Chat: []string{"gpt-5", "gpt-5-mini"}, Realtime: "gpt-realtime", TTS: "tts", STT: "stt"},
	Anthropic:  []string{"claude-sonnet"},
	Deepgram:   true,
	ElevenLabs: true,
	Cartesia:   true,
}

// TestIDs holds the ids that databases have stored: each pinned row must still be there with its meaning. New rows are appended
// with -update; a change of an old one has to be edited by hand, knowing what it breaks.
func TestIDs(t *testing.T) {
	c := New(everything)
	var rows []string
	for _, l := range c.Languages() {
		rows = append(rows, fmt.Sprintf("language %d %s", l.ID, l.ISO2))
	}
	for _, p := range c.Synthesizers(0) {
		rows = append(rows, fmt.Sprintf("synthesizer %d %s", p.ID, p.Code))
	}
	for _, p := range c.Transcribers(0) {
		rows = append(rows, fmt.Sprintf("transcriber %d %s", p.ID, p.Code))
	}
	for _, v := range c.Voices("", 0) {
		provider := "realtime"
		if id := v.SynthesizerProviderID; id != nil {
			provider = c.Synthesizer(*id).Code
		}
		rows = append(rows, fmt.Sprintf("voice %d %s %s %s", v.ID, c.Language(v.LanguageID).ISO2, provider, v.Code))
	}
	const name = "testdata/ids.txt"
	data, err := os.ReadFile(name)
	if err != nil && !*update {
		t.Fatal(err)
	}
	pinned := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, row := range pinned {
		if row != "" && !slices.Contains(rows, row) {
			t.Errorf("a stored id has lost its meaning: %s", row)
		}
	}
	var fresh []string
	for _, row := range rows {
		if !slices.Contains(pinned, row) {
			fresh = append(fresh, row)
		}
	}
	switch {
	case len(fresh) > 0 && !*update:
		t.Errorf("%d rows are not pinned (go test -update appends them), the first: %s", len(fresh), fresh[0])
	case len(fresh) > 0:
		if err := os.WriteFile(name, []byte(string(data)+strings.Join(fresh, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestData judges the tables themselves: nothing twice, nothing unknown.
func TestData(t *testing.T) {
	ids, isos := map[int64]bool{}, map[string]bool{}
	for _, l := range languages {
		if ids[l.id] || isos[l.iso] || l.id < 1 || l.id > 999 || len(l.iso) != 2 || l.name == "" {
			t.Errorf("language %+v: bad or twice", l)
		}
		ids[l.id], isos[l.iso] = true, true
	}
	if languages[0].id != 1 || languages[0].iso != "en" {
		t.Error("English is not the first language")
	}

	codes, providers := map[string]int64{}, map[int64]string{}
	check := func(p parley.Provider, role map[int64]bool) {
		if role[p.ID] || p.ID < 1 || p.Name == "" || p.Code == "" {
			t.Errorf("provider %+v: bad or twice", p)
		}
		role[p.ID] = true
		if id, ok := codes[p.Code]; ok && id != p.ID {
			t.Errorf("%s has ids %d and %d", p.Code, id, p.ID)
		}
		if code, ok := providers[p.ID]; ok && code != p.Code {
			t.Errorf("id %d means %s and %s", p.ID, code, p.Code)
		}
		codes[p.Code], providers[p.ID] = p.ID, p.Code
	}
	speak, listen := map[int64]bool{}, map[int64]bool{}
	for _, p := range synthesizers {
		check(p, speak)
		if len(voices[p.Code]) == 0 {
			t.Errorf("%s has no voice", p.Code)
		}
	}
	for code := range voices {
		if !speak[codes[code]] {
			t.Errorf("voices of the unknown synthesizer %s", code)
		}
	}
	for _, p := range transcribers {
		check(p.Provider, listen)
		checkLanguages(t, p.Code, p.languages, isos)
	}

	numbers := map[int64]bool{}
	for provider, list := range voicesWithRealtime() {
		names := map[string]bool{}
		for _, v := range list {
			if numbers[v.number] || v.number < 1 {
				t.Errorf("voice number %d: bad or twice", v.number)
			}
			numbers[v.number] = true
			if names[v.code] || v.code == "" || v.name == "" || v.gender != male && v.gender != female {
				t.Errorf("voice %+v of %s: bad or twice", v, provider)
			}
			names[v.code] = true
			checkLanguages(t, provider+" "+v.code, v.languages, isos)
		}
	}
}

func voicesWithRealtime() map[string][]voiceData {
	m := map[string][]voiceData{"realtime": realtimeVoices}
	for k, v := range voices {
		m[k] = v
	}
	return m
}

func checkLanguages(t *testing.T, who, list string, isos map[string]bool) {
	t.Helper()
	seen := map[string]bool{}
	for _, iso := range strings.Fields(list) {
		if !isos[iso] || seen[iso] {
			t.Errorf("%s: language %q is unknown or there twice", who, iso)
		}
		seen[iso] = true
	}
	if len(seen) == 0 {
		t.Errorf("%s has no language", who)
	}
}

func configs() map[string]Config {
	return map[string]Config{
		"nothing":    {},
		"everything": everything,
		"chat only":  {OpenAI: OpenAIModels{Chat: []string{"llama"}}},
		"openai":     {OpenAI: OpenAIModels{Chat: []string{"gpt-5"}, Realtime: "gpt-realtime", TTS: "tts", STT: "stt"}},
		"deepgram":   {Deepgram: true},
		"elevenlabs": {ElevenLabs: true},
		"cartesia":   {Cartesia: true},
	}
}

func TestLanguageDefaults(t *testing.T) {
	for name, cfg := range configs() {
		c := New(cfg)
		for _, l := range c.Languages() {
			if list := c.Synthesizers(l.ID); len(list) == 0 || list[0].Code != l.Default.Synthesizer || !cfg.speaks(list[0].Code) {
				t.Errorf("%s: %s: default synthesizer %q of %v", name, l.ISO2, l.Default.Synthesizer, list)
			}
			first := c.Voices("pipeline", l.ID)[0]
			if got := c.Synthesizer(*first.SynthesizerProviderID).Code; got != l.Default.Synthesizer {
				t.Errorf("%s: %s: the first voice is of %s, the default synthesizer is %s", name, l.ISO2, got, l.Default.Synthesizer)
			}
			switch list := c.Transcribers(l.ID); {
			case len(list) == 0 && l.Default.Transcriber != "":
				t.Errorf("%s: %s: default transcriber %q does not understand it", name, l.ISO2, l.Default.Transcriber)
			case len(list) > 0 && (list[0].Code != l.Default.Transcriber || !cfg.hears(list[0].Code)):
				t.Errorf("%s: %s: default transcriber %q of %v", name, l.ISO2, l.Default.Transcriber, list)
			}
		}
	}
	for _, test := range []struct {
		config, iso, synthesizer, transcriber string
	}{
		{"nothing", "en", Flite, PocketSphinx},
		{"nothing", "de", ESpeak, ""},
		{"chat only", "en", Flite, PocketSphinx},
		{"openai", "en", OpenAI, OpenAI},
		{"openai", "is", OpenAI, OpenAI},
		{"deepgram", "de", Deepgram, Deepgram},
		{"deepgram", "is", ESpeak, ""},
		{"elevenlabs", "he", ESpeak, ElevenLabs},
		{"cartesia", "en", Cartesia, Cartesia},
		{"cartesia", "pl", ESpeak, Cartesia},
		{"everything", "en", ElevenLabs, Deepgram},
		{"everything", "ar", ElevenLabs, ElevenLabs},
		{"everything", "he", OpenAI, Deepgram},
	} {
		d := New(configs()[test.config]).languageByISO[test.iso].Default
		if d.Synthesizer != test.synthesizer || d.Transcriber != test.transcriber {
			t.Errorf("%s: %s: got %+v, want %s and %s", test.config, test.iso, d, test.synthesizer, test.transcriber)
		}
	}
}

// TestVoices compares each filtered list with the whole list filtered here.
func TestVoices(t *testing.T) {
	for name, cfg := range configs() {
		c := New(cfg)
		whole := c.Voices("", 0)
		for _, mode := range []string{"", "pipeline", "multimodal", "dualplex"} {
			for language := range int64(len(languages) + 1) {
				var want []int64
				for _, v := range whole {
					if (mode == "" || slices.Contains(v.Modes, mode)) && (language == 0 || v.LanguageID == language) {
						want = append(want, v.ID)
					}
				}
				var got []int64
				for _, v := range c.Voices(mode, language) {
					got = append(got, v.ID)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: voices(%q, %d) = %v, want %v", name, mode, language, got, want)
				}
			}
		}
		seen := map[int64]bool{}
		for _, v := range whole {
			if seen[v.ID] {
				t.Errorf("%s: voice %d is listed twice", name, v.ID)
			}
			seen[v.ID] = true
			if !c.VoiceConfigured(v.ID) || c.Voice(v.ID) == nil || c.Voice(v.ID).Code != v.Code {
				t.Errorf("%s: voice %d is listed, but not found or not configured", name, v.ID)
			}
			id := v.SynthesizerProviderID
			if multimodal := slices.Contains(v.Modes, "multimodal"); multimodal != (id == nil) {
				t.Errorf("%s: voice %d: modes %v, provider %v", name, v.ID, v.Modes, id)
			}
			if id != nil && !slices.Contains(c.Synthesizers(v.LanguageID), *c.Synthesizer(*id)) {
				t.Errorf("%s: voice %d: its provider is not listed for its language", name, v.ID)
			}
			if want := fmt.Sprintf("%s/api/voices/%d/preview", strings.TrimSuffix(cfg.PublicURL, "/"), v.ID); v.PreviewURL != want {
				t.Errorf("%s: voice %d: preview %q, want %q", name, v.ID, v.PreviewURL, want)
			}
		}
	}
	c := New(Config{})
	for _, list := range [][]parley.Voice{c.Voices("multimodal", 0), c.Voices("pipeline", 999), c.Voices("telepathy", 1), c.Voices("", -1)} {
		if list == nil || len(list) != 0 {
			t.Errorf("got %v, want an empty list that is not nil", list)
		}
	}
}

// What speaks inside the realtime model can be heard before a call only where the same voice speaks on its own.
func TestRealtimePreviews(t *testing.T) {
	for tts, want := range map[string]bool{"": false, "tts": true} {
		list := New(Config{OpenAI: OpenAIModels{Realtime: "gpt-realtime", TTS: tts}}).Voices("multimodal", 0)
		if len(list) == 0 {
			t.Fatal("no voices")
		}
		for _, v := range list {
			if (v.PreviewURL != "") != want {
				t.Errorf("speech model %q: voice %d has the preview %q", tts, v.ID, v.PreviewURL)
			}
		}
	}
}

// A voice whose provider is configured no longer is found, so that assistants keep it, but neither listed nor previewed.
func TestUnconfigured(t *testing.T) {
	c := New(Config{PublicURL: "https://voice.example.com"})
	for _, v := range New(everything).Voices("", 0) {
		got := c.Voice(v.ID)
		if got == nil || got.Code != v.Code || got.LanguageID != v.LanguageID || !slices.Equal(got.Modes, v.Modes) {
			t.Fatalf("voice %d: got %+v, want %+v", v.ID, got, v)
		}
		local := v.SynthesizerProviderID != nil && *v.SynthesizerProviderID <= 2
		listed := slices.ContainsFunc(c.Voices("", v.LanguageID), func(o parley.Voice) bool { return o.ID == v.ID })
		if listed != local || c.VoiceConfigured(v.ID) != local || (got.PreviewURL != "") != local {
			t.Errorf("voice %d: local %v, listed %v, configured %v, preview %q", v.ID, local, listed, c.VoiceConfigured(v.ID), got.PreviewURL)
		}
	}
	if p := c.Synthesizer(5); p == nil || p.Code != ElevenLabs {
		t.Errorf("synthesizer 5 is %v", p)
	}
	if p := c.Transcriber(6); p == nil || p.Code != Deepgram || c.TranscriberConfigured(6, 0) {
		t.Errorf("transcriber 6 is %v, configured %v", p, c.TranscriberConfigured(6, 0))
	}
}

func TestRoles(t *testing.T) {
	c := New(Config{})
	for _, id := range []int64{-1, 0, 999, 1 << 40} {
		if c.Language(id) != nil || c.Voice(id) != nil || c.VoiceConfigured(id) || c.Synthesizer(id) != nil || c.Transcriber(id) != nil ||
			c.Model(id) != nil || c.ModelConfigured(id) || c.TranscriberConfigured(id, 0) {
			t.Errorf("id %d is known", id)
		}
	}
	if c.languageByISO["xx"] != nil || c.languageByISO[""] != nil || c.languageByISO["de"].Name != "German" {
		t.Error("languages by code are wrong")
	}
	if c.Synthesizer(3) != nil || c.Transcriber(1) != nil {
		t.Error("PocketSphinx speaks or Flite listens")
	}
	if !c.TranscriberConfigured(3, 1) || c.TranscriberConfigured(3, 4) {
		t.Error("PocketSphinx understands English alone")
	}
	if c.Transcribers(4) == nil || len(c.Transcribers(4)) != 0 {
		t.Errorf("German is understood without a provider by %v", c.Transcribers(4))
	}
	for iso, want := range map[string]string{"en": "en-us", "no": "nb+f3", "de": "de+f3", "zh": "cmn"} {
		found := slices.ContainsFunc(c.Voices("dualplex", c.languageByISO[iso].ID), func(v parley.Voice) bool { return v.Code == want })
		if !found {
			t.Errorf("%s has no eSpeak voice %s", iso, want)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	c := New(everything)
	if err := c.SetModels(numbered(c)); err != nil {
		t.Fatal(err)
	}
	mode, language, voice := "pipeline", int64(1), int64(1001)
	if n := testing.AllocsPerRun(100, func() {
		_ = c.Languages()
		_ = c.Language(language)
		_ = c.languageByISO["de"]
		_ = c.Voices(mode, language)
		_ = c.Voices("", 999)
		_ = c.Voice(voice)
		_ = c.VoiceConfigured(voice)
		_ = c.Synthesizers(language)
		_ = c.Synthesizer(1)
		_ = c.Transcribers(language)
		_ = c.Transcriber(3)
		_ = c.TranscriberConfigured(3, language)
		_ = c.ModelsOf(parley.LLM)
		_ = c.Model(1)
		_ = c.ModelConfigured(1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
