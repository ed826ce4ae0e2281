package deepgram_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/deepgram/deepgramtest"
)

// opened is the vendor, with a test server in its place.
func opened(t *testing.T, change ...func(*deepgram.Settings)) (*ai.Opened, *deepgramtest.Server) {
	t.Helper()
	s := deepgramtest.NewServer(t)
	set := &deepgram.Settings{APIKey: deepgramtest.Key, BaseURL: s.URL}
	for _, f := range change {
		f(set)
	}
	o, err := deepgram.Declare(set).Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o, s
}

func hears(model string) func(*deepgram.Settings) {
	return func(s *deepgram.Settings) { s.STTModel = model }
}

func recognizer(t *testing.T, o *ai.Opened) ai.Recognizer {
	t.Helper()
	r, err := o.Recognizer(deepgram.Code)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// listen opens a recognizer that is closed at the end of the test.
func listen(t *testing.T, o *ai.Opened, keywords ...string) ai.Recognition {
	t.Helper()
	e, err := recognizer(t, o).Listen(t.Context(), ai.Hearing{Language: "en", Rate: audio.Narrow, Keywords: keywords})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// sound is the sound of a text.
func sound(t *testing.T, s *deepgramtest.Server, text string, rate audio.Rate) (pcm []int16) {
	t.Helper()
	if err := ai.Say(t.Context(), s.Voice, ai.Speech{Rate: rate}, text, func(p []int16) error {
		pcm = append(pcm, p...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return pcm
}

// say lets a recognizer hear a text, as frames.
func say(t *testing.T, e ai.Recognition, pcm []int16) {
	t.Helper()
	for n := audio.Narrow.FrameSize(); len(pcm) > 0; pcm = pcm[n:] {
		n = min(n, len(pcm))
		e.Write(pcm[:n])
	}
}

// final waits for the next final transcript; it is nil once the recognizer has closed.
func final(t *testing.T, e ai.Recognition) (got *ai.Transcript) {
	t.Helper()
	guard := time.After(40 * time.Second)
	for {
		select {
		case tr, ok := <-e.Transcripts():
			if !ok {
				return nil
			}
			if tr.Final {
				return &tr
			}
		case <-guard:
			t.Fatal("no final transcript within 40 s")
		}
	}
}

func TestRecognizerConforms(t *testing.T) {
	for name, c := range map[string]struct {
		model  string
		change func(*deepgramtest.Server)
	}{
		"nova":                     {"", func(*deepgramtest.Server) {}},
		"nova in many pieces":      {"", func(s *deepgramtest.Server) { s.Piece = 400 * time.Millisecond }},
		"flux":                     {"flux-general-en", func(*deepgramtest.Server) {}},
		"flux that tells no times": {"flux-general-multi", func(s *deepgramtest.Server) { s.NoTimes = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, s := opened(t, hears(c.model))
			c.change(s)
			aitest.ConformRecognizer(t, recognizer(t, o), aitest.Heard{
				Language: "en", Texts: []string{"one and a half", "two", "three of them and then some more of the same"},
				Sound: func(t *testing.T, text string, rate audio.Rate) []int16 { return sound(t, s, text, rate) },
			})
		})
	}
}

// A request has only the options that the model takes in the language.
func TestListenAsks(t *testing.T) {
	for _, c := range []struct {
		set, language, path, model string
		with, without              string
	}{
		{"", "en", deepgramtest.ListenPath, "nova-3", "keyterm=Zo%C3%AB&keyterm=Blue+Door&language=en", "keywords"},
		{"", "th", deepgramtest.ListenPath, "nova-2", "keywords=Zo%C3%AB&keywords=Blue+Door&language=th", "keyterm"},
		{"nova-2", "de", deepgramtest.ListenPath, "nova-2", "language=de", "keyterm"},
		{"flux-general-en", "en", deepgramtest.FluxPath, "flux-general-en", "eager_eot_threshold=0.4", "language"},
		{"flux-general-en", "de", deepgramtest.ListenPath, "nova-3", "language=de", "eot"},
		{"flux-general-multi", "de", deepgramtest.FluxPath, "flux-general-multi", "language_hint=de", "channels"},
		{"flux-general-multi", "sv", deepgramtest.ListenPath, "nova-3", "language=sv", "eot"},
		{"flux-general-multi", "th", deepgramtest.ListenPath, "nova-2", "language=th", "eot"},
	} {
		o, s := opened(t, hears(c.set))
		e, err := recognizer(t, o).Listen(t.Context(), ai.Hearing{Language: c.language, Rate: audio.Wide,
			Keywords: []string{"Zoë", "Blue Door"}})
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		if e.Continuous() != (c.path == deepgramtest.FluxPath) {
			t.Errorf("%v: continuous %v", c, e.Continuous())
		}
		e.Close()
		got := s.Opened()[0]
		q := got.Query.Encode()
		if got.Path != c.path || got.Query.Get("model") != c.model || got.Query.Get("sample_rate") != "16000" ||
			!strings.Contains(q, c.with) || strings.Contains(q, c.without) {
			t.Errorf("%v: asked %s?%s", c, got.Path, q)
		}
	}
}

// Where several languages may be spoken, a model that tells them apart is asked for all of them.
func TestListenAsksForLanguages(t *testing.T) {
	for _, c := range []struct {
		set, language string
		others        []string
		model, with   string
		without       string
	}{
		{"", "en", []string{"es", "sv"}, "nova-3", "language=multi&language_hint=en&language_hint=es&language_hint=sv", "=ur"},
		{"flux-general-en", "en", []string{"es"}, "flux-general-multi", "language_hint=en&language_hint=es", "channels"},
		{"flux-general-multi", "en", []string{"sv"}, "nova-3", "language=multi", "eot"},
		{"", "en", []string{"ur"}, "nova-3", "language=en", "hint"},
		{"nova-2", "en", []string{"es"}, "nova-2", "language=en", "hint"},
	} {
		o, s := opened(t, hears(c.set))
		e, err := recognizer(t, o).Listen(t.Context(), ai.Hearing{Language: c.language, Others: c.others, Rate: audio.Wide})
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		e.Close()
		got := s.Opened()[0].Query
		if q := got.Encode(); got.Get("model") != c.model || !strings.Contains(q, c.with) || strings.Contains(q, c.without) {
			t.Errorf("%v: asked %s", c, q)
		}
	}
}

// Only models that tell languages apart are offered for it.
func TestTellsLanguages(t *testing.T) {
	for model, want := range map[string]bool{"": true, "nova-3": true, "nova-3-medical": true, "flux-general-en": true, "nova-2": false,
		"whisper": false} {
		set := new(deepgram.Settings)
		listens := deepgram.Declare(set).Listeners[0] // as the program does, which reads the settings later
		set.STTModel = model
		if got := listens.Mixed() != ""; got != want {
			t.Errorf("%q: %v", model, got)
		}
	}
}

// The language of most words is that of the utterance.
func TestHearsLanguages(t *testing.T) {
	for _, model := range []string{"nova-3", "flux-general-multi"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			o, s := opened(t, hears(model))
			e, err := recognizer(t, o).Listen(t.Context(), ai.Hearing{Language: "en", Others: []string{"es"}, Rate: audio.Narrow})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			for _, c := range []struct{ sound, text, language string }{
				{"when/en do/en you/en close/en", "when do you close", "en"},
				{"hola/es a/es qué/es hora/es okay/en", "hola a qué hora okay", "es"},
				{"right/en", "right", "en"},
			} {
				say(t, e, append(sound(t, s, c.sound, audio.Narrow), make([]int16, 8000)...))
				e.End()
				if got := final(t, e); got == nil || got.Text != c.text || got.Language != c.language {
					t.Errorf("%s: got %+v", c.sound, got)
				}
			}
		})
	}
}

// If a model takes no keywords in a language, the request is sent without them, now and from then on.
func TestListenLearns(t *testing.T) {
	o, s := opened(t)
	s.Refuses = []string{"keyterm"}
	for i, asked := range []int{2, 3} {
		listen(t, o, "Zoë")
		if n := len(s.Opened()); n != asked {
			t.Errorf("for ear %d %d sockets were asked for", i, n)
		}
	}
}

// The error of a failed handshake says what can be done, and never contains the key.
func TestListenRefused(t *testing.T) {
	for status, kind := range map[int]ai.Kind{400: ai.Config, 401: ai.Config, 402: ai.Config, 403: ai.Config,
		429: ai.RateLimited, 500: ai.Overloaded, 503: ai.Overloaded} {
		for _, model := range []string{"nova-3", "flux-general-en"} {
			o, s := opened(t, hears(model))
			s.Script(deepgramtest.ListenPath, deepgramtest.Behaviour{Status: status, RetryAfter: "3"})
			s.Script(deepgramtest.FluxPath, deepgramtest.Behaviour{Status: status, RetryAfter: "3"})
			_, err := recognizer(t, o).Listen(t.Context(), ai.Hearing{Language: "en", Rate: audio.Narrow})
			e, ok := errors.AsType[*ai.Error](err)
			if !ok || e.Kind != kind || e.RetryAfter != 3*time.Second || strings.Contains(err.Error(), deepgramtest.Key) {
				t.Errorf("%s, %d: %v", model, status, err)
			}
		}
	}
	o, _ := opened(t, func(s *deepgram.Settings) { s.APIKey = "wr0ng" })
	_, err := recognizer(t, o).Listen(t.Context(), ai.Hearing{Language: "en", Rate: audio.Narrow})
	if ai.KindOf(err) != ai.Config || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("a wrong key: %v", err)
	}
}

// A recognizer that loses its socket gives the reason for the utterance that is waited for, and closes.
func TestRecognitionLost(t *testing.T) {
	for _, c := range []struct {
		fault deepgramtest.Fault
		kind  ai.Kind
	}{
		{deepgramtest.Reset, ai.Interrupted}, {deepgramtest.Close, ""}, {deepgramtest.Policy, ""},
		{deepgramtest.Garbage, ai.Malformed}, {deepgramtest.Trouble, ai.Interrupted},
	} {
		for _, model := range []string{"nova-3", "flux-general-en"} {
			t.Run(string(c.fault)+" "+model, func(t *testing.T) {
				t.Parallel()
				o, s := opened(t, hears(model))
				ended := make(chan struct{}) // if the socket were lost earlier, no utterance would be waiting
				b := deepgramtest.Behaviour{Fault: c.fault, After: 1, Hold: ended}
				s.Script(deepgramtest.ListenPath, b)
				s.Script(deepgramtest.FluxPath, b)
				e := listen(t, o)
				say(t, e, sound(t, s, "something that takes long enough to be heard in parts", audio.Narrow))
				e.End()
				close(ended)
				got := final(t, e)
				if got == nil || got.Text != "" || ai.KindOf(got.Err) == "" || c.kind != "" && ai.KindOf(got.Err) != c.kind {
					t.Errorf("got %+v", got)
				}
				if got := final(t, e); got != nil {
					t.Errorf("after the end %+v", got)
				}
			})
		}
	}
}

// If a vendor does not answer a Finalize, the wait has an end, and the text that is known by then is used.
func TestNovaMute(t *testing.T) {
	t.Parallel()
	o, s := opened(t)
	s.Piece = 500 * time.Millisecond
	s.Script(deepgramtest.ListenPath, deepgramtest.Behaviour{Mute: true})
	e := listen(t, o)
	pcm := sound(t, s, "half past eight", audio.Narrow)
	say(t, e, append(pcm, make([]int16, 8000)...)) // all of it becomes final before the end
	began := time.Now()
	e.End()
	if got := final(t, e); got == nil || got.Text != "half past eight" || got.Err != nil {
		t.Errorf("got %+v", got)
	}
	if took := time.Since(began); took >= 4*time.Second {
		t.Errorf("it took %v", took)
	}
}

// While nobody speaks the socket is kept alive; a vendor that gets nothing from us would close it.
func TestNovaKeepsAlive(t *testing.T) {
	t.Parallel()
	o, s := opened(t)
	s.Patience = 6 * time.Second
	e := listen(t, o)
	deadline := time.Now().Add(30 * time.Second)
	for s.Got("KeepAlive") < 2 && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	say(t, e, sound(t, s, "are you there", audio.Narrow))
	e.End()
	if got := final(t, e); got == nil || got.Text != "are you there" || len(s.Opened()) != 1 || s.Got("KeepAlive") < 2 {
		t.Errorf("got %+v, after %d signs of life on %d sockets", got, s.Got("KeepAlive"), len(s.Opened()))
	}
}

// The vendor is told when nobody is listening any more.
func TestRecognitionTakesLeave(t *testing.T) {
	for _, model := range []string{"nova-3", "flux-general-en"} {
		o, s := opened(t, hears(model))
		ctx, cancel := context.WithCancel(t.Context())
		e, err := recognizer(t, o).Listen(ctx, ai.Hearing{Language: "en", Rate: audio.Narrow})
		if err != nil {
			t.Fatal(err)
		}
		e.Write(make([]int16, 1600))
		cancel()
		for range e.Transcripts() { // until the channel closes
		}
		e.Close()
		deadline := time.Now().Add(20 * time.Second)
		for s.Got("CloseStream") == 0 && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		if s.Got("CloseStream") != 1 {
			t.Errorf("%s: left without a word", model)
		}
	}
}

// Flux reports that a turn may have ended, and takes it back when the caller goes on: it is one turn, and one
// utterance.
func TestFluxEager(t *testing.T) {
	o, s := opened(t, hears("flux-general-en"))
	e := listen(t, o)
	silence := func(ms int) []int16 { return make([]int16, 8*ms) }
	say(t, e, silence(200))
	say(t, e, sound(t, s, "my number is", audio.Narrow))
	say(t, e, silence(360)) // longer than an eager end of turn takes, shorter than a real one
	say(t, e, sound(t, s, "five five one", audio.Narrow))
	say(t, e, silence(800))
	var turns []string
	guard := time.After(20 * time.Second)
	for done := false; !done; {
		select {
		case got := <-e.Transcripts():
			if got.Turn != "" {
				turns = append(turns, string(got.Turn)+" "+got.Text)
			}
			if done = got.Turn == ai.TurnEnded; done && (got.Utterance != 0 || got.Final) {
				t.Errorf("the turn ended as %+v", got)
			}
		case <-guard:
			t.Fatalf("the turn does not end: %q", turns)
		}
	}
	want := "started my|eager my number is|resumed my number is|eager my number is five five one|ended my number is five five one"
	if got := strings.Join(turns, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e.End()
	if got := final(t, e); got == nil || got.Text != "my number is five five one" || got.Utterance != 0 {
		t.Errorf("got %+v", got)
	}
}

// Write never waits and never allocates.
func TestRecognitionWritesForFree(t *testing.T) {
	for _, model := range []string{"nova-3", "flux-general-en"} {
		o, _ := opened(t, hears(model))
		e := listen(t, o)
		frame := make([]int16, 160)
		for i := range frame {
			frame[i] = int16(5000 * math.Sin(float64(i)))
		}
		e.Close() // its own goroutine allocates: without it only Write is measured
		if n := testing.AllocsPerRun(2000, func() { e.Write(frame) }); n != 0 {
			t.Errorf("%s: %v allocations a frame", model, n)
		}
	}
}
