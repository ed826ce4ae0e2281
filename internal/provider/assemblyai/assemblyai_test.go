package assemblyai_test

import (
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/provider/assemblyai"
	"parley/internal/provider/assemblyai/assemblyaitest"
)

func recognizer(t *testing.T, s *assemblyaitest.Server, model, key string) ai.Recognizer {
	t.Helper()
	o, err := assemblyai.Declare(&assemblyai.Settings{APIKey: key, BaseURL: s.URL + "/", STTModel: model}).Open()
	if err != nil {
		t.Fatal(err)
	}
	r, err := o.Recognizer(assemblyai.Code)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func complains(t *testing.T, s *assemblyaitest.Server) {
	t.Helper()
	if list := s.Complaints(); len(list) > 0 {
		t.Errorf("the server complained of %v", list)
	}
}

// tone is the sound that stands for a text.
func tone(t *testing.T, s *assemblyaitest.Server, text string, rate audio.Rate) (pcm []int16) {
	t.Helper()
	if err := ai.Say(t.Context(), s.Voice, ai.Speech{Rate: rate}, text, func(p []int16) error {
		pcm = append(pcm, p...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return pcm
}

func TestConforms(t *testing.T) {
	for _, model := range []string{"", "universal-3-5-pro"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			s := assemblyaitest.New(t)
			aitest.ConformRecognizer(t, recognizer(t, s, model, assemblyaitest.Key), aitest.Heard{Language: "en",
				Texts: []string{"I would like a table.", "For two people.", "At nine o'clock."},
				Sound: func(t *testing.T, text string, rate audio.Rate) []int16 { return tone(t, s, text, rate) }})
			complains(t, s)
		})
	}
}

// recognition is a recognizer that is closed at the end of the test.
func recognition(t *testing.T, s *assemblyaitest.Server, h ai.Hearing) ai.Recognition {
	t.Helper()
	h.Rate = audio.Narrow
	e, err := recognizer(t, s, "", assemblyaitest.Key).Listen(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// say lets a recognizer hear noise; the test server decides what text it stands for.
func say(e ai.Recognition, d time.Duration) {
	frame := make([]int16, audio.Narrow.FrameSize())
	for i := range frame {
		frame[i] = int16(4000 * (i%9 - 4))
	}
	for ; d > 0; d -= audio.FrameTime {
		e.Write(frame)
	}
	e.End()
}

// final waits for the next final transcript; it is nil once the recognizer has closed.
func final(t *testing.T, e ai.Recognition) *ai.Transcript {
	t.Helper()
	guard := time.After(10 * time.Second)
	for {
		select {
		case got, ok := <-e.Transcripts():
			if !ok {
				return nil
			}
			if got.Final {
				return &got
			}
		case <-guard:
			t.Fatal("no final transcript")
		}
	}
}

// Where several languages may be spoken, the language of each utterance is told.
func TestLanguages(t *testing.T) {
	t.Parallel()
	s := assemblyaitest.New(t)
	s.Script(assemblyaitest.Hearing{Text: "Hello there.", Language: "en"}, assemblyaitest.Hearing{Text: "Hola a todos.", Language: "es-ES"},
		assemblyaitest.Hearing{Text: "Hm."})
	e := recognition(t, s, ai.Hearing{Language: "en", Others: []string{"es"}})
	for _, want := range []string{"en", "es", ""} {
		say(e, time.Second)
		if got := final(t, e); got == nil || got.Language != want {
			t.Errorf("got %+v, not in %q", got, want)
		}
	}
	if q := s.Opened()[0]; q["speech_model"] != "universal-streaming-multilingual" || q["language_detection"] != "true" {
		t.Errorf("asked %v", q)
	}
}

// The error of a refused session says who has to do something about it.
func TestRefused(t *testing.T) {
	for name, o := range map[string]struct {
		key, model string
		no         assemblyaitest.Refusal
		want       ai.Kind
	}{
		"wrong key":   {key: "wr0ng", want: ai.Config},
		"wrong model": {model: "other", want: ai.Config},
		"too many":    {no: assemblyaitest.Refusal{Code: 3009}, want: ai.RateLimited},
		"limited":     {no: assemblyaitest.Refusal{Status: 429, RetryAfter: "3"}, want: ai.RateLimited},
		"broken":      {no: assemblyaitest.Refusal{Code: 3005}, want: ai.Overloaded},
		"unpaid":      {no: assemblyaitest.Refusal{Code: 4002}, want: ai.Config},
		"down":        {no: assemblyaitest.Refusal{Status: 503}, want: ai.Overloaded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := assemblyaitest.New(t)
			if o.no != (assemblyaitest.Refusal{}) {
				s.Refuse(o.no)
			}
			key := o.key
			if key == "" {
				key = assemblyaitest.Key
			}
			e, err := recognizer(t, s, o.model, key).Listen(t.Context(), ai.Hearing{Language: "en", Rate: audio.Narrow})
			if err == nil {
				e.Close()
			}
			if ai.KindOf(err) != o.want || strings.Contains(err.Error(), "wr0ng") {
				t.Errorf("%v, want %s", err, o.want)
			}
		})
	}
}

// A socket that fails in the middle closes the recognizer, which still answers for the utterances that it owes.
func TestBreaks(t *testing.T) {
	for name, o := range map[string]struct {
		h    assemblyaitest.Hearing
		want ai.Kind
	}{
		"an error":      {assemblyaitest.Hearing{Error: 3005}, ai.Interrupted},
		"expired":       {assemblyaitest.Hearing{Error: 3008}, ai.Interrupted},
		"closed":        {assemblyaitest.Hearing{Close: 1011}, ai.Interrupted},
		"reset":         {assemblyaitest.Hearing{Reset: true}, ai.Interrupted},
		"no JSON":       {assemblyaitest.Hearing{Torn: true}, ai.Malformed},
		"not paid more": {assemblyaitest.Hearing{Error: 4002}, ai.Config},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := assemblyaitest.New(t)
			s.Script(o.h)
			e := recognition(t, s, ai.Hearing{Language: "en"})
			say(e, 500*time.Millisecond)
			if got := final(t, e); got == nil || ai.KindOf(got.Err) != o.want {
				t.Errorf("%+v, want %s", got, o.want)
			}
			if got := final(t, e); got != nil {
				t.Errorf("then %+v", got)
			}
		})
	}
}

// Short utterances, answers that don't come, ends of utterances that the vendor finds by itself, and texts without
// punctuation.
func TestEnds(t *testing.T) {
	t.Parallel()
	s := assemblyaitest.New(t)
	s.Eager = 400 * time.Millisecond
	e := recognition(t, s, ai.Hearing{Language: "en", Keywords: []string{"Ciabatta", strings.Repeat("long", 20)}})
	s.Script(assemblyaitest.Hearing{Text: "Yes."}, assemblyaitest.Hearing{Never: true},
		assemblyaitest.Hearing{Text: "Two of them,"}, assemblyaitest.Hearing{Text: "please."},
		assemblyaitest.Hearing{Text: "Thank you.", Plain: true})
	say(e, 30*time.Millisecond) // shorter than a message must be
	say(e, 200*time.Millisecond)
	say(e, 900*time.Millisecond)
	say(e, 200*time.Millisecond)
	for i, want := range []string{"Yes.", "", "Two of them, please.", "thank you"} {
		if got := final(t, e); got == nil || got.Utterance != i || got.Text != want || got.Err != nil {
			t.Errorf("%+v, want %q", got, want)
		}
	}
	e.Close()
	for end := time.Now().Add(10 * time.Second); s.Got("Terminate") == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the session was not ended")
		}
	}
	if o := s.Opened()[0]; o["keyterms_prompt"] != `["Ciabatta"]` || o["speech_model"] != "universal-streaming-english" ||
		o["sample_rate"] != "8000" {
		t.Errorf("opened with %v", o)
	}
	complains(t, s)
}

