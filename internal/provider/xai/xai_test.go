package xai

import (
	"cmp"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/provider/xai/xaitest"
)

func modelOf(t *testing.T, s *xaitest.Server, key, code string) ai.RealtimeModel {
	t.Helper()
	o, err := (&Settings{BaseURL: s.URL, APIKey: key, Realtime: []string{code}}).open()
	if err != nil {
		t.Fatal(err)
	}
	m, err := o.Realtime(code)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRealtimeConforms(t *testing.T) {
	s := xaitest.New(t)
	aitest.ConformRealtime(t, modelOf(t, s, xaitest.Key, xaitest.Model), s, aitest.RealtimeManner{Voice: "eve", Speaks: true})
	if list := s.Complaints(); len(list) > 0 {
		t.Errorf("the server complained:\n%s", strings.Join(list, "\n"))
	}
}

// What the customer says starts no reply before one is asked for, and the next one needs nothing said.
func TestUnasked(t *testing.T) {
	s := xaitest.New(t)
	c, err := modelOf(t, s, xaitest.Key, xaitest.Model).Connect(t.Context(), ai.RealtimeSetup{Voice: "eve", Rate: audio.Narrow})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.ScriptTranscripts(aitest.Behaviour{Text: "when do you open", FirstDelay: 200 * time.Millisecond})
	s.ScriptRealtime(aitest.Behaviour{Text: "At nine."}, aitest.Behaviour{Text: "Are you there?"})
	frame := make([]int16, audio.Narrow.FrameSize())
	for i := range frame {
		frame[i] = int16(1000 * (i%7 - 3))
	}
	for range 25 {
		c.Write(frame)
	}
	c.End()
	for e := range c.Events() { // longer than it takes to begin a reply
		if e.Kind != ai.RealtimeHeard {
			t.Fatalf("%+v", e)
		}
		if e.Final {
			break
		}
	}
	said := ""
	for n := range 2 {
		c.Respond(n, "", false)
		for e := range c.Events() {
			if said += e.Text; e.Kind == ai.RealtimeDone {
				break
			}
		}
	}
	if s.Unasked() != 0 || said != "At nine.Are you there?" {
		t.Errorf("%d replies that nobody asked for, and %q", s.Unasked(), said)
	}
	if list := s.Complaints(); len(list) > 0 {
		t.Errorf("the server complained:\n%s", strings.Join(list, "\n"))
	}
}

// A server that leaves out the metadata of replies is heard all the same, and a reply that is cut leaves the next alone.
func TestUnmarked(t *testing.T) {
	s := xaitest.New(t)
	s.Unmarked = true
	c, err := modelOf(t, s, xaitest.Key, xaitest.Model).Connect(t.Context(), ai.RealtimeSetup{Voice: "eve", Rate: audio.Narrow})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	texts := []string{"At nine.", "We have bread and rolls and cakes and pies.", "Yes."}
	for n, text := range texts {
		s.ScriptRealtime(aitest.Behaviour{Text: text, TokenDelay: 5 * time.Millisecond})
		c.Respond(n, "", false)
		said := ""
		for e := range c.Events() {
			if said += e.Text; e.N != n || e.Err != nil {
				t.Fatalf("%d: %+v", n, e)
			}
			if e.Kind == ai.RealtimeSound && n == 1 {
				c.Cut(n, 0, "")
			}
			if e.Kind == ai.RealtimeDone {
				break
			}
		}
		if n != 1 && said != text {
			t.Errorf("%d: %q", n, said)
		}
	}
	if list := s.Complaints(); len(list) > 0 {
		t.Errorf("the server complained:\n%s", strings.Join(list, "\n"))
	}
}

// The session's configuration has the fields of xAI's schema.
func TestTerms(t *testing.T) {
	null := map[string]any{"type": nil}
	narrow := map[string]any{"type": "audio/pcmu", "rate": 8000}
	wide := map[string]any{"type": "audio/pcm", "rate": 24000}
	for name, o := range map[string]struct {
		setup ai.RealtimeSetup
		want  map[string]any
	}{
		"speaks": {ai.RealtimeSetup{System: "Be brief.", Voice: "ara", Speed: 2, Language: "de", Rate: audio.Narrow,
			Keywords: []string{" Zoë ", "", strings.Repeat("x", 51)}},
			map[string]any{"instructions": "Be brief.", "voice": "ara", "turn_detection": null, "tools": []any{}, "audio": map[string]any{
				"input": map[string]any{"format": narrow, "transcription": map[string]any{"model": "grok-transcribe",
					"language_hint": "de", "keyterms": []string{"Zoë"}}},
				"output": map[string]any{"format": narrow, "speed": 1.5}}}},
		"writes, of two languages": {ai.RealtimeSetup{Writes: true, Voice: "alloy", Language: "de", Others: []string{"en"}, Rate: audio.Wide},
			map[string]any{"instructions": "", "turn_detection": null, "tools": []any{}, "audio": map[string]any{
				"input":  map[string]any{"format": wide, "transcription": map[string]any{"model": "grok-transcribe"}},
				"output": map[string]any{"format": wide}}}},
		"reads": {ai.RealtimeSetup{Reads: true, Voice: "leo", Speed: 0.1, Rate: audio.Wide},
			map[string]any{"instructions": "", "voice": "leo", "turn_detection": null, "tools": []any{}, "audio": map[string]any{
				"input": map[string]any{"format": wide}, "output": map[string]any{"format": wide, "speed": 0.7}}}},
	} {
		if got := terms(o.setup, []any{}); !reflect.DeepEqual(got, o.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCheck(t *testing.T) {
	s := xaitest.New(t)
	for name, o := range map[string]struct{ key, base, want, text string }{
		"none":         {"", s.URL, "note", "PARLEY_XAI_API_KEY"},
		"wrong key":    {"wrong", s.URL, "FAIL", "refuses the key in PARLEY_XAI_API_KEY"},
		"wrong server": {xaitest.Key, s.Server.URL, "FAIL", "check PARLEY_XAI_BASE_URL"},
		"no URL":       {xaitest.Key, "api.x.ai", "FAIL", "PARLEY_XAI_BASE_URL"},
		"well":         {xaitest.Key, s.URL, "ok", "hear and speak"},
	} {
		got := (&Settings{APIKey: o.key, BaseURL: o.base}).check(t.Context())
		if len(got) != 1 || got[0].State != o.want || strings.Contains(got[0].Text, xaitest.Key) || !strings.Contains(got[0].Text, o.text) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSessionConforms(t *testing.T) {
	aitest.ConformSession(t, func(t *testing.T) aitest.RealtimeVendor {
		s := xaitest.New(t)
		t.Cleanup(func() {
			for _, text := range s.Complaints() {
				if !strings.HasPrefix(text, "Voice not found") {
					t.Error(text)
				}
			}
		})
		return aitest.RealtimeVendor{Server: s, Manner: aitest.RealtimeManner{Voice: "eve", Speaks: true}, Tones: s.Voice,
			Model: func(t *testing.T, key, code string) ai.RealtimeModel {
				return modelOf(t, s, cmp.Or(key, xaitest.Key), cmp.Or(code, xaitest.Model))
			},
			Drop: func(code int) { s.DropRealtime(code, "") }, Expire: s.Expire, Strange: aitest.StrangeEvents}
	})
}

// A reply in which nothing may be called is made without tools, which are there again after it.
func TestWords(t *testing.T) {
	s := xaitest.New(t)
	c, err := modelOf(t, s, xaitest.Key, xaitest.Model).Connect(t.Context(), ai.RealtimeSetup{Voice: "eve", Rate: audio.Narrow,
		Tools: []ai.Tool{{Name: "order"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.ScriptRealtime(aitest.Behaviour{Text: "Very well."}, aitest.Behaviour{Text: "Yes."})
	for n, words := range []bool{true, false} {
		c.Respond(n, "", words)
		for e := range c.Events() {
			if e.Kind == ai.RealtimeDone {
				break
			}
		}
	}
	var tools []int
	for _, one := range s.Terms() {
		list, _ := one["tools"].([]any)
		tools = append(tools, len(list))
	}
	if !reflect.DeepEqual(tools, []int{1, 0, 1}) {
		t.Errorf("the session had so many tools: %v", tools)
	}
}
