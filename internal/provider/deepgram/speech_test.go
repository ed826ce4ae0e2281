package deepgram_test

import (
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/deepgram/deepgramtest"
)

var thalia = ai.Speech{Voice: "aura-2-thalia-en", Language: "en", Rate: audio.Narrow}

func synthesizer(t *testing.T, o *ai.Opened) ai.Synthesizer {
	t.Helper()
	s, err := o.Synthesizer(deepgram.Code)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// said is the sound of a text.
func said(t *testing.T, v ai.Synthesizer, as ai.Speech, text string) (pcm []int16, err error) {
	t.Helper()
	err = ai.Say(t.Context(), v, as, text, func(p []int16) error { pcm = append(pcm, p...); return nil })
	return pcm, err
}

func TestSynthesizerConforms(t *testing.T) {
	for _, stale := range []bool{false, true} {
		o, s := opened(t)
		s.Stale = stale
		v := synthesizer(t, o)
		if v != synthesizer(t, o) {
			t.Error("a cache can't know what was said before")
		}
		aitest.ConformSynthesizer(t, v, thalia)
	}
}

// Connections are reused, each for one voice, rate and speed, and for no more than 20 flushes a minute.
func TestSpeakKeepsLines(t *testing.T) {
	o, s := opened(t)
	v := synthesizer(t, o)
	ask := func(as ai.Speech, text string) {
		t.Helper()
		if pcm, err := said(t, v, as, text); err != nil || s.Voice.Find(pcm, as.Rate) != text {
			t.Errorf("%q: %d samples of %q, %v", text, len(pcm), s.Voice.Find(pcm, as.Rate), err)
		}
	}
	opened := func(want int) {
		t.Helper()
		if n := len(s.Opened()); n != want {
			t.Errorf("%d lines were opened, want %d", n, want)
		}
	}
	for range 20 {
		ask(thalia, "Yes.")
	}
	opened(1)
	ask(thalia, "No.") // the 21st
	opened(2)
	wide, slow, spanish := thalia, thalia, ai.Speech{Voice: "aura-2-diana-es", Language: "es", Rate: audio.Narrow, Speed: 1}
	wide.Rate, slow.Speed = audio.Wide, 0.8
	for range 2 {
		ask(wide, "Yes.")
		ask(slow, "Yes.")
		ask(spanish, "Si.")
	}
	opened(5)
	german := ai.Speech{Voice: "aura-2-julius-de", Language: "de", Rate: audio.Narrow, Speed: 0.7}
	ask(german, "Ja.") // this voice can't be slowed down
	many := make(chan string, 50)
	for range 50 {
		many <- "Again."
	}
	close(many)
	lasts := 0
	if err := v.Speak(t.Context(), thalia, many, func(s ai.Sound) error {
		if s.Last {
			lasts++
		}
		return nil
	}); err != nil || lasts != 50 {
		t.Errorf("of 50 texts %d were said: %v", lasts, err)
	}
	opened(8) // 19 on the second connection, 20 and 11 on two others
	if n := len(s.Said()); n != 21+6+1+50 || s.Got("Clear") != 0 {
		t.Errorf("%d texts were flushed, and %d times cleared", n, s.Got("Clear"))
	}
}

// After a cancelled reply the connection is cleared, and then says only the next text.
func TestSpeakClears(t *testing.T) {
	for _, stale := range []bool{false, true} {
		o, s := opened(t)
		s.Stale = stale
		v := synthesizer(t, o)
		long := strings.Repeat("This takes long. ", 40)
		for i := range 3 {
			err := ai.Say(t.Context(), v, thalia, long, func([]int16) error { return aitest.ErrYield })
			if err != aitest.ErrYield { //nolint:errorlint // the very error comes back
				t.Fatal(err)
			}
			deadline := time.Now().Add(20 * time.Second)
			for s.Got("Clear") <= i && time.Now().Before(deadline) {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(20 * time.Millisecond) // without the answer a connection is opened, no more
			pcm, err := said(t, v, thalia, "Good bye.")
			if err != nil || s.Voice.Find(pcm, audio.Narrow) != "Good bye." ||
				time.Duration(len(pcm))*time.Second/8000 != aitest.SpeechTime("Good bye.", 1) {
				t.Errorf("%d samples of %q, %v", len(pcm), s.Voice.Find(pcm, audio.Narrow), err)
			}
		}
		if n := len(s.Opened()); n > 3 || s.Got("Clear") != 3 {
			t.Errorf("%d lines were opened, and %d times cleared", n, s.Got("Clear"))
		}
	}
}

// A long text is said in parts that are each within the vendor's limit, and has one Last.
func TestSpeakLong(t *testing.T) {
	o, s := opened(t)
	text := strings.TrimSpace(strings.Repeat("wörter und ", 300))
	texts := make(chan string, 2)
	texts <- text
	texts <- "Ende."
	close(texts)
	var lasts []int
	if err := synthesizer(t, o).Speak(t.Context(), thalia, texts, func(s ai.Sound) error {
		if s.Last {
			lasts = append(lasts, s.Text)
		}
		return nil
	}); err != nil || len(lasts) != 2 || lasts[1] != 1 {
		t.Errorf("%v, lasts %v", err, lasts)
	}
	if all := s.Said(); len(all) != 3 || all[0]+all[1] != text {
		t.Errorf("said in %d parts", len(all))
	}
}

func TestSpeakFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		b     deepgramtest.Behaviour
		kind  ai.Kind
		heard bool
	}{
		{"no quota", deepgramtest.Behaviour{Status: 402}, ai.Config, false},
		{"too many", deepgramtest.Behaviour{Status: 429, RetryAfter: "2"}, ai.RateLimited, false},
		{"down", deepgramtest.Behaviour{Status: 503}, ai.Overloaded, false},
		{"reset at once", deepgramtest.Behaviour{Fault: deepgramtest.Reset}, ai.Interrupted, false},
		{"reset in the middle", deepgramtest.Behaviour{Fault: deepgramtest.Reset, After: 4}, ai.Interrupted, true},
		{"closed in the middle", deepgramtest.Behaviour{Fault: deepgramtest.Close, After: 4}, ai.Interrupted, true},
		{"no JSON", deepgramtest.Behaviour{Fault: deepgramtest.Garbage, After: 4}, ai.Malformed, true},
		{"an error in the middle", deepgramtest.Behaviour{Fault: deepgramtest.Trouble, After: 4}, ai.Interrupted, true},
		{"stalls", deepgramtest.Behaviour{Fault: deepgramtest.Stall, After: 4}, ai.Stalled, true},
		{"endless", deepgramtest.Behaviour{Fault: deepgramtest.Endless}, ai.Malformed, true},
		{"no sound", deepgramtest.Behaviour{Fault: deepgramtest.Soundless}, ai.Malformed, false},
		{"too many flushes", deepgramtest.Behaviour{Fault: deepgramtest.Warns}, ai.RateLimited, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o, s := opened(t)
			s.Script(deepgramtest.SpeakPath, c.b)
			pcm, err := said(t, synthesizer(t, o), thalia, "Good morning everybody, how are you?")
			if ai.KindOf(err) != c.kind || (len(pcm) > 0) != c.heard || strings.Contains(err.Error(), deepgramtest.Key) {
				t.Errorf("%v, %d samples", err, len(pcm))
			}
			if pcm, err := said(t, synthesizer(t, o), thalia, "Again."); err != nil || len(pcm) == 0 {
				t.Errorf("and then: %v", err)
			}
		})
	}
	o, _ := opened(t)
	other := thalia
	other.Voice = "alloy"
	if _, err := said(t, synthesizer(t, o), other, "Hello."); ai.KindOf(err) != ai.Config {
		t.Errorf("another vendor's voice: %v", err)
	}
}

