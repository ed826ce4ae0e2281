package geminilive_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/provider/gemini"
	"parley/internal/provider/gemini/geminitest"
)

func liveOf(t *testing.T, s *geminitest.Server, model, key string) ai.RealtimeModel {
	t.Helper()
	c, err := gemini.Open(gemini.Config{BaseURL: s.URL, APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.LiveModel(model)
}

// complains fails if the server got a request that it refuses.
func complains(t *testing.T, s *geminitest.Server) {
	t.Helper()
	if list := s.Complaints(); len(list) > 0 {
		t.Errorf("the server complained:\n%s", strings.Join(list, "\n"))
	}
}

func TestLiveConforms(t *testing.T) {
	t.Parallel()
	s := geminitest.New(t)
	s.Piecemeal = true
	aitest.ConformRealtime(t, liveOf(t, s, geminitest.Writing, geminitest.Key), s,
		aitest.RealtimeManner{Voice: "Kore", Notes: true, Fatal: true})
	complains(t, s)
}

// When a turn is reported complete only after its sound would have been played, nothing waits for that, and its usage
// is still counted.
func TestLivePlayed(t *testing.T) {
	t.Parallel()
	s := geminitest.New(t)
	s.Played = true
	c := connect(t, s, ai.RealtimeSetup{})
	var h heard
	s.ScriptRealtime(aitest.Behaviour{Text: "This takes more than a second to be said."}, aitest.Behaviour{Text: "And this is next."},
		aitest.Behaviour{Text: "Brief."})
	s.ScriptTranscripts(aitest.Behaviour{Text: "go on"}, aitest.Behaviour{Text: "and"})
	c.Respond(1, "", false)
	h.until(t, c, ai.RealtimeDone, 1)
	h.until(t, c, ai.RealtimeUsed, 0)
	says(c)
	c.Respond(2, "", false)
	h.until(t, c, ai.RealtimeText, 2)
	h.until(t, c, ai.RealtimeSound, 2)
	says(c) // before the turn is reported complete: Google then also says that it was interrupted
	c.Respond(3, "", false)
	h.until(t, c, ai.RealtimeDone, 2)
	h.until(t, c, ai.RealtimeDone, 3)
	if h.text != "This takes more than a second to be said.And this is next.Brief." {
		t.Errorf("it said %q", h.text)
	}
	complains(t, s)
}

// The error of a refused session says who has to do something about it.
func TestLiveRefused(t *testing.T) {
	for name, o := range map[string]struct {
		key, model, voice string
		b                 aitest.Behaviour
		want              ai.Kind
	}{
		"wrong key":   {key: "wrong", want: ai.Config},
		"wrong model": {model: "gemini-none", want: ai.Config},
		"wrong voice": {voice: "nobody", want: ai.Config},
		"too many":    {b: aitest.Behaviour{Status: 429, RetryAfter: "3"}, want: ai.RateLimited},
		"overloaded":  {b: aitest.Behaviour{Status: 503}, want: ai.Overloaded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := geminitest.New(t)
			if o.b.Status != 0 {
				s.ScriptRealtime(o.b)
			}
			m := liveOf(t, s, cmp.Or(o.model, geminitest.Live), cmp.Or(o.key, geminitest.Key))
			c, err := m.Connect(t.Context(), ai.RealtimeSetup{Voice: cmp.Or(o.voice, "Kore"), Rate: audio.Narrow})
			if err == nil {
				c.Close()
			}
			if ai.KindOf(err) != o.want || strings.Contains(err.Error(), "wrong key") {
				t.Errorf("%v, want %s", err, o.want)
			}
		})
	}
}

// heard is what came out of a session.
type heard struct {
	kinds  []ai.RealtimeKind
	text   string
	sound  int
	finals map[int]string
}

// until reads a session's events until one of this kind about n.
func (h *heard) until(t *testing.T, c ai.RealtimeSession, kind ai.RealtimeKind, n int) ai.RealtimeEvent {
	t.Helper()
	guard := time.After(10 * time.Second)
	for {
		select {
		case e, ok := <-c.Events():
			if !ok {
				t.Fatal("the session ended")
			}
			switch e.Kind {
			case ai.RealtimeText:
				h.text += e.Text
			case ai.RealtimeSound:
				h.sound += len(e.PCM)
			case ai.RealtimeHeard:
				if e.Final {
					if h.finals == nil {
						h.finals = map[int]string{}
					}
					h.finals[e.N] = e.Text
				}
			}
			h.kinds = append(h.kinds, e.Kind)
			if e.Kind == kind && e.N == n && (kind != ai.RealtimeHeard || e.Final) {
				return e
			}
		case <-guard:
			t.Fatalf("no event %d about %d, but %v", kind, n, h.kinds)
		}
	}
}

// says is the customer speaking for half a second.
func says(c ai.RealtimeSession) {
	frame := make([]int16, audio.Narrow.FrameSize())
	for range 25 {
		c.Write(frame)
	}
	c.End()
}

func connect(t *testing.T, s *geminitest.Server, setup ai.RealtimeSetup) ai.RealtimeSession {
	t.Helper()
	setup.Rate = audio.Narrow
	if !setup.Writes {
		setup.Voice = "Kore"
	}
	c, err := liveOf(t, s, geminitest.Live, geminitest.Key).Connect(t.Context(), setup)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A session outlives its connection: it moves to another one, and its user notices nothing.
func TestLiveMoves(t *testing.T) {
	t.Parallel()
	s := geminitest.New(t)
	c := connect(t, s, ai.RealtimeSetup{})
	var h heard
	for i, text := range []string{"One.", "Two.", "Three."} {
		s.ScriptTranscripts(aitest.Behaviour{Text: "say " + text})
		s.ScriptRealtime(aitest.Behaviour{Text: text, TokenDelay: 50 * time.Millisecond})
		says(c)
		c.Respond(i, "", false)
		h.until(t, c, ai.RealtimeText, i)
		s.Leave(3 * time.Second) // in the middle of a reply
		if e := h.until(t, c, ai.RealtimeDone, i); e.Err != nil {
			t.Fatal(e.Err)
		}
		if h.finals[i] == "" {
			h.until(t, c, ai.RealtimeHeard, i)
		}
		for end := time.Now().Add(10 * time.Second); len(s.Conversations()) < i+2; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the session did not move")
			}
		}
	}
	list := s.Conversations()
	last := list[len(list)-1]
	var items []string
	for _, it := range last.Items {
		items = append(items, it.Text)
	}
	if got := strings.Join(items, "|"); got != "say One.|One.|say Two.|Two.|say Three.|Three." || h.text != "One.Two.Three." {
		t.Errorf("the model holds %q, and said %q", got, h.text)
	}
	if slices.Contains(h.kinds, ai.RealtimeExpiring) {
		t.Error("it said that it ends")
	}
	complains(t, s)
}

