package gptlive

import (
	"cmp"
	"context"
	"errors"
	"net/http"
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

func TestSessionConforms(t *testing.T) {
	aitest.ConformSession(t, func(t *testing.T) aitest.RealtimeVendor {
		s := gptlivetest.New(t)
		s.Lasts = 12
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