// A connection that was kept, and has died meanwhile, is replaced, and nobody hears it.
func TestSpeakDeadLine(t *testing.T) {
	o, s := opened(t)
	v := synthesizer(t, o)
	if _, err := said(t, v, thalia, "One."); err != nil { // at least five messages
		t.Fatal(err)
	}
	// Metadata, a second of sound in pieces, and Flushed arrive; after them the socket is reset.
	s.Script(deepgramtest.SpeakPath, deepgramtest.Behaviour{Fault: deepgramtest.Reset, After: s.Answers()})
	o2, err := deepgram.Declare(&deepgram.Settings{APIKey: deepgramtest.Key, BaseURL: s.URL}).Open()
	if err != nil {
		t.Fatal(err)
	}
	defer o2.Close()
	v = synthesizer(t, o2)
	for _, text := range []string{"One.", "Two."} {
		if pcm, err := said(t, v, thalia, text); err != nil || s.Voice.Find(pcm, audio.Narrow) != text {
			t.Errorf("%s: %v", text, err)
		}
	}
	if n := len(s.Opened()); n != 3 {
		t.Errorf("%d lines were opened", n)
	}
}

func TestNotConfigured(t *testing.T) {
	o, err := deepgram.Declare(&deepgram.Settings{}).Open()
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := o.Recognizer(deepgram.Code); ai.KindOf(err) != ai.Config || !strings.Contains(err.Error(), "PARLEY_DEEPGRAM_API_KEY") {
		t.Errorf("an ear: %v", err)
	}
	if _, err := o.Synthesizer(deepgram.Code); ai.KindOf(err) != ai.Config {
		t.Errorf("a voice: %v", err)
	}
	if _, err := deepgram.Declare(&deepgram.Settings{BaseURL: "wss://api.deepgram.com"}).Open(); err == nil {
		t.Error("an address that is none is taken")
	}
}

func TestCheck(t *testing.T) {
	s := deepgramtest.NewServer(t)
	for _, c := range []struct {
		set         deepgram.Settings
		state, says string
	}{
		{deepgram.Settings{}, "note", "PARLEY_DEEPGRAM_API_KEY"},
		{deepgram.Settings{APIKey: deepgramtest.Key, BaseURL: s.URL}, "ok", "nova-3"},
		{deepgram.Settings{APIKey: deepgramtest.Key, BaseURL: s.URL, STTModel: "flux-general-en"}, "ok", "flux-general-en"},
		{deepgram.Settings{APIKey: deepgramtest.Key, BaseURL: s.URL, STTModel: "whisper"}, "note", "PARLEY_DEEPGRAM_STT_MODEL"},
		{deepgram.Settings{APIKey: "wr0ng", BaseURL: s.URL}, "FAIL", "refuses the key"},
		{deepgram.Settings{APIKey: deepgramtest.Key, BaseURL: s.URL + "/v1"}, "FAIL", "404"},
		{deepgram.Settings{APIKey: deepgramtest.Key, BaseURL: "http://127.0.0.1:1"}, "FAIL", "can't be reached"},
		{deepgram.Settings{APIKey: deepgramtest.Key, BaseURL: "wss://x"}, "FAIL", "PARLEY_DEEPGRAM_BASE_URL"},
	} {
		got := deepgram.Declare(&c.set).Check(t.Context())
		if len(got) != 1 || got[0].State != c.state || !strings.Contains(got[0].Text, c.says) ||
			strings.Contains(got[0].Text, "wr0ng") || strings.Contains(got[0].Text, deepgramtest.Key) {
			t.Errorf("%+v: %+v", c.set, got)
		}
	}
}
