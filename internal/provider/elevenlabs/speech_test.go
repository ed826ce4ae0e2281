package elevenlabs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/provider/elevenlabs/elevenlabstest"
)

var as = ai.Speech{Voice: elevenlabstest.Voice, Language: "en", Rate: audio.Narrow, Stability: 0.7, Similarity: 0.5}

// vendor is ElevenLabs at a server's address, with changed settings.
func vendor(t *testing.T, s *elevenlabstest.Server, change ...func(*Settings)) *ai.Opened {
	t.Helper()
	set := &Settings{APIKey: elevenlabstest.Key, BaseURL: s.URL, TTSModel: "eleven_flash_v2_5",
		STTModel: "scribe_v2_realtime"}
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

func voiceOf(t *testing.T, s *elevenlabstest.Server) ai.Synthesizer {
	t.Helper()
	v, err := vendor(t, s).Synthesizer(Code)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The voice keeps the contract, with every spelling that ElevenLabs' documents and servers use.
func TestVoiceConforms(t *testing.T) {
	for name, m := range map[string]elevenlabstest.Manner{
		"as documented": {}, "as in the examples": {Snake: true}, "times of the context": {Absolute: true},
		"across texts": {Across: true}, "within samples": {Odd: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := elevenlabstest.New(t)
			s.Manner = m
			aitest.ConformSynthesizer(t, voiceOf(t, s), as)
			waitFor(t, "all contexts to be over", func() bool { now, _, _ := s.Contexts(); return now == 0 })
			if _, most, _ := s.Contexts(); most > contexts {
				t.Errorf("a socket had %d contexts", most)
			}
		})
	}
}

func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}

// recital is the sound that a voice made of texts.
type recital struct {
	pcm   [][]int16
	words [][]ai.Word
}

func recite(ctx context.Context, v ai.Synthesizer, as ai.Speech, texts ...string) (out recital, err error) {
	feed := make(chan string, len(texts))
	for _, text := range texts {
		feed <- text
	}
	close(feed)
	out = recital{make([][]int16, len(texts)), make([][]ai.Word, len(texts))}
	err = v.Speak(ctx, as, feed, func(s ai.Sound) error {
		out.pcm[s.Text] = append(out.pcm[s.Text], s.PCM...)
		out.words[s.Text] = append(out.words[s.Text], s.Words...)
		return nil
	})
	return out, err
}

// The alignment gives the end of each text's sound, and the times of each word.
func TestAlignment(t *testing.T) {
	texts := []string{"Good morning.", "...", "We have bread, and rolls!", "Zoë paid 4 € — “yes”?", "Bye"}
	for name, m := range map[string]elevenlabstest.Manner{
		"relative": {}, "absolute": {Absolute: true}, "across": {Across: true}, "odd": {Odd: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := elevenlabstest.New(t)
			s.Manner = m
			got, err := recite(t.Context(), voiceOf(t, s), as, texts...)
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range texts {
				long := time.Duration(len(got.pcm[i])) * time.Second / time.Duration(as.Rate)
				if want := aitest.SpeechTime(text, 1); long < want-60*time.Millisecond || long > want+60*time.Millisecond {
					t.Errorf("%q takes %v, want %v", text, long, want)
				}
				if n := len(got.pcm[i]); n > 800 && s.Speaker.Find(got.pcm[i][n/2-200:n/2+200], as.Rate) != text {
					t.Errorf("%q sounds like another text", text)
				}
				var words []string
				from := 0
				for k, w := range got.words[i] {
					words = append(words, strings.TrimSpace(text[from:w.Until]))
					from = w.Until
					// Each character of a text and its space takes the same time.
					chars := len([]rune(text[:w.Until]))
					want := aitest.SpeechTime(text, 1) * time.Duration(chars) / time.Duration(len([]rune(text))+1)
					if k < len(got.words[i])-1 && (w.At < want-70*time.Millisecond || w.At > want+70*time.Millisecond) {
						t.Errorf("%q: %q has been said at %v, want %v", text, text[:w.Until], w.At, want)
					}
				}
				if text != "..." && strings.Join(words, " ") != text {
					t.Errorf("%q has the words %q", text, words)
				}
			}
		})
	}
}

