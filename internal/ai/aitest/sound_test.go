package aitest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

// Recognition by tones: a Recognizer understands what a Synthesizer says.
func tones() (*Synthesizer, *Recognizer, Heard) {
	voice := &Synthesizer{}
	return voice, &Recognizer{Hear: func(pcm []int16, h ai.Hearing) string { return voice.Find(pcm, h.Rate) }}, Heard{
		Language: "en", Texts: []string{"one and a half", "two", "three of them"},
		Sound: func(t *testing.T, text string, rate audio.Rate) []int16 {
			return heard(t, voice, ai.Speech{Rate: rate}, text)
		},
	}
}

func TestSynthesizerConforms(t *testing.T) {
	t.Run("plainly", func(t *testing.T) { ConformSynthesizer(t, &Synthesizer{}, ai.Speech{}) })
	t.Run("with times", func(t *testing.T) { ConformSynthesizer(t, &Synthesizer{Times: true}, ai.Speech{}) })
	t.Run("streamed", func(t *testing.T) { ConformSynthesizer(t, ai.Streamed(one{&Synthesizer{}}), ai.Speech{}) })
}

// one is a vendor that takes one text at a time.
type one struct{ *Synthesizer }

func (o one) Say(ctx context.Context, as ai.Speech, text string, yield func(pcm []int16) error) error {
	return o.say(ctx, as, text, yield)
}

func TestRecognizerConforms(t *testing.T) {
	_, r, h := tones()
	ConformRecognizer(t, r, h)
	if n := r.Live(); n != 0 {
		t.Errorf("%d ears are left open", n)
	}
	r.Turns = true
	ConformRecognizer(t, r, h)
}

// Each text has its own tone, which is found in 40 ms of sound, and never in noise.
func TestFind(t *testing.T) {
	s := &Synthesizer{}
	sound := map[string][]int16{}
	for i := range pitches {
		text := strings.Repeat("x", i+5)
		sound[text] = heard(t, s, ai.Speech{Rate: audio.Narrow}, text)
		if got, want := len(sound[text]), int(SpeechTime(text, 1)*8000/time.Second); got != want {
			t.Fatalf("%d samples, want %d", got, want)
		}
	}
	for text, pcm := range sound {
		if got := s.Find(pcm[800:800+320], audio.Narrow); got != text {
			t.Errorf("40 ms of the %d are taken for those of %d", len(text), len(got))
		}
	}
	noise := make([]int16, 800)
	for i := range noise {
		noise[i] = int16(i*i*7919%4001 - 2000)
	}
	for _, pcm := range [][]int16{nil, make([]int16, 320), noise} {
		if got := s.Find(pcm, audio.Narrow); got != "" {
			t.Errorf("%q in %d samples of noise", got, len(pcm))
		}
	}
}

func TestSaying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Synthesizer{}
		boom := errors.New("boom")
		text := strings.Repeat("a", 20) // a second
		for _, c := range []struct {
			how    Saying
			pieces int
			took   time.Duration
			err    error
		}{
			{Saying{}, 10, 0, nil},
			{Saying{Delay: time.Second, Pace: PieceTime}, 10, time.Second + 9*PieceTime, nil},
			{Saying{Err: boom}, 0, 0, boom},
			{Saying{Err: boom, Delay: time.Second}, 0, time.Second, boom},
			{Saying{Err: boom, After: 3 * PieceTime, Delay: time.Second}, 3, time.Second, boom},
			{Saying{Hang: true, After: PieceTime}, 1, time.Minute, context.DeadlineExceeded},
			{Saying{Gate: make(chan struct{})}, 1, time.Minute, context.DeadlineExceeded},
		} {
			s.On(text, c.how)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			began, n := time.Now(), 0
			err := ai.Say(ctx, s, ai.Speech{Rate: audio.Wide}, text, func([]int16) error { n++; return nil })
			if err != c.err || n != c.pieces || time.Since(began) != c.took || s.Live() != 0 { //nolint:errorlint // as it is
				t.Errorf("%+v: %v, %d pieces, %v", c.how, err, n, time.Since(began))
			}
			cancel()
		}
		s.Usually(Saying{Err: boom})
		//nolint:errorlint // likewise
		if err := ai.Say(t.Context(), s, ai.Speech{Rate: audio.Wide}, "other", nil); err != boom || len(s.Said()) != 8 {
			t.Errorf("%v, %d said", err, len(s.Said()))
		}
	})
}

func TestUnderstanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := &ai.Error{Kind: ai.Interrupted, Err: errors.New("lost")}
		r := &Recognizer{}
		r.Say("one two three")
		r.Script(Understanding{Text: "later", Partials: []string{"la"}, Delay: time.Second},
			Understanding{Text: "never", Err: lost}, Understanding{Hang: true})
		e, err := r.Listen(t.Context(), ai.Hearing{Language: "en", Rate: audio.Narrow, Keywords: []string{"k"}})
		if err != nil {
			t.Fatal(err)
		}
		loud := make([]int16, 160)
		for i := range loud {
			loud[i] = int16(1000 - 2000*(i%2))
		}
		began := time.Now()
		say := func(frames int) {
			for range frames {
				e.Write(loud)
				e.Write(make([]int16, 160))
			}
			e.End()
		}
		var got []ai.Transcript
		say(25) // half a second of sound: two words' partials
		say(25)
		e.Write(make([]int16, 800))
		e.End() // silence, which uses nothing of the script
		say(1)
		say(1) // hangs
		for range 7 {
			got = append(got, <-e.Transcripts())
		}
		want := []ai.Transcript{{Utterance: 0, Text: "one"}, {Utterance: 0, Text: "one two"},
			{Utterance: 0, Text: "one two three", Final: true},
			{Utterance: 1, Text: "la"}, {Utterance: 1, Text: "later", Final: true}, {Utterance: 2, Final: true},
			{Utterance: 3, Final: true, Err: lost}}
		if !slices.Equal(got, want) || time.Since(began) != time.Second {
			t.Errorf("after %v: got %+v", time.Since(began), got)
		}
		synctest.Wait()
		e.Close()
		if _, open := <-e.Transcripts(); open || r.Left() != 0 || r.Live() != 0 || len(r.Heard()) != 1 {
			t.Errorf("open %v, %d left, %d live", open, r.Left(), r.Live())
		}
		r.Err = lost
		if _, err := r.Listen(t.Context(), ai.Hearing{}); err != lost { //nolint:errorlint // as it is
			t.Errorf("got %v", err)
		}
	})
}

// The server refuses what OpenAI refuses, in the same format.
func TestServerRefusesSound(t *testing.T) {
	s := NewServer(t)
	s.Refuses = []string{"instructions"}
	const voice = `"model":"test-tts","voice":"alloy","response_format":"pcm"`
	for _, c := range []struct {
		path, body string
		status     int
		holds      string
	}{
		{"/audio/speech", `{`, 400, "parse"},
		{"/audio/speech", `{"model":"tts-9","voice":"alloy","input":"x"}`, 404, "model_not_found"},
		{"/audio/speech", `{` + voice + `,"input":" "}`, 400, "'input'"},
		{"/audio/speech", `{` + voice + `,"input":"` + strings.Repeat("x", 4097) + `"}`, 400,
			"string_above_max_length"},
		{"/audio/speech", `{` + voice + `,"input":"x","speed":9}`, 400, "speed"},
		{"/audio/speech", `{` + voice + `,"input":"x","instructions":"sadly"}`, 400, "unsupported_parameter"},
		{"/audio/speech", `{"model":"test-tts","voice":"bob","input":"x"}`, 400, "bob"},
		{"/audio/speech", `{"model":"test-tts","voice":"alloy","input":"x"}`, 400, "mp3"},
		{"/audio/transcriptions", `{}`, 400, "'file'"},
		{"/embeddings", `{"model":"other","input":"x"}`, 404, "model_not_found"},
		{"/embeddings", `{"model":"test-embedding","input":[""]}`, 400, "input"},
		{"/embeddings", `{"model":"test-embedding","input":"x"}`, 200, `"index":0`},
	} {
		res, err := http.Post(s.URL+c.path, "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 4<<10)
		n, _ := res.Body.Read(body)
		res.Body.Close()
		if res.StatusCode != c.status || !strings.Contains(string(body[:n]), c.holds) {
			t.Errorf("%s %.80s\n got %d %s, want %d with %s", c.path, c.body, res.StatusCode, body[:n], c.status,
				c.holds)
		}
	}
}
