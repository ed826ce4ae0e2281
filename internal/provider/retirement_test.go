package provider

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/provider/openai"
)

// Vendors' tables of retirements have days, and name replacements that live longer. Nothing that is offered first, and no
// default of a setting, is in them.
func TestRetirements(t *testing.T) {
	tables := 0
	for _, declared := range All() {
		v := declared
		if v.With != nil {
			v = v.With(ai.Key{Secret: "any"})
		}
		var table ai.Retirements
		if v.Retired != nil {
			table = v.Retired()
			tables++
		}
		for i, r := range table {
			if _, err := time.Parse(time.DateOnly, r.Day); err != nil {
				t.Errorf("%s: %+v: %v", v.Code, r, err)
			}
			if o := v.Retires(r.Instead); r.Instead != "" && o != nil {
				t.Errorf("%s: %s is to be replaced by %s, which is retired too", v.Code, r.Model, o.Model)
			}
			if slices.IndexFunc(table, func(o ai.Retirement) bool { return o.Model == r.Model }) != i {
				t.Errorf("%s: %s is there twice", v.Code, r.Model)
			}
		}
		first := map[parley.ModelKind]bool{}
		if v.Models != nil {
			for _, m := range v.Models() {
				if r := v.Retires(m.Code); r != nil && !first[m.Kind] {
					t.Errorf("%s offers %s first, which is retired on %s", v.Code, m.Code, r.Day)
				}
				first[m.Kind] = true
			}
		}
		s := reflect.TypeOf(v.Settings)
		if s == nil || s.Kind() != reflect.Pointer {
			continue
		}
		for i := range s.Elem().NumField() {
			tag := s.Elem().Field(i).Tag
			for _, usual := range strings.Split(tag.Get("default"), ",") {
				if r := v.Retires(usual); r != nil {
					t.Errorf("%s is %s, which is retired on %s", tag.Get("name"), usual, r.Day)
				}
			}
		}
	}
	if tables < 5 {
		t.Errorf("%d vendors have a table", tables)
	}
	for _, s := range []openai.Settings{{APIKey: "k", BaseURL: "http://own/v1"}, {BaseURL: "http://own/v1"}, {}} {
		if list := openai.Declare(&s).Retired(); len(list) > 0 {
			t.Errorf("%+v: another server is said to retire %v", s, list)
		}
	}
	var s openai.Settings
	v := openai.Declare(&s) // as the program does, which reads the settings later
	s = openai.Settings{APIKey: "k", TTSBaseURL: "http://own/v1"}
	if v.Retires("gpt-4.1-mini") == nil || v.Retires("tts-1") != nil {
		t.Errorf("got %v", v.Retired())
	}
}

// If a vendor says that it doesn't have a model, the assistant's owner reads which one, and which setting names it.
func TestGoneModels(t *testing.T) {
	s := aitest.NewServer(t)
	v := openai.Declare(&openai.Settings{BaseURL: s.URL, ChatModel: []string{"old"}, TTSModel: "old-tts", STTModel: "old-stt",
		RealtimeModel: []string{"old-realtime"}, RealtimeSTT: aitest.TranscriptionModel})
	v.Retired = func() ai.Retirements {
		return ai.Retirements{{Model: "old-realtime", Day: "2026-01-20", Instead: "new-realtime"}}
	}
	set, err := Open(All(v))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	expect := func(err error, want ...string) {
		t.Helper()
		text := parley.Explanation(err)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%v: %q lacks %q", err, text, w)
			}
		}
	}
	m, err := set.Model(openai.Code, "old")
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Generate(t.Context(), ai.Request{Messages: []ai.Message{{Role: ai.User, Text: "x"}}}, func(ai.Delta) error { return nil })
	expect(err, "OpenAI says that it has no model old.", "PARLEY_OPENAI_CHAT_MODEL")
	voice, err := set.Synthesizer(openai.Code)
	if err != nil {
		t.Fatal(err)
	}
	expect(ai.Say(t.Context(), voice, ai.Speech{Voice: "alloy", Language: "en", Rate: audio.Narrow}, "Hello",
		func([]int16) error { return nil }), "no speech model old-tts", "PARLEY_OPENAI_TTS_MODEL")
	r, err := set.Realtime(openai.Code, "old-realtime")
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Connect(t.Context(), ai.RealtimeSetup{Voice: "marin", Rate: audio.Narrow})
	expect(err, "The model old-realtime was retired by OpenAI on 20 January 2026.", "PARLEY_OPENAI_REALTIME_MODEL to new-realtime")
	hears, err := set.Recognizer(openai.Code)
	if err != nil {
		t.Fatal(err)
	}
	e, err := hears.Listen(t.Context(), ai.Hearing{Language: "en", Rate: audio.Narrow})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	loud := make([]int16, 8000)
	for i := range loud {
		loud[i] = int16(i%100) * 100
	}
	e.Write(loud)
	e.End()
	got := <-e.Transcripts()
	expect(ai.ToldBy(e, got.Err), "no transcription model old-stt", "PARLEY_OPENAI_STT_MODEL")
}
