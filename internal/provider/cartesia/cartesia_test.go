package cartesia

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/provider/cartesia/cartesiatest"
)

var as = ai.Speech{Voice: cartesiatest.Voice, Language: "en", Rate: audio.Narrow}

// vendor is Cartesia at a server's address, with changed settings.
func vendor(t *testing.T, s *cartesiatest.Server, change ...func(*Settings)) *ai.Opened {
	t.Helper()
	set := &Settings{APIKey: cartesiatest.Key, BaseURL: s.URL, TTSModel: "sonic-3", STTModel: "ink-whisper"}
	for _, c := range change {
		c(set)
	}
	o, err := Declare(set).Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

func voiceOf(t *testing.T, s *cartesiatest.Server, change ...func(*Settings)) ai.Synthesizer {
	t.Helper()
	v, err := vendor(t, s, change...).Synthesizer(Code)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func recognitionOf(t *testing.T, s *cartesiatest.Server, change ...func(*Settings)) ai.Recognizer {
	t.Helper()
	r, err := vendor(t, s, change...).Recognizer(Code)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sound is a text's sound, as the server's Speaker makes it.
func sound(t *testing.T, s *cartesiatest.Server, text string, rate audio.Rate) (pcm []int16) {
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

func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}

func TestVoiceConforms(t *testing.T) {
	for name, relative := range map[string]bool{"times of the context": false, "times of the text": true} {
		t.Run(name, func(t *testing.T) {
			s := cartesiatest.New(t)
			s.Relative = relative
			aitest.ConformSynthesizer(t, voiceOf(t, s), as)
			if n := s.Opened(); n > 2 {
				t.Errorf("%d sockets", n)
			}
		})
	}
}

// Each text's sound ends with its flush_done. The times of words are right, whichever point they are counted from.
func TestTimes(t *testing.T) {
	texts := []string{"Good morning, all!", "We have bread.", "?!", "And rolls."}
	for _, relative := range []bool{false, true} {
		s := cartesiatest.New(t)
		s.Relative = relative
		feed := make(chan string, len(texts))
		for _, text := range texts {
			feed <- text
		}
		close(feed)
		pcm, words := make([][]int16, len(texts)), make([][]ai.Word, len(texts))
		err := voiceOf(t, s).Speak(t.Context(), as, feed, func(p ai.Sound) error {
			pcm[p.Text], words[p.Text] = append(pcm[p.Text], p.PCM...), append(words[p.Text], p.Words...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			want := aitest.WordTimes(text, 1)
			if want != nil && !slices.Equal(pcm[i], sound(t, s, text, as.Rate)) {
				t.Errorf("%q has another sound", text)
			}
			if len(words[i]) != len(want) {
				t.Errorf("%q: got %v, want %v", text, words[i], want)
				continue
			}
			for k, w := range want {
				if got := words[i][k]; got.Until != w.Until || (got.At-w.At).Abs() > time.Millisecond {
					t.Errorf("%q: got %v, want %v", text, got, w)
				}
			}
		}
		if n, _ := s.Contexts(); n != 1 {
			t.Errorf("%d contexts for texts that were there", n)
		}
	}
}

// A context that has run out of texts expires: the next text gets another one. An interruption cancels the context.
func TestContexts(t *testing.T) {
	s := cartesiatest.New(t)
	s.Expiry = 500 * time.Millisecond
	v := voiceOf(t, s)
	feed := make(chan string, 1)
	feed <- "One moment."
	texts := []string{"Here it is.", "Good bye."}
	err := v.Speak(t.Context(), as, feed, func(p ai.Sound) error {
		if p.Last {
			go func() {
				time.Sleep(3 * s.Expiry)
				if len(texts) == 0 {
					close(feed)
					return
				}
				next := texts[0]
				texts = texts[1:]
				feed <- next
			}()
		}
		return nil
	})
	opened, cancelled := s.Contexts()
	if err != nil || opened != 3 || cancelled != 0 || s.Opened() != 1 {
		t.Errorf("%v: %d contexts on %d sockets, %d cancelled", err, opened, s.Opened(), cancelled)
	}
	s.Speaker.Usually(aitest.Saying{Hang: true, After: 200 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	err = ai.Say(ctx, v, as, "This is interrupted.", func([]int16) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	waitFor(t, "the cancel", func() bool { _, n := s.Contexts(); return n == 1 })
	s.Speaker.Usually(aitest.Saying{})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := ai.Say(t.Context(), v, as, "All at once.", func([]int16) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.Opened(); n > 10 {
		t.Errorf("%d sockets", n)
	}
}

// An error says what can be done about it, and doesn't contain the key.
func TestVoiceFails(t *testing.T) {
	for name, c := range map[string]struct {
		refuse cartesiatest.Refusal
		change func(*Settings)
		how    aitest.Saying
		kick   websocket.StatusCode
		kind   ai.Kind
		after  time.Duration
	}{
		"a wrong key":   {change: func(s *Settings) { s.APIKey = "s3cret" }, kind: ai.Config},
		"no plan":       {refuse: cartesiatest.Refusal{Status: 402, Code: "quota_exceeded"}, kind: ai.Config},
		"too many":      {refuse: cartesiatest.Refusal{Status: 429, RetryAfter: 4}, kind: ai.RateLimited, after: 4 * time.Second},
		"down":          {refuse: cartesiatest.Refusal{Status: 502}, kind: ai.Overloaded},
		"nobody there":  {change: func(s *Settings) { s.BaseURL = "http://127.0.0.1:1" }, kind: ai.Unreachable},
		"another model": {change: func(s *Settings) { s.TTSModel = "sonic-9" }, kind: ai.Config},
		"concurrency":   {refuse: cartesiatest.Refusal{In: 429, Code: "concurrency_limited"}, kind: ai.RateLimited},
		"failed":        {refuse: cartesiatest.Refusal{In: 500}, kind: ai.Overloaded},
		"expired":       {refuse: cartesiatest.Refusal{In: 400, Code: "context_expired"}, kind: ai.Interrupted},
		"in mid-stream": {how: aitest.Saying{Err: errors.New("boom"), After: 300 * time.Millisecond}, kind: ai.Interrupted},
		"1011":          {how: aitest.Saying{Hang: true, After: 300 * time.Millisecond}, kick: 1011, kind: ai.Interrupted},
		"1008":          {how: aitest.Saying{Hang: true}, kick: 1008, kind: ai.Config},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := cartesiatest.New(t)
			if c.refuse != (cartesiatest.Refusal{}) {
				s.Refuse(c.refuse)
			}
			s.Speaker.Usually(c.how)
			change := c.change
			if change == nil {
				change = func(*Settings) {}
			}
			v := voiceOf(t, s, change)
			if c.kick != 0 {
				go func() {
					waitFor(t, "the text", func() bool { return s.Speaker.Live() == 1 })
					time.Sleep(100 * time.Millisecond) // until earlier messages have arrived
					s.Kick(c.kick, "no")
				}()
			}
			err := ai.Say(t.Context(), v, as, "This may never be said.", func([]int16) error { return nil })
			e, ok := errors.AsType[*ai.Error](err)
			if !ok || e.Kind != c.kind || e.RetryAfter != c.after || strings.Contains(err.Error(), "s3cret") ||
				strings.Contains(err.Error(), cartesiatest.Key) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRecognitionConforms(t *testing.T) {
	s := cartesiatest.New(t)
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

func TestRecognitionFails(t *testing.T) {
	for name, c := range map[string]struct {
		h    cartesiatest.Hearing
		kind ai.Kind
	}{
		"key": {cartesiatest.Hearing{Error: 401}, ai.Config}, "rate": {cartesiatest.Hearing{Error: 429}, ai.RateLimited},
		"failed": {cartesiatest.Hearing{Error: 500}, ai.Overloaded}, "1011": {cartesiatest.Hearing{Close: 1011}, ai.Interrupted},
		"stalled": {cartesiatest.Hearing{Never: true}, ai.Stalled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := cartesiatest.New(t)
			s.Script(cartesiatest.Hearing{Text: "this is the first"}, c.h)
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
			if len(got) != 2 || got[0].Text != "this is the first" || ai.KindOf(got[1].Err) != c.kind {
				t.Errorf("got %+v", got)
			}
			if _, open := <-e.Transcripts(); open {
				t.Error("the ear goes on")
			}
		})
	}
}

// The model that detects turns gets all of the sound, and reports when a speaker may have finished, and when they have.
func TestTurnsConform(t *testing.T) {
	s := cartesiatest.New(t)
	r := recognitionOf(t, s, func(s *Settings) { s.STTModel = "ink-2" })
	aitest.ConformRecognizer(t, r, aitest.Heard{Language: "en", Texts: []string{"one and a half", "two", "three of them"},
		Sound: func(t *testing.T, text string, rate audio.Rate) []int16 { return sound(t, s, text, rate) }})
}

// It knows only English, and takes keywords.
func TestRecognitionModels(t *testing.T) {
	s := cartesiatest.New(t)
	r := recognitionOf(t, s, func(s *Settings) { s.STTModel = "ink-2" })
	for _, language := range []string{"en", "de"} {
		e, err := r.Listen(t.Context(), ai.Hearing{Language: language, Rate: audio.Wide, Keywords: []string{"Brezel"}})
		if err != nil {
			t.Fatal(err)
		}
		if e.Continuous() != (language == "en") {
			t.Errorf("%s: continuous %v", language, e.Continuous())
		}
		e.Close()
	}
	q := s.Queries()
	if !strings.Contains(q[0], "model=ink-2") || !strings.Contains(q[0], "keyterm=Brezel") ||
		!strings.Contains(q[1], "model=ink-whisper") || strings.Contains(q[1], "keyterm") ||
		!strings.Contains(q[1], "language=de") || !strings.Contains(q[1], "sample_rate=16000") {
		t.Errorf("asked with %q", q)
	}
}

// Where several languages may be spoken, the model that tells them apart says which one it was: the likeliest. Those that
// it doesn't have are left to the other model, which doesn't tell.
func TestRecognitionTellsLanguages(t *testing.T) {
	s := cartesiatest.New(t)
	s.Detect = func(text string) map[string]float64 {
		if strings.HasPrefix(text, "hola") {
			return map[string]float64{"en": 0.6, "es": 0.9}
		}
		return map[string]float64{"en": 1}
	}
	preview := func(s *Settings) { s.STTModel = "ink-preview" }
	for _, c := range []struct {
		others []string
		query  string
		want   []string
	}{
		{[]string{"es"}, "language_hint=en&language_hint=es&model=ink-preview", []string{"en", "es", "en"}},
		{nil, "language_hint=en&model=ink-preview", []string{"", "", ""}},
		{[]string{"es", "is"}, "language=en&model=ink-whisper", []string{"", "", ""}},
	} {
		e, err := recognitionOf(t, s, preview).Listen(t.Context(), ai.Hearing{Language: "en", Others: c.others, Rate: audio.Narrow})
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range []string{"hello there", "hola a todos", "goodbye"} {
			e.Write(sound(t, s, text, audio.Narrow))
			e.End()
			if e.Continuous() {
				e.Write(make([]int16, 4000))
			}
			got := finals(t, e, 1)
			if len(got) != 1 || got[0].Text != text || got[0].Language != c.want[i] {
				t.Errorf("%v: got %+v, not %q in %q", c.others, got, text, c.want[i])
			}
		}
		e.Close()
		q := s.Queries()
		if last := q[len(q)-1]; !strings.Contains(last, c.query) {
			t.Errorf("%v: asked with %s, not %s", c.others, last, c.query)
		}
	}
	for model, tells := range map[string]bool{"ink-preview": true, "ink-2": false, "ink-whisper": false} {
		set := new(Settings)
		listens := Declare(set).Listeners[0] // as the program does, which reads the settings later
		set.STTModel = model
		if got := listens.Mixed() != ""; got != tells {
			t.Errorf("%s tells languages: %v", model, got)
		}
	}
}

func TestDoctor(t *testing.T) {
	s := cartesiatest.New(t)
	for name, c := range map[string]struct {
		change       func(*Settings)
		state, holds string
	}{
		"well":         {func(*Settings) {}, "ok", "sonic-3"},
		"wrong key":    {func(s *Settings) { s.APIKey = "s3cret" }, "FAIL", "PARLEY_CARTESIA_API_KEY"},
		"nobody there": {func(s *Settings) { s.BaseURL = "http://127.0.0.1:1" }, "FAIL", "127.0.0.1:1"},
		"no address":   {func(s *Settings) { s.BaseURL = "x" }, "FAIL", "PARLEY_CARTESIA_BASE_URL"},
		"no key":       {func(s *Settings) { s.APIKey = "" }, "note", "not configured: set PARLEY_CARTESIA_API_KEY"},
	} {
		set := &Settings{APIKey: cartesiatest.Key, BaseURL: s.URL, TTSModel: "sonic-3", STTModel: "ink-whisper"}
		c.change(set)
		got := Declare(set).Check(t.Context())
		if len(got) != 1 || got[0].State != c.state || !strings.Contains(got[0].Text, c.holds) ||
			strings.Contains(got[0].Text, "s3cret") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	o := vendor(t, s, func(s *Settings) { s.APIKey = "" })
	_, err := o.Synthesizer(Code)
	_, err2 := o.Recognizer(Code)
	for _, err := range []error{err, err2} {
		if ai.KindOf(err) != ai.Config || !strings.Contains(err.Error(), "PARLEY_CARTESIA_API_KEY") {
			t.Errorf("got %v", err)
		}
	}
}
