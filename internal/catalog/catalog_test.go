package catalog

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/assemblyai"
	"parley/internal/provider/cartesia"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/elevenlabs"
	"parley/internal/provider/gemini"
	"parley/internal/provider/local"
	"parley/internal/provider/openai"
	"parley/internal/provider/xai"
)

var update = flag.Bool("update", false, "append new rows to testdata/ids.txt")

const base = "https://voice.example.com/"

// server returns a server on which the vendors with these codes are configured, with all that they offer.
func server(codes ...string) *Catalog {
	var list []*ai.Vendor
	for _, code := range codes {
		v := openai.Declare(&openai.Settings{APIKey: "k", ChatModel: []string{"gpt-5", "gpt-5-mini"},
			RealtimeModel: []string{"gpt-realtime"}, TTSModel: "tts", STTModel: "stt"})
		if code != openai.Code {
			all := provider.All()
			v = all[slices.IndexFunc(all, func(v *ai.Vendor) bool { return v.Code == code })]
			there := func() bool { return true }
			for i := range v.Speakers {
				v.Speakers[i].Configured = there
			}
			for i := range v.Listeners {
				v.Listeners[i].Configured = there
			}
			if v.Realtime != nil {
				v.Realtime.Configured = there
			}
		}
		list = append(list, v)
	}
	return New(base, provider.All(list...))
}

// everything returns a server on which everything is configured.
func everything() *Catalog {
	return server(openai.Code, gemini.Code, elevenlabs.Code, deepgram.Code, cartesia.Code, assemblyai.Code, xai.Code)
}

// TestIDs checks the ids that databases have stored: each pinned row must still exist with its meaning. New rows are
// appended with -update; a change to an old row has to be edited by hand, knowing what it breaks.
func TestIDs(t *testing.T) {
	c := everything()
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

// TestData checks the tables themselves: no duplicates, no unknown entries.
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
	for _, v := range provider.All() {
		for _, sp := range v.Speakers {
			check(sp.Provider, speak)
			if len(sp.Voices) == 0 {
				t.Errorf("%s has no voice", sp.Code)
			}
		}
		for _, l := range v.Listeners {
			check(l.Provider, listen)
			checkLanguages(t, l.Code, l.Languages, isos)
		}
	}

	numbers := map[int64]bool{}
	for who, list := range voices() {
		names := map[string]bool{}
		for _, v := range list {
			if numbers[v.Number] || v.Number < 1 {
				t.Errorf("voice number %d: bad or twice", v.Number)
			}
			numbers[v.Number] = true
			if names[v.Code] || v.Code == "" || v.Name == "" || v.Gender != "male" && v.Gender != "female" {
				t.Errorf("voice %+v of %s: bad or twice", v, who)
			}
			names[v.Code] = true
			checkLanguages(t, who+" "+v.Code, v.Languages, isos)
		}
	}
}