// What the customer says while the session moves is not lost.
func TestLiveMovesWhileSpeaking(t *testing.T) {
	t.Parallel()
	s := geminitest.New(t)
	c := connect(t, s, ai.RealtimeSetup{})
	var h heard
	s.ScriptTranscripts(aitest.Behaviour{Text: "are you there"})
	s.ScriptRealtime(aitest.Behaviour{Text: "Yes."}, aitest.Behaviour{Text: "Still."})
	c.Respond(0, "", false)
	h.until(t, c, ai.RealtimeDone, 0)
	s.Slow = 500 * time.Millisecond // to answer the setup
	s.Leave(4 * time.Second)
	for end := time.Now().Add(10 * time.Second); s.Connected() < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the session did not move")
		}
	}
	says(c)
	c.Respond(1, "", false)
	h.until(t, c, ai.RealtimeDone, 1)
	list := s.Conversations()
	if items := list[len(list)-1].Items; len(list) != 2 || len(items) != 4 || items[2].Text != "are you there" {
		t.Errorf("%d conversations, the last holds %+v", len(list), items)
	}
	complains(t, s)
}

// A session that can't be moved says that it will end, early enough to open another one.
func TestLiveExpires(t *testing.T) {
	t.Parallel()
	s := geminitest.New(t)
	c := connect(t, s, ai.RealtimeSetup{})
	var h heard
	says(c) // without a stop: there is no pause
	began := time.Now()
	s.Leave(2 * time.Second)
	if e := h.until(t, c, ai.RealtimeExpiring, 0); e.Remaining < 500*time.Millisecond || time.Since(began) < 900*time.Millisecond {
		t.Errorf("%v remain after %v", e.Remaining, time.Since(began))
	}
	if e := h.until(t, c, ai.RealtimeLost, 0); ai.KindOf(e.Err) != ai.Interrupted {
		t.Error(e.Err)
	}
}

