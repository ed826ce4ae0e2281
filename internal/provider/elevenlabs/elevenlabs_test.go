package elevenlabs

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/provider/elevenlabs/elevenlabstest"
)

func recognitionOf(t *testing.T, s *elevenlabstest.Server, change ...func(*Settings)) ai.Recognizer {
	t.Helper()
	r, err := vendor(t, s, change...).Recognizer(Code)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sound is a text's sound, as the server's Speaker makes it.
func sound(t *testing.T, s *elevenlabstest.Server, text string, rate audio.Rate) (pcm []int16) {
	t.Helper()
	err := ai.Say(t.Context(), s.Speaker, ai.Speech{Rate: rate}, text, func(p []int16) error {
		pcm = append(pcm, p...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pcm
}

func TestRecognitionConforms(t *testing.T) {
	s := elevenlabstest.New(t)
	aitest.ConformRecognizer(t, recognitionOf(t, s), aitest.Heard{Language: "en",
		Texts: []string{"one and a half", "two", "three of them"},
		Sound: func(t *testing.T, text string, rate audio.Rate) []int16 { return sound(t, s, text, rate) }})
}

// finals reads the final transcripts of n utterances.
func finals(t *testing.T, e ai.Recognition, n int) (out []ai.Transcript) {
	t.Helper()
	guard := time.After(20 * time.Second)
	for len(out) < n {
		select {
		case got, ok := <-e.Transcripts():
			if !ok {
				return out
			}
			if got.Final {
				out = append(out, got)
			}
		case <-guard:
			t.Fatal("20 s have passed")
		}
	}
	return out
}

// Even the shortest utterance is understood: one that is shorter than ElevenLabs accepts is filled up with silence.
func TestRecognitionShort(t *testing.T) {
	s := elevenlabstest.New(t)
	e, err := recognitionOf(t, s).Listen(t.Context(), ai.Hearing{Language: "de", Rate: audio.Wide, Keywords: []string{"Brezel & Co"}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s.Script(elevenlabstest.Hearing{Text: "ja"})
	e.Write(sound(t, s, "ja", audio.Wide)[:1600])
	e.End()
	if got := finals(t, e, 1); len(got) != 1 || got[0].Text != "ja" || got[0].Err != nil {
		t.Errorf("got %+v", got)
	}
	if q := s.Queries()[0]; !strings.Contains(q, "language_code=de") || !strings.Contains(q, "keyterms=Brezel+%26+Co") ||
		!strings.Contains(q, "audio_format=pcm_16000") || !strings.Contains(q, "commit_strategy=manual") ||
		strings.Contains(q, "language_detection") || strings.Contains(q, "timestamps") {
		t.Errorf("asked with %s", q)
	}
}

// Where several languages may be spoken, the language of each utterance is told, and each is told once, whichever of
// the two messages with its text comes first, and whether or not both come for silence.
func TestRecognitionTellsLanguages(t *testing.T) {
	for name, manner := range map[string]elevenlabstest.Manner{
		"times last": {}, "times first": {TimesFirst: true},
		"times last, silence once": {SilenceOnce: true}, "times first, silence once": {TimesFirst: true, SilenceOnce: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := elevenlabstest.New(t)
			s.Manner = manner
			said := []elevenlabstest.Hearing{{Text: "hello there"}, {Text: "hola a todos", Language: "spa"}, {},
				{Text: "vielen Dank", Language: "de"}, {}, {}, {Text: "goodbye", Language: "eng"}, {Text: "hm", Language: "xx1"}}
			s.Script(said...)
			e, err := recognitionOf(t, s).Listen(t.Context(), ai.Hearing{Language: "en", Others: []string{"es", "de"}, Rate: audio.Narrow})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for range said { // at once, so that one answer too many would be that of the next
				e.Write(sound(t, s, "anything at all", audio.Narrow))
				e.End()
			}
			got := finals(t, e, len(said))
			if len(got) != len(said) {
				t.Fatalf("got %+v", got)
			}
			want := []string{"en", "es", "", "de", "", "", "en", ""}
			for i, g := range got {
				if g.Err != nil || g.Text != said[i].Text || g.Text != "" && g.Language != want[i] {
					t.Errorf("got %+v, not %q in %q", g, said[i].Text, want[i])
				}
			}
			q, err := url.ParseQuery(s.Queries()[0])
			if err != nil || !slices.Equal(q["secondary_languages"], []string{"es", "de"}) || q.Get("language_code") != "en" ||
				q.Get("include_language_detection") != "true" || q.Get("include_timestamps") != "true" {
				t.Errorf("asked with %v", q)
			}
		})
	}
}

// An error is reported with the utterance that is lost, and the recognizer closes.
func TestRecognitionFails(t *testing.T) {
	for name, c := range map[string]struct {
		h    elevenlabstest.Hearing
		kind ai.Kind
	}{
		"key":      {elevenlabstest.Hearing{Error: "auth_error"}, ai.Config},
		"quota":    {elevenlabstest.Hearing{Error: "quota_exceeded"}, ai.Config},
		"rate":     {elevenlabstest.Hearing{Error: "rate_limited"}, ai.RateLimited},
		"overflow": {elevenlabstest.Hearing{Error: "queue_overflow"}, ai.Overloaded},
		"failed":   {elevenlabstest.Hearing{Error: "transcriber_error"}, ai.Overloaded},
		"expired":  {elevenlabstest.Hearing{Error: "session_time_limit_exceeded"}, ai.Interrupted},
		"1011":     {elevenlabstest.Hearing{Close: 1011}, ai.Interrupted},
		"stalled":  {elevenlabstest.Hearing{Never: true}, ai.Stalled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := elevenlabstest.New(t)
			s.Script(elevenlabstest.Hearing{Text: "first"}, c.h)
			e, err := recognitionOf(t, s).Listen(t.Context(), ai.Hearing{Language: "en", Rate: audio.Narrow})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for range 2 {
				e.Write(sound(t, s, "anything at all", audio.Narrow))
				e.End()
			}
			got := finals(t, e, 2)
			if len(got) != 2 || got[0].Text != "first" || got[1].Utterance != 1 || ai.KindOf(got[1].Err) != c.kind {
				t.Errorf("got %+v", got)
			}
			if _, open := <-e.Transcripts(); open {
				t.Error("the ear goes on")
			}
		})
	}
	s := elevenlabstest.New(t)
	for refusal, kind := range map[elevenlabstest.Refusal]ai.Kind{
		{Status: 401, Code: "invalid_api_key"}: ai.Config, {Status: 429, RetryAfter: 3}: ai.RateLimited,
		{Status: 500}: ai.Overloaded,
	} {
		s.Refuse(refusal)
		if _, err := recognitionOf(t, s).Listen(t.Context(), ai.Hearing{Rate: audio.Narrow}); ai.KindOf(err) != kind {
			t.Errorf("%+v: %v", refusal, err)
		}
	}
}

// Without a key nothing is sent; the error says what is missing.
func TestUnconfigured(t *testing.T) {
	s := elevenlabstest.New(t)
	o := vendor(t, s, func(s *Settings) { s.APIKey = "" })
	_, err := o.Synthesizer(Code)
	_, err2 := o.Recognizer(Code)
	for _, err := range []error{err, err2} {
		if ai.KindOf(err) != ai.Config || !strings.Contains(err.Error(), "PARLEY_ELEVENLABS_API_KEY") {
			t.Errorf("got %v", err)
		}
	}
	v := Declare(&Settings{})
	if v.Speakers[0].Configured() || v.Listeners[0].Configured() {
		t.Error("it counts as configured")
	}
	if f := v.Check(t.Context()); len(f) != 1 || f[0].State != "note" || !strings.Contains(f[0].Text, "PARLEY_ELEVENLABS_API_KEY") {
		t.Errorf("found %v", f)
	}
	if _, err := Declare(&Settings{BaseURL: "ftp://x"}).Open(); err == nil {
		t.Error("a base URL that is none was accepted")
	}
}

// All voices of a key are listed, over several pages. The key need not be the server's.
func TestVoices(t *testing.T) {
	s := elevenlabstest.New(t)
	for i := range 5 {
		s.Voices = append(s.Voices, map[string]any{"voice_id": fmt.Sprint("v", i), "name": fmt.Sprint("Voice ", i),
			"category": "cloned", "labels": map[string]string{"gender": "Female", "accent": "irish", "age": "middle_aged"},
			"verified_languages": []map[string]string{{"language": "de", "model_id": "x"}, {"language": "xx"}, {"language": "de"}}})
	}
	s.Voices[4]["labels"], s.Voices[4]["verified_languages"] = map[string]string{"gender": "neutral"}, nil
	o := vendor(t, s, func(s *Settings) { s.APIKey = "" })
	list, err := o.Voices(t.Context(), elevenlabstest.Key)
	if err != nil || len(list) != 5 {
		t.Fatalf("%d voices, %v", len(list), err)
	}
	first := list[0]
	if first.Code != "v0" || first.Name != "Voice 0" || first.Gender != "female" || first.Accent != "irish" ||
		first.Age != "middle-aged" || first.Number != 0 || !strings.HasPrefix(first.Languages, "de en ") ||
		strings.Contains(first.Languages, "xx") {
		t.Errorf("got %+v", first)
	}
	if last := list[4]; last.Gender != "female" || last.Languages != flash {
		t.Errorf("got %+v", last)
	}
	if _, err := o.Voices(t.Context(), "s3cret"); ai.KindOf(err) != ai.Config || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a wrong key: %v", err)
	}
	s.Refuse(elevenlabstest.Refusal{Status: 429, RetryAfter: 2})
	var e *ai.Error
	if _, err := o.Voices(t.Context(), elevenlabstest.Key); !errors.As(err, &e) || e.Kind != ai.RateLimited || e.RetryAfter != 2*time.Second {
		t.Errorf("too many: %v", err)
	}
}

func TestDoctor(t *testing.T) {
	s := elevenlabstest.New(t)
	for name, c := range map[string]struct {
		change func(*Settings)
		refuse elevenlabstest.Refusal
		state  string
		holds  string
	}{
		"well":          {func(*Settings) {}, elevenlabstest.Refusal{}, "ok", "eleven_flash_v2_5"},
		"wrong key":     {func(s *Settings) { s.APIKey = "s3cret" }, elevenlabstest.Refusal{}, "FAIL", "PARLEY_ELEVENLABS_API_KEY"},
		"nobody there":  {func(s *Settings) { s.BaseURL = "http://127.0.0.1:1" }, elevenlabstest.Refusal{}, "FAIL", "127.0.0.1:1"},
		"no address":    {func(s *Settings) { s.BaseURL = "x" }, elevenlabstest.Refusal{}, "FAIL", "PARLEY_ELEVENLABS_BASE_URL"},
		"no key":        {func(s *Settings) { s.APIKey = "" }, elevenlabstest.Refusal{}, "note", "not configured: set PARLEY_ELEVENLABS_API_KEY"},
		"another model": {func(s *Settings) { s.TTSModel = "eleven_v9" }, elevenlabstest.Refusal{}, "note", "eleven_multilingual_v2"},
		"down":          {func(*Settings) {}, elevenlabstest.Refusal{Status: 503}, "FAIL", "503"},
		"narrow key":    {func(*Settings) {}, elevenlabstest.Refusal{Status: 401, Code: "missing_permissions"}, "note", "models_read"},
	} {
		if c.refuse.Status != 0 {
			s.Refuse(c.refuse)
		}
		set := &Settings{APIKey: elevenlabstest.Key, BaseURL: s.URL, TTSModel: "eleven_flash_v2_5", STTModel: "scribe_v2_realtime"}
		c.change(set)
		got := Declare(set).Check(t.Context())
		if len(got) != 1 || got[0].State != c.state || !strings.Contains(got[0].Text, c.holds) ||
			strings.Contains(got[0].Text, "s3cret") || strings.Contains(got[0].Text, elevenlabstest.Key) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
