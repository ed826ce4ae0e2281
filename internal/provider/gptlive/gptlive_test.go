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

// The text of a speech may come after its sound; it is told before the speech is done, with the time at which it has been said.
func TestTextAfterSound(t *testing.T) {
	now := time.Now()
	s := &session{bell: make(chan struct{}, 1), rate: audio.Wide, wrote: now.Add(time.Hour), slots: []slot{{n: 1}}}
	s.sound(slices.Repeat([]int16{1000}, 1600))
	s.lacks(quiet)
	if err := s.take(&event{Type: "session.output_transcript.delta", Delta: "Yes.", StartMS: 0, EndMS: 80}); err != nil {
		t.Fatal(err)
	}
	s.passes(s.pastAt.Add(trails - 1))
	told := func() (kinds []ai.RealtimeKind) {
		for _, e := range s.events {
			kinds = append(kinds, e.Kind)
		}
		return kinds
	}
	if want := []ai.RealtimeKind{ai.RealtimeSound, ai.RealtimeText}; !slices.Equal(told(), want) {
		t.Fatalf("%v, not %v", told(), want)
	}
	if e := s.events[1]; e.N != 1 || e.Text != "Yes." || e.At != 80*time.Millisecond {
		t.Errorf("%+v", e)
	}
	s.passes(s.pastAt.Add(trails))
	if e := s.events[len(s.events)-1]; e.Kind != ai.RealtimeDone || e.N != 1 {
		t.Errorf("%+v", e)
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

// The calls of two delegations that overlap stay apart, usage of a response that failed counts, and a result that comes while the other
// one runs is thought about afterwards.
func TestDelegations(t *testing.T) {
	s := &session{bell: make(chan struct{}, 1), open: map[string]*speech{}, pending: map[string][]ai.ToolCall{}, tally: new(ai.Tally)}
	event := func(task, kind, call string) {
		e := event{Type: "response.event", Task: task}
		e.Event.Type = kind
		e.Event.Item.Type, e.Event.Item.CallID, e.Event.Item.Name = "function_call", call, "price"
		if kind == "response.failed" {
			e.Event.Response.Usage.In = 40
		}
		if err := s.take(&e); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range [][3]string{{"a", "response.created", ""}, {"b", "response.created", ""}, {"c", "response.created", ""},
		{"a", "response.output_item.done", "1"}, {"b", "response.output_item.done", "2"}, {"b", "response.failed", ""},
		{"a", "response.completed", ""}} {
		event(e[0], e[1], e[2])
	}
	if len(s.open) != 1 || s.open["1"] == nil || s.running != 1 {
		t.Errorf("calls %v, %d responses", s.open, s.running)
	}
	if used := s.tally.Uses(); len(used) != 1 || used[0].In != 40 {
		t.Errorf("%+v", used)
	}
	if s.Result("1", "3 EUR"); s.resumed {
		t.Error("the thinker is asked to go on while it thinks")
	}
	if event("c", "response.completed", ""); !s.resumed {
		t.Error("the thinker isn't asked to go on")
	}
}

// A thinker of which nothing is heard for a minute counts as gone: what was asked for is not owed any longer.
func TestSilentThinker(t *testing.T) {
	now := time.Now()
	s := &session{bell: make(chan struct{}, 1), open: map[string]*speech{}, pending: map[string][]ai.ToolCall{}, wrote: now.Add(lost),
		running: 1, thought: now, slots: []slot{{n: 1, asked: true}}}
	if s.passes(now.Add(lost - time.Second)); len(s.slots) != 1 {
		t.Error("it isn't waited for")
	}
	if s.passes(now.Add(lost)); len(s.slots) != 0 || s.events[0].N != 1 || ai.KindOf(s.events[0].Err) != ai.Stalled {
		t.Errorf("%+v", s.slots)
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
