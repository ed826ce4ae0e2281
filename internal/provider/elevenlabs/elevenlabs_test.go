package elevenlabs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/elevenlabs/elevenlabstest"
)

// sound is a text's, of the server's Speaker.
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

// Without a key nothing is asked; what is missing is said.
func TestUnconfigured(t *testing.T) {
	s := elevenlabstest.New(t)
	o := vendor(t, s, func(s *Settings) { s.APIKey = "" })
	_, err := o.Synthesizer(Code)
	for _, err := range []error{err} {
		if ai.KindOf(err) != ai.Config || !strings.Contains(err.Error(), "PARLEY_ELEVENLABS_API_KEY") {
			t.Errorf("got %v", err)
		}
	}
	v := Declare(&Settings{})
	if v.Speakers[0].Configured() || v.Check(t.Context()) != nil {
		t.Error("it counts as configured")
	}
	if _, err := Declare(&Settings{BaseURL: "ftp://x"}).Open(); err == nil {
		t.Error("a base URL that is none was accepted")
	}
}

// A key's own voices are listed, page by page, with any key.
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
	if last := list[4]; last.Gender != "" || last.Languages != flash {
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
		"another model": {func(s *Settings) { s.TTSModel = "eleven_v9" }, elevenlabstest.Refusal{}, "note", "eleven_multilingual_v2"},
		"down":          {func(*Settings) {}, elevenlabstest.Refusal{Status: 503}, "FAIL", "503"},
		"narrow key":    {func(*Settings) {}, elevenlabstest.Refusal{Status: 401, Code: "missing_permissions"}, "note", "models_read"},
	} {
		if c.refuse.Status != 0 {
			s.Refuse(c.refuse)
		}
		set := &Settings{APIKey: elevenlabstest.Key, BaseURL: s.URL, TTSModel: "eleven_flash_v2_5"}
		c.change(set)
		got := Declare(set).Check(t.Context())
		if len(got) != 1 || got[0].State != c.state || !strings.Contains(got[0].Text, c.holds) ||
			strings.Contains(got[0].Text, "s3cret") || strings.Contains(got[0].Text, elevenlabstest.Key) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