// A model that only speaks writes with the transcript of its speech, and is tried for text only once.
func TestLiveWrites(t *testing.T) {
	t.Parallel()
	s := geminitest.New(t)
	m := liveOf(t, s, geminitest.Live, geminitest.Key)
	for i := range 2 {
		s.ScriptRealtime(aitest.Behaviour{Text: "In so many words."})
		c, err := m.Connect(t.Context(), ai.RealtimeSetup{Writes: true, Voice: "alloy", Rate: audio.Narrow})
		if err != nil {
			t.Fatal(err)
		}
		var h heard
		c.Respond(1, "", false)
		h.until(t, c, ai.RealtimeDone, 1)
		c.Close()
		if h.text != "In so many words." || h.sound > 0 {
			t.Errorf("it wrote %q, with %d samples", h.text, h.sound)
		}
		if n := s.Connected(); n != 2+i {
			t.Errorf("%d connections", n)
		}
	}
}

// A customer speaks while a tool runs: the model gives the call up, and is still told its result.
func TestLiveCallGivenUp(t *testing.T) {
	t.Parallel()
	s := geminitest.New(t)
	c := connect(t, s, ai.RealtimeSetup{Tools: []ai.Tool{{Name: "order"}}})
	var h heard
	s.ScriptRealtime(aitest.Behaviour{Calls: []ai.ToolCall{{Name: "order", Arguments: "{}"}}}, aitest.Behaviour{Text: "It is."})
	s.ScriptTranscripts(aitest.Behaviour{Text: "is it done"})
	c.Respond(1, "Order.", false)
	call := h.until(t, c, ai.RealtimeCall, 1)
	h.until(t, c, ai.RealtimeDone, 1)
	says(c)
	c.Result(call.Call.ID, "order 5 placed")
	c.Respond(2, "", false)
	h.until(t, c, ai.RealtimeDone, 2)
	list := s.Conversations()
	told := slices.ContainsFunc(list[0].Items, func(it aitest.RealtimeItem) bool {
		return it.Role == "user" && strings.Contains(it.Text, "order 5 placed")
	})
	if !told || h.text != "It is." {
		t.Errorf("the model holds %+v, and said %q", list[0].Items, h.text)
	}
	complains(t, s)
}

// A response that must be words calls no tools, whatever the model would like.
func TestLiveWords(t *testing.T) {
	t.Parallel()
	s := geminitest.New(t)
	c := connect(t, s, ai.RealtimeSetup{Tools: []ai.Tool{{Name: "order"}}})
	var h heard
	call := aitest.Behaviour{Calls: []ai.ToolCall{{Name: "order", Arguments: "{}"}}}
	s.ScriptRealtime(call, aitest.Behaviour{Text: "Very well."}, call, call, call, call)
	c.Respond(1, "", true)
	if e := h.until(t, c, ai.RealtimeDone, 1); e.Err != nil || h.text != "Very well." {
		t.Errorf("it said %q, %v", h.text, e.Err)
	}
	c.Respond(2, "", true)
	if e := h.until(t, c, ai.RealtimeDone, 2); ai.KindOf(e.Err) != ai.Malformed {
		t.Errorf("%v", e.Err)
	}
	if slices.Contains(h.kinds, ai.RealtimeCall) {
		t.Error("it called")
	}
	complains(t, s)
}

