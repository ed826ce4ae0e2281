package gptlive

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/provider/gptlive/gptlivetest"
)

func modelOf(s *gptlivetest.Server, key, code string) Model {
	return Model{Base: s.URL, Vendor: "openai", Code: cmp.Or(code, gptlivetest.Model), Thinker: gptlivetest.Thinker,
		Sign: func(h http.Header) { h.Set("Authorization", "Bearer "+cmp.Or(key, gptlivetest.Key)) }}
}

// At 8 kHz the server leaves silence out, at the other rate it sends all of it.
func TestSessionConforms(t *testing.T) {
	aitest.ConformSession(t, func(t *testing.T) aitest.RealtimeVendor {
		s := gptlivetest.New(t)
		s.Lasts, s.Sparse = 12, strings.Contains(t.Name(), "/8000_Hz")
		t.Cleanup(func() {
			for _, text := range s.Complaints() {
				if !strings.HasPrefix(text, "Voice not found") && !strings.HasPrefix(text, "The model ") {
					t.Error(text)
				}
			}
		})
		return aitest.RealtimeVendor{Server: s, Manner: aitest.RealtimeManner{Notes: true, Decides: true}, Tones: s.Voice,
			Model: func(_ *testing.T, key, code string) ai.RealtimeModel { return modelOf(s, key, code) },
			Drop:  s.Drop, Expire: s.Expire, Speak: s.Speak, HeardMS: s.HeardMS, Strange: []string{
				`{"type":"info","code":"data_channel_permissions","message":"x"}`,
				`{"type":"session.telepathy.delta","delta":"x"}`,
				`{"type":"session.commentary.appended","delegation_id":"delegation_x"}`,
				`{"type":"session.delegation.created","offset_ms":1,"delegation":{"id":"x","type":"delegation","target":"responses"}}`,
				`{"type":"response.event","delegation_id":"x","event":{"type":"response.telepathy.delta"}}`,
				`{"type":"response.event","delegation_id":"x","event":{"type":"response.output_item.done","item":{"type":"function_call","call_id":"call_x","name":"order","arguments":"{}"}}}`,
				`{"type":"response.event","delegation_id":"x","event":{"type":"response.failed"}}`,
				`{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value","message":"x"}}`,
			}}
	})
}

// A session whose server doesn't say when it ends doesn't say that it is about to.
func TestEndless(t *testing.T) {
	s := gptlivetest.New(t)
	s.Lasts = -1
	l, err := modelOf(s, "", "").Connect(t.Context(), ai.RealtimeSetup{Voice: "marin", Rate: audio.Narrow})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	select {
	case e := <-l.Events():
		t.Errorf("%+v", e)
	case <-time.After(300 * time.Millisecond):
	}
}

// until reads a session's events up to one of a kind, and returns how many speeches have begun before it.
func until(t *testing.T, l ai.RealtimeSession, kind ai.RealtimeKind) (begun int) {
	t.Helper()
	for {
		select {
		case e := <-l.Events():
			switch e.Kind {
			case kind:
				return begun
			case ai.RealtimeBegan:
				begun++
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no event of kind %v came", kind)
		}
	}
}

// What a session says while it stands by, and nobody listens to it, is forgotten: it has not begun to say that.
func TestStandsBy(t *testing.T) {
	t.Parallel()
	s := gptlivetest.New(t)
	s.ScriptRealtime(aitest.Behaviour{Text: "Hello?"}, aitest.Behaviour{Text: "We open at nine."})
	l, err := modelOf(s, "", "").Connect(t.Context(), ai.RealtimeSetup{Voice: "marin", Rate: audio.Narrow})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.Speak()
	forgotten := func() bool {
		return slices.ContainsFunc(s.Conversations()[0].Items, func(i aitest.RealtimeItem) bool {
			return strings.Contains(i.Text, "was not heard")
		})
	}
	for end := time.Now().Add(20 * time.Second); !forgotten(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it isn't forgotten")
		}
	}
	l.Respond(1, "", false)
	if begun := until(t, l, ai.RealtimeSound); begun != 0 {
		t.Errorf("it has begun %d times", begun)
	}
}

// What the thinker used counts, also of a response that failed.
func TestThinkerUsed(t *testing.T) {
	tally := new(ai.Tally)
	s := Model{Vendor: "openai", Thinker: "thinker"}.session(ai.Tallied(t.Context(), tally), ai.RealtimeSetup{Rate: audio.Wide})
	for _, e := range []string{`{"type":"response.created"}`, `{"type":"response.failed","response":{"usage":{"input_tokens":40}}}`} {
		if err := s.Take([]byte(`{"type":"response.event","delegation_id":"a","event":` + e + `}`)); err != nil {
			t.Fatal(err)
		}
	}
	if used := tally.Uses(); len(used) != 1 || used[0].In != 40 || used[0].Model != "thinker" {
		t.Errorf("%+v", used)
	}
}

// Texts that must be said word for word are the reader's; without one they are refused, and so is a session that only writes.
func TestReader(t *testing.T) {
	s := aitest.NewServer(t)
	reads := errors.New("it reads")
	m := Model{Base: s.URL, Reader: reader{reads}}
	if _, err := m.Connect(t.Context(), ai.RealtimeSetup{Reads: true, Rate: audio.Narrow}); !errors.Is(err, reads) {
		t.Error(err)
	}
	m.Reader = nil
	for _, setup := range []ai.RealtimeSetup{{Reads: true}, {Writes: true}} {
		if _, err := m.Connect(t.Context(), setup); ai.KindOf(err) != ai.Config {
			t.Errorf("%+v: %v", setup, err)
		}
	}
}

// reader fails with its error.
type reader struct{ error }

func (r reader) Connect(_ context.Context, _ ai.RealtimeSetup) (ai.RealtimeSession, error) {
	return nil, r.error
}