// A session that is about to expire is ended in a pause.
func TestLapses(t *testing.T) {
	t.Parallel()
	s := assemblyaitest.New(t)
	s.Lasts = 5*time.Minute + 2*time.Second
	s.Hears("Still here.")
	e := recognition(t, s, ai.Hearing{Language: "de"})
	say(e, 200*time.Millisecond)
	if got := final(t, e); got == nil || got.Text != "Still here." {
		t.Errorf("%+v", got)
	}
	if got := final(t, e); got != nil {
		t.Errorf("%+v instead of an end", got)
	}
	if o := s.Opened()[0]; o["speech_model"] != "universal-streaming-multilingual" {
		t.Errorf("opened with %v", o)
	}
}

func TestDoctor(t *testing.T) {
	s := assemblyaitest.New(t)
	for name, c := range map[string]struct {
		set  assemblyai.Settings
		want string
	}{
		"all is well":    {assemblyai.Settings{APIKey: assemblyaitest.Key, BaseURL: s.URL}, "ok|universal-streaming-english"},
		"not configured": {assemblyai.Settings{}, "note|PARLEY_ASSEMBLYAI_API_KEY"},
		"a wrong key":    {assemblyai.Settings{APIKey: "wr0ng", BaseURL: s.URL}, "FAIL|PARLEY_ASSEMBLYAI_API_KEY"},
		"nobody there":   {assemblyai.Settings{APIKey: "k", BaseURL: "http://127.0.0.1:1"}, "FAIL|PARLEY_ASSEMBLYAI_BASE_URL"},
		"a path":         {assemblyai.Settings{APIKey: assemblyaitest.Key, BaseURL: s.URL + "/x"}, "FAIL|has no path"},
		"no URL":         {assemblyai.Settings{APIKey: "k", BaseURL: "nonsense"}, "FAIL|PARLEY_ASSEMBLYAI_BASE_URL"},
	} {
		list := assemblyai.Declare(&c.set).Check(t.Context())
		state, text, _ := strings.Cut(c.want, "|")
		if len(list) != 1 || list[0].State != state || !strings.Contains(list[0].Text, text) ||
			strings.Contains(list[0].Text, "wr0ng") {
			t.Errorf("%s: got %+v, want %s", name, list, c.want)
		}
	}
	if _, err := assemblyai.Declare(&assemblyai.Settings{BaseURL: "nonsense"}).Open(); err == nil {
		t.Error("a base URL that is none was accepted")
	}
}