// A model that chooses to say nothing is asked once more. One that says nothing again has nothing to say.
func TestLiveSilent(t *testing.T) {
	t.Parallel()
	s := geminitest.New(t)
	c := connect(t, s, ai.RealtimeSetup{})
	var h heard
	silent := aitest.Behaviour{Code: "TURN_COMPLETE_REASON_UNSPECIFIED"}
	s.ScriptRealtime(silent, aitest.Behaviour{Text: "We open at nine."}, silent, silent, aitest.Behaviour{Text: "Yes."})
	s.ScriptTranscripts(aitest.Behaviour{Text: "when do you open"}, aitest.Behaviour{Text: "mhm"}, aitest.Behaviour{Text: "hello"})
	for n, want := range []string{"We open at nine.", "", "Yes."} {
		says(c)
		c.Respond(n, "", false)
		if e := h.until(t, c, ai.RealtimeDone, n); e.Err != nil || h.text != want {
			t.Errorf("response %d is %q, %v", n, h.text, e.Err)
		}
		h.text = ""
	}
	complains(t, s)
}

// The language of an utterance is told where several may be spoken, if it is one of them.
func TestLiveLanguage(t *testing.T) {
	t.Parallel()
	for _, o := range []struct {
		spoken string
		others []string
		want   string
	}{{"fr-CA", []string{"de", "fr"}, "fr"}, {"en-US", []string{"de"}, "en"}, {"pt", []string{"de"}, ""}, {"", []string{"de"}, ""},
		{"fr", nil, ""}} {
		s := geminitest.New(t)
		s.Spoken = o.spoken
		s.ScriptTranscripts(aitest.Behaviour{Text: "two of them please"})
		c := connect(t, s, ai.RealtimeSetup{Language: "en", Others: o.others})
		var h heard
		says(c)
		c.Respond(1, "", false)
		if e := h.until(t, c, ai.RealtimeHeard, 0); e.Language != o.want {
			t.Errorf("%q of %q: %q", o.spoken, o.others, e.Language)
		}
		hears, _ := s.Conversations()[0].Terms["inputAudioTranscription"].(map[string]any)
		if got := fmt.Sprint(hears["languageCodes"]); got != fmt.Sprint(append([]string{"en"}, o.others...)) {
			t.Errorf("it expects %s", got)
		}
		complains(t, s)
	}
}

// Texts that come only after the customer has finished.
func TestLiveHearsLate(t *testing.T) {
	t.Parallel()
	s := geminitest.New(t)
	s.Late, s.Unfinished = true, true
	c := connect(t, s, ai.RealtimeSetup{})
	var h heard
	s.ScriptTranscripts(aitest.Behaviour{Text: "two of them please"})
	s.ScriptRealtime(aitest.Behaviour{Text: "Two it is."})
	says(c)
	c.Respond(1, "", false)
	h.until(t, c, ai.RealtimeDone, 1)
	if h.finals[0] == "" {
		h.until(t, c, ai.RealtimeHeard, 0)
	}
	if h.finals[0] != "two of them please" {
		t.Errorf("it heard %q", h.finals[0])
	}
	complains(t, s)
}

func TestLiveSessionConforms(t *testing.T) {
	aitest.ConformSession(t, func(t *testing.T) aitest.RealtimeVendor {
		s := geminitest.New(t)
		return aitest.RealtimeVendor{Server: s, Manner: aitest.RealtimeManner{Voice: "Kore", Notes: true, Fatal: true}, Tones: s.Voice,
			Model: func(t *testing.T, key, code string) ai.RealtimeModel {
				return liveOf(t, s, cmp.Or(code, geminitest.Live), cmp.Or(key, geminitest.Key))
			},
			Drop: func(code int) { s.Drop(code, "") }, Expire: func() { s.Leave(10 * time.Second) }, Moves: true,
			Strange: []string{`{"unknownThing":{"id":"x"}}`, `{"serverContent":{}}`, `{"toolCallCancellation":{"ids":["nobody"]}}`,
				`{"serverContent":{"modelTurn":{"parts":[]}}}`, `{"sessionResumptionUpdate":{}}`}}
	})
}