// Many replies share sockets, five on each. A cancelled reply keeps its place until ElevenLabs gives it up, and a
// socket on which that goes wrong gets no others.
func TestContexts(t *testing.T) {
	s := elevenlabstest.New(t)
	v := voiceOf(t, s)
	gate := make(chan struct{})
	s.Speaker.Usually(aitest.Saying{Gate: gate})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			one, stop := ctx, func() {}
			if i%2 == 0 {
				one, stop = context.WithCancel(ctx)
			}
			defer stop()
			_, err := recite(one, v, as, fmt.Sprintf("Reply number %d is a long one.", i))
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, "twelve replies", func() bool { return len(s.Said()) == 12 })
	cancel()
	wg.Wait()
	close(gate)
	waitFor(t, "all contexts to be over", func() bool { now, _, _ := s.Contexts(); return now == 0 })
	speech, _ := s.Opened()
	if _, most, _ := s.Contexts(); most > contexts || speech < 3 || speech > 12 {
		t.Errorf("%d contexts on a socket, %d sockets", most, speech)
	}
	for range 30 { // interruptions, as fast as they can come
		one, stop := context.WithCancel(t.Context())
		feed := make(chan string, 1)
		feed <- "You will not hear all of this."
		err := v.Speak(one, as, feed, func(ai.Sound) error { stop(); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if got, err := recite(t.Context(), v, as, "But this."); err != nil || len(got.pcm[0]) == 0 {
		t.Errorf("after interruptions: %v", err)
	}
	if _, most, cancelled := s.Contexts(); most > contexts || cancelled > 42 {
		t.Errorf("%d contexts on a socket", most)
	}
}

// Contexts that never end use up a socket: then another one is opened.
func TestZombies(t *testing.T) {
	s := elevenlabstest.New(t)
	s.Manner.Zombie = true
	v := voiceOf(t, s)
	for range 7 {
		one, stop := context.WithCancel(t.Context())
		feed := make(chan string, 1)
		feed <- "This is interrupted."
		if err := v.Speak(one, as, feed, func(ai.Sound) error { stop(); return nil }); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	speech, _ := s.Opened()
	if _, most, _ := s.Contexts(); most != contexts || speech != 2 {
		t.Errorf("%d contexts on a socket, %d sockets", most, speech)
	}
}

// A model that can normalize texts is told to, and given numbers as they are written; a fast one is given words.
func TestNormalizes(t *testing.T) {
	for model, reads := range map[string]bool{"eleven_flash_v2_5": false, "eleven_multilingual_v2": true} {
		s := elevenlabstest.New(t)
		v, err := vendor(t, s, func(set *Settings) { set.TTSModel = model }).Synthesizer(Code)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := recite(t.Context(), v, as, "Hello again."); err != nil {
			t.Fatal(err)
		}
		if q := s.Queries()[0]; strings.Contains(q, "apply_text_normalization=on") != reads || ai.Reads(v) != reads {
			t.Errorf("%s reads: %v, %s", model, ai.Reads(v), q)
		}
	}
}

// A socket is kept for the next reply. If it has broken meanwhile, it is replaced before anything is heard, whenever
// that shows.
func TestWarm(t *testing.T) {
	s := elevenlabstest.New(t)
	v := voiceOf(t, s)
	say := func() {
		t.Helper()
		if got, err := recite(t.Context(), v, as, "Hello again."); err != nil || len(got.pcm[0]) == 0 {
			t.Errorf("%d samples, %v", len(got.pcm[0]), err)
		}
	}
	for range 3 {
		say()
	}
	if n, _ := s.Opened(); n != 1 {
		t.Errorf("%d sockets for three replies", n)
	}
	q := s.Queries()[0]
	for _, want := range []string{"auto_mode=true", "inactivity_timeout=180", "language_code=en",
		"model_id=eleven_flash_v2_5", "output_format=pcm_8000", "sync_alignment=true"} {
		if !strings.Contains(q, want) {
			t.Errorf("%s is not in %s", want, q)
		}
	}
	for i := range 5 {
		s.Speaker.On("Hello again.", aitest.Saying{Hang: true}) // nothing is heard before the socket breaks
		done := make(chan struct{})
		go func() { defer close(done); say() }()
		waitFor(t, "the text", func() bool { return len(s.Said()) == 3+2*i+1 })
		s.Speaker.On("Hello again.", aitest.Saying{})
		if i%2 == 0 {
			s.Kick(0, "")
		} else {
			s.Kick(1008, "Have not received a new text input within the timeout of 180 seconds.")
		}
		<-done
	}
	wide := as
	wide.Rate = audio.Wide
	n, _ := s.Opened()
	if _, err := recite(t.Context(), v, wide, "Wider."); err != nil {
		t.Error(err)
	}
	if m, _ := s.Opened(); m != n+1 {
		t.Error("another format was spoken on the same socket")
	}
}

// An error says what can be done about it, and doesn't contain the key.
func TestVoiceFails(t *testing.T) {
	for name, c := range map[string]struct {
		refuse elevenlabstest.Refusal
		change func(*Settings)
		kick   int // the code with which the socket is closed, before there is sound, or
		late   bool
		reason string
		kind   ai.Kind
		after  time.Duration
	}{
		"a wrong key":  {change: func(s *Settings) { s.APIKey = "s3cret" }, kind: ai.Config},
		"no quota":     {refuse: elevenlabstest.Refusal{Status: 401, Code: "quota_exceeded"}, kind: ai.Config},
		"no such plan": {refuse: elevenlabstest.Refusal{Status: 403, Code: "only_for_creator+"}, kind: ai.Config},
		"too many": {refuse: elevenlabstest.Refusal{Status: 429, Code: "too_many_concurrent_requests", RetryAfter: 7}, kind: ai.RateLimited,
			after: 7 * time.Second},
		"it is down":          {refuse: elevenlabstest.Refusal{Status: 503, Code: "system_busy"}, kind: ai.Overloaded},
		"no such model":       {change: func(s *Settings) { s.TTSModel = "eleven_v9" }, kind: ai.Config},
		"nobody there":        {change: func(s *Settings) { s.BaseURL = "http://127.0.0.1:1" }, kind: ai.Unreachable},
		"policy at once":      {kick: 1008, reason: "no", kind: ai.Config},
		"quota in mid-stream": {kick: 1008, late: true, reason: "quota_exceeded", kind: ai.Config},
		"error at once":       {kick: 1011, kind: ai.Overloaded},
		"error in mid-stream": {kick: 1011, late: true, kind: ai.Interrupted},
		"breaks":              {kick: 1, late: true, kind: ai.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := elevenlabstest.New(t)
			if c.refuse.Status != 0 {
				s.Refuse(c.refuse)
			}
			change := c.change
			if change == nil {
				change = func(*Settings) {}
			}
			v, err := vendor(t, s, change).Synthesizer(Code)
			if err != nil {
				t.Fatal(err)
			}
			text := "This is a sentence that is never said to its end."
			how := aitest.Saying{Hang: true}
			if c.late {
				how.After = 500 * time.Millisecond
			}
			s.Speaker.On(text, how)
			if c.kick != 0 && !c.late {
				go func() {
					waitFor(t, "the text", func() bool { return s.Speaker.Live() == 1 })
					kick(s, c.kick, c.reason)
				}()
			}
			feed := make(chan string, 1)
			feed <- text
			heard := false
			err = v.Speak(t.Context(), as, feed, func(ai.Sound) error {
				if !heard && c.late {
					go kick(s, c.kick, c.reason)
				}
				heard = true
				return nil
			})
			e, ok := errors.AsType[*ai.Error](err)
			if !ok || e.Kind != c.kind || e.RetryAfter != c.after || strings.Contains(err.Error(), "s3cret") ||
				strings.Contains(err.Error(), elevenlabstest.Key) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A voice that falls silent has stalled; other replies on its socket go on.
func TestStall(t *testing.T) {
	s := elevenlabstest.New(t)
	c, err := open(&Settings{APIKey: elevenlabstest.Key, BaseURL: s.URL, TTSModel: "eleven_flash_v2_5"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	c.voice.Patience(time.Second)
	s.Speaker.On("Hangs.", aitest.Saying{Hang: true})
	s.Speaker.On("Goes on for a while.", aitest.Saying{Pace: 50 * time.Millisecond})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := recite(t.Context(), c.voice, as, "Goes on for a while."); err != nil {
			t.Error(err)
		}
	})
	waitFor(t, "the other one", func() bool { return len(s.Said()) == 1 })
	if _, err := recite(t.Context(), c.voice, as, "Hangs."); ai.KindOf(err) != ai.Stalled {
		t.Errorf("got %v", err)
	}
	wg.Wait()
	// A reply that waits for more text has not stalled.
	feed := make(chan string)
	go func() {
		defer close(feed)
		feed <- "One."
		time.Sleep(2 * time.Second)
		feed <- "Two."
	}()
	var lasts []int
	err = c.voice.Speak(t.Context(), as, feed, func(p ai.Sound) error {
		if p.Last {
			lasts = append(lasts, p.Text)
		}
		return nil
	})
	if err != nil || !slices.Equal(lasts, []int{0, 1}) {
		t.Errorf("%v, %v", lasts, err)
	}
}

// kick closes a server's sockets; with code 1 they break.
func kick(s *elevenlabstest.Server, code int, reason string) {
	if code == 1 {
		code = 0
	}
	s.Kick(websocket.StatusCode(code), reason)
}

// Without an alignment, which ElevenLabs need not send, everything is still said, and each text has its end.
func TestUnaligned(t *testing.T) {
	s := elevenlabstest.New(t)
	s.Manner.Unaligned = true
	v := voiceOf(t, s)
	feed := make(chan string, 1)
	feed <- "One two three."
	var samples []int
	err := v.Speak(t.Context(), as, feed, func(p ai.Sound) error {
		for len(samples) <= p.Text {
			samples = append(samples, 0)
		}
		samples[p.Text] += len(p.PCM)
		if p.Last && p.Text == 0 { // the end is reported, though no other text follows
			feed <- "Four."
			close(feed)
		}
		return nil
	})
	one, two := len(sound(t, s, "One two three.", as.Rate)), len(sound(t, s, "Four.", as.Rate))
	if err != nil || !slices.Equal(samples, []int{one, two}) {
		t.Errorf("%d samples, %v; want %d and %d", samples, err, one, two)
	}
	got, err := recite(t.Context(), v, as, "One two three.", "Four.")
	if n := len(got.pcm[0]) + len(got.pcm[1]); err != nil || n != one+two {
		t.Errorf("%d samples of %d, %v", n, one+two, err)
	}
}

// A text that stops in the middle by its alignment is waited for: its rest is not thrown away.
func TestGap(t *testing.T) {
	t.Parallel()
	s := elevenlabstest.New(t)
	s.Speaker.On("Hi Bo.", aitest.Saying{Pace: 1200 * time.Millisecond})
	feed := make(chan string, 1)
	feed <- "Hi Bo."
	samples := 0
	err := voiceOf(t, s).Speak(t.Context(), as, feed, func(p ai.Sound) error {
		if samples += len(p.PCM); p.Last {
			close(feed)
		}
		return nil
	})
	if want := len(sound(t, s, "Hi Bo.", as.Rate)); err != nil || samples != want {
		t.Errorf("%d samples of %d, %v", samples, want, err)
	}
}