// voices returns the declared voices, by vendor.
func voices() map[string][]ai.Voice {
	m := map[string][]ai.Voice{}
	for _, v := range provider.All() {
		for _, sp := range v.Speakers {
			m[sp.Code] = sp.Voices
		}
		if v.Realtime != nil {
			m[v.Code+" realtime"] = v.Realtime.Voices
		}
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

func servers() map[string]*Catalog {
	return map[string]*Catalog{
		"nothing":    New(base, provider.All()),
		"everything": everything(),
		"chat only": New(base, provider.All(openai.Declare(&openai.Settings{BaseURL: "http://127.0.0.1/v1",
			ChatModel: []string{"llama"}}))),
		"openai":     server(openai.Code),
		"deepgram":   server(deepgram.Code),
		"elevenlabs": server(elevenlabs.Code),
		"cartesia":   server(cartesia.Code),
	}
}

func TestLanguageDefaults(t *testing.T) {
	for name, c := range servers() {
		for _, l := range c.Languages() {
			if list := c.Synthesizers(l.ID); len(list) == 0 || list[0].Code != l.Default.Synthesizer ||
				!c.speaker(list[0].Code).Configured() {
				t.Errorf("%s: %s: default synthesizer %q of %v", name, l.ISO2, l.Default.Synthesizer, list)
			}
			first := c.Voices("pipeline", l.ID)[0]
			if got := c.Synthesizer(*first.SynthesizerProviderID).Code; got != l.Default.Synthesizer {
				t.Errorf("%s: %s: the first voice is of %s, the default synthesizer is %s", name, l.ISO2, got,
					l.Default.Synthesizer)
			}
			switch list := c.Transcribers(l.ID); {
			case len(list) == 0 && l.Default.Transcriber != "":
				t.Errorf("%s: %s: default transcriber %q does not understand it", name, l.ISO2, l.Default.Transcriber)
			case len(list) > 0 && (list[0].Code != l.Default.Transcriber || !c.TranscriberConfigured(list[0].ID, 0)):
				t.Errorf("%s: %s: default transcriber %q of %v", name, l.ISO2, l.Default.Transcriber, list)
			}
		}
	}
	for _, test := range []struct {
		config, iso, synthesizer, transcriber string
	}{
		{"nothing", "en", local.FliteCode, local.SphinxCode},
		{"nothing", "de", local.ESpeakCode, ""},
		{"chat only", "en", local.FliteCode, local.SphinxCode},
		{"openai", "en", openai.Code, openai.Code},
		{"openai", "is", openai.Code, openai.Code},
		{"deepgram", "de", deepgram.Code, deepgram.Code},
		{"deepgram", "is", local.ESpeakCode, ""},
		{"elevenlabs", "he", local.ESpeakCode, elevenlabs.Code},
		{"cartesia", "en", cartesia.Code, cartesia.Code},
		{"cartesia", "pl", local.ESpeakCode, cartesia.Code},
		{"everything", "en", elevenlabs.Code, deepgram.Code},
		{"everything", "ar", elevenlabs.Code, elevenlabs.Code},
		{"everything", "he", openai.Code, deepgram.Code},
	} {
		d := servers()[test.config].languageByISO[test.iso].Default
		if d.Synthesizer != test.synthesizer || d.Transcriber != test.transcriber {
			t.Errorf("%s: %s: got %+v, want %s and %s", test.config, test.iso, d, test.synthesizer, test.transcriber)
		}
	}
}

// TestVoices compares each filtered list with the whole list filtered here.
func TestVoices(t *testing.T) {
	for name, c := range servers() {
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
			want := ""
			if c.Heard(v.ID) != nil {
				want = fmt.Sprintf("%s/api/voices/%d/preview", strings.TrimSuffix(base, "/"), v.ID)
			}
			if (want == "") != (v.Inside == gemini.Code || v.Inside == xai.Code) || v.PreviewURL != want {
				t.Errorf("%s: voice %d: preview %q, want %q", name, v.ID, v.PreviewURL, want)
			}
		}
	}
	c := New("", provider.All())
	for _, list := range [][]parley.Voice{c.Voices("multimodal", 0), c.Voices("pipeline", 999),
		c.Voices("telepathy", 1), c.Voices("", -1)} {
		if list == nil || len(list) != 0 {
			t.Errorf("got %v, want an empty list that is not nil", list)
		}
	}
}

// A voice inside a realtime model can be previewed before a call only if the same voice is also offered on its own.
func TestRealtimePreviews(t *testing.T) {
	for tts, want := range map[string]bool{"": false, "tts": true} {
		list := New("", provider.All(openai.Declare(&openai.Settings{APIKey: "k", RealtimeModel: []string{"gpt-realtime"},
			TTSModel: tts}))).Voices("multimodal", 0)
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

// A voice whose provider is no longer configured is still found, so that assistants keep it, but it is neither listed
// nor previewed.
func TestUnconfigured(t *testing.T) {
	c := server()
	always := map[int64]bool{} // configured on every machine
	for _, vendor := range provider.All() {
		for _, s := range vendor.Speakers {
			always[s.Provider.ID] = s.Configured()
		}
	}
	for _, v := range everything().Voices("", 0) {
		got := c.Voice(v.ID)
		if got == nil || got.Code != v.Code || got.LanguageID != v.LanguageID || !slices.Equal(got.Modes, v.Modes) {
			t.Fatalf("voice %d: got %+v, want %+v", v.ID, got, v)
		}
		local := v.SynthesizerProviderID != nil && always[*v.SynthesizerProviderID]
		listed := slices.ContainsFunc(c.Voices("", v.LanguageID), func(o parley.Voice) bool { return o.ID == v.ID })
		if listed != local || c.VoiceConfigured(v.ID) != local || (got.PreviewURL != "") != local {
			t.Errorf("voice %d: local %v, listed %v, configured %v, preview %q", v.ID, local, listed,
				c.VoiceConfigured(v.ID), got.PreviewURL)
		}
	}
	if p := c.Synthesizer(5); p == nil || p.Code != elevenlabs.Code {
		t.Errorf("synthesizer 5 is %v", p)
	}
	if p := c.Transcriber(6); p == nil || p.Code != deepgram.Code || c.TranscriberConfigured(6, 0) {
		t.Errorf("transcriber 6 is %v, configured %v", p, c.TranscriberConfigured(6, 0))
	}
}

func TestRoles(t *testing.T) {
	c := New("", provider.All())
	for _, id := range []int64{-1, 0, 999, 1 << 40} {
		if c.Language(id) != nil || c.Voice(id) != nil || c.VoiceConfigured(id) || c.Synthesizer(id) != nil ||
			c.Transcriber(id) != nil ||
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
	if c.Foreign("pocketsphinx", "de") == "" || c.Foreign("pocketsphinx", "en") != "" ||
		c.Foreign("openai", "de") != "" || c.Foreign("", "de") != "" {
		t.Error("it is not told who understands which language")
	}
	if c.Transcribers(4) == nil || len(c.Transcribers(4)) != 0 {
		t.Errorf("German is understood without a provider by %v", c.Transcribers(4))
	}
	for iso, want := range map[string]string{"en": "en-us", "no": "nb+f3", "de": "de+f3", "zh": "cmn"} {
		found := slices.ContainsFunc(c.Voices("dualplex", c.languageByISO[iso].ID),
			func(v parley.Voice) bool { return v.Code == want })
		if !found {
			t.Errorf("%s has no eSpeak voice %s", iso, want)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	c := everything()
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

// Each language has names of the days of its own.
func TestWeekdays(t *testing.T) {
	for _, l := range languages {
		if got := lang.Weekday(ISO(l.id), time.Monday); l.iso != "en" && got == "Monday" {
			t.Errorf("%s has no names of the days", l.name)
		}
	}
	if ISO(0) != "" {
		t.Error("an unknown id has a code")
	}
}
