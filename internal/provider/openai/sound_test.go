package openai_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/provider/openai"
)

// sounding is a client of a server that has voices and recognition.
func sounding(t *testing.T, stall time.Duration) (*openai.Client, *aitest.Server) {
	t.Helper()
	s := aitest.NewServer(t)
	s.APIKey = "k3y"
	c, err := openai.Open(openai.Config{BaseURL: s.URL + "/", APIKey: "k3y", Stall: stall})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, s
}

const goodMorning = "Good morning everybody"

var alloy = ai.Speech{Voice: "alloy", Language: "en", Rate: audio.Narrow, Speed: 1}

func TestSynthesizerConforms(t *testing.T) {
	c, s := sounding(t, 0)
	aitest.ConformSynthesizer(t, c.Synthesizer(aitest.SpeechModel), alloy)
	if n := s.Voice.Live(); n != 0 {
		t.Errorf("%d texts are still being said", n)
	}
}

// A realtime model that is named as the speech model reads out, with the nearest of its voices, and does not reason about it.
// Its failures are the voice's.
func TestAloud(t *testing.T) {
	s := aitest.NewServer(t)
	for _, model := range []string{aitest.ReasoningRealtimeModel, "gpt-realtime-2025-08-28"} {
		o, err := openai.Declare(&openai.Settings{BaseURL: s.URL, TTSModel: model}).Open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(o.Close)
		voice, err := o.Synthesizer(openai.Code)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := o.Synthesizer(openai.Code); again != voice {
			t.Error("two of one model are not equal")
		}
		as := alloy
		as.Voice = "nova"
		if model != aitest.ReasoningRealtimeModel {
			err := ai.Say(t.Context(), voice, as, goodMorning, func([]int16) error { return nil })
			if failure, ok := errors.AsType[*ai.Error](err); !ok || failure.Kind != ai.Config || failure.Part != ai.TheVoice {
				t.Errorf("of a model that isn't there: %v", err)
			}
			continue
		}
		if got := s.Voice.Find(said(t, voice, as, goodMorning), audio.Narrow); got != goodMorning {
			t.Errorf("it said %q", got)
		}
		terms := s.Conversations()[0].Terms
		sound := terms["audio"].(map[string]any)
		if v := sound["output"].(map[string]any)["voice"]; v != "coral" {
			t.Errorf("it spoke as %v", v)
		}
		if v := sound["input"].(map[string]any)["transcription"]; v != nil {
			t.Errorf("it was to hear: %v", v)
		}
		if v, _ := terms["reasoning"].(map[string]any); v["effort"] != "minimal" {
			t.Errorf("it was to reason: %v", v)
		}
	}
	if list := s.Complaints(); len(list) > 1 {
		t.Errorf("the server complained: %q", list)
	}
}

func TestAloudConforms(t *testing.T) {
	c, _ := sounding(t, 0)
	aitest.ConformSynthesizer(t, c.Aloud(aitest.ReasoningRealtimeModel), alloy)
}

// The sound arrives unchanged, however it is split on the wire, whether as bare samples or as a WAV file.
func TestSpeak(t *testing.T) {
	c, s := sounding(t, 0)
	speaker := c.Synthesizer(aitest.SpeechModel)
	want := said(t, s.Voice, alloy, goodMorning)
	wav := audio.AppendWAVHeader(nil, 8000, 1, int64(2*len(want)))
	for _, v := range want {
		wav = binary.LittleEndian.AppendUint16(wav, uint16(v))
	}
	for name, b := range map[string]aitest.Behaviour{
		"whole": {}, "odd pieces": {Cut: 777}, "bare WAV": {Raw: string(wav), Type: "application/octet-stream"},
		"WAV": {Raw: string(wav), Type: "audio/wav"},
	} {
		s.ScriptSpeech(b)
		got := said(t, speaker, alloy, goodMorning)
		if len(got) != len(want) || s.Voice.Find(got, audio.Narrow) != goodMorning {
			t.Errorf("%s: %d samples of %q, want %d", name, len(got), s.Voice.Find(got, audio.Narrow), len(want))
		}
		if clicks := roughness(got); clicks > 1.2*roughness(want) {
			t.Errorf("%s: it is rough by %.0f, the voice by %.0f", name, clicks, roughness(want))
		}
	}
	for _, r := range s.Speeches() {
		if r.Format != "pcm" || r.Voice != "alloy" || r.Input != goodMorning || r.Model != aitest.SpeechModel {
			t.Errorf("asked %+v", r)
		}
	}
}

// roughness is the largest second difference: a lost octet turns a tone into noise.
func roughness(pcm []int16) float64 {
	most := 0.0
	for i := 200; i < len(pcm)-200; i++ {
		most = max(most, math.Abs(float64(pcm[i-1])-2*float64(pcm[i])+float64(pcm[i+1])))
	}
	return most
}

func said(t *testing.T, s ai.Synthesizer, as ai.Speech, text string) (pcm []int16) {
	t.Helper()
	if err := ai.Say(t.Context(), s, as, text, func(p []int16) error { pcm = append(pcm, p...); return nil }); err != nil {
		t.Fatal(err)
	}
	return pcm
}

// Sound is passed on as it arrives: the first piece is heard while the server still waits.
func TestSpeakStreams(t *testing.T) {
	c, s := sounding(t, 0)
	gate := make(chan struct{})
	s.ScriptSpeech(aitest.Behaviour{Gate: gate})
	pieces := 0
	err := ai.Say(t.Context(), c.Synthesizer(aitest.SpeechModel), alloy, goodMorning, func([]int16) error {
		if pieces++; pieces == 1 {
			close(gate)
		}
		return nil
	})
	if err != nil || pieces < 2 {
		t.Errorf("%v, %d pieces", err, pieces)
	}
}

func TestSpeakFailures(t *testing.T) {
	busy := aitest.Behaviour{Status: 503}
	for _, c := range []struct {
		name   string
		script []aitest.Behaviour
		kind   ai.Kind
		asked  int
		heard  bool
	}{
		{"busy twice", []aitest.Behaviour{busy, busy}, "", 3, true},
		{"busy for good", []aitest.Behaviour{busy, busy, busy}, ai.Overloaded, 3, false},
		{"asks to wait for long", []aitest.Behaviour{{Status: 429, RetryAfter: "60"}}, ai.RateLimited, 1, false},
		{"no quota", []aitest.Behaviour{{Status: 429, Code: "insufficient_quota"}}, ai.Config, 1, false},
		{"refused", []aitest.Behaviour{{Status: 400, Code: "content_policy_violation"}}, ai.Refused, 1, false},
		{"MP3", []aitest.Behaviour{{Raw: "ID3 something", Type: "audio/mpeg"}}, ai.Malformed, 1, false},
		{"an error as JSON with 200", []aitest.Behaviour{{Raw: `{"error":"no"}`, Type: "application/json"}},
			ai.Malformed, 1, false},
		{"no sound", []aitest.Behaviour{{Raw: "\x00", Type: "audio/pcm"}}, ai.Malformed, 1, false},
		{"broken WAV", []aitest.Behaviour{{Raw: "RIFF\x00\x00\x00\x00WAVEdata", Type: "audio/wav"}}, ai.Malformed,
			1, false},
		{"reset before the first piece", []aitest.Behaviour{{Fault: aitest.Reset}}, "", 2, true},
		{"reset in the middle", []aitest.Behaviour{{Fault: aitest.Reset, After: 2}}, ai.Interrupted, 1, true},
		{"stalls before the first piece", []aitest.Behaviour{{Fault: aitest.Stall}}, ai.Stalled, 1, false},
		{"stalls in the middle", []aitest.Behaviour{{Fault: aitest.Stall, After: 2}}, ai.Stalled, 1, true},
		{"never ends", []aitest.Behaviour{{Fault: aitest.Endless}}, ai.Malformed, 1, true},
	} {
		client, s := sounding(t, 300*time.Millisecond)
		s.ScriptSpeech(c.script...)
		n := 0
		err := ai.Say(t.Context(), client.Synthesizer(aitest.SpeechModel), alloy, goodMorning,
			func(p []int16) error { n += len(p); return nil })
		if ai.KindOf(err) != c.kind || len(s.Speeches()) != c.asked || (n > 0) != c.heard {
			t.Errorf("%s: %v, asked %d times, %d samples", c.name, err, len(s.Speeches()), n)
		}
	}
	client, s := sounding(t, 0)
	err := ai.Say(t.Context(), client.Synthesizer("other"), alloy, goodMorning, nil)
	if ai.KindOf(err) != ai.Config || !strings.Contains(err.Error(), "other") {
		t.Errorf("another model: %v", err)
	}
	long := strings.Repeat("ü", 4097)
	if err := ai.Say(t.Context(), client.Synthesizer(aitest.SpeechModel), alloy, long, nil); ai.KindOf(err) != ai.TooLong ||
		len(s.Speeches()) != 1 {
		t.Errorf("a long text: %v", err)
	}
}

func TestRecognizerConforms(t *testing.T) {
	for _, whole := range []bool{false, true} {
		c, s := sounding(t, 0)
		s.WholeTranscripts = whole
		aitest.ConformRecognizer(t, c.Recognizer(aitest.TranscriptionModel), aitest.Heard{
			Language: "en", Texts: []string{"one and a half", "two", "three of them"},
			Sound: func(t *testing.T, text string, rate audio.Rate) []int16 {
				return said(t, s.Voice, ai.Speech{Rate: rate}, text)
			},
		})
		for _, u := range s.Utterances() {
			if u.Rate != audio.Wide || u.Language != "en" || u.Model != aitest.TranscriptionModel || !u.Stream {
				t.Fatalf("asked %+v", u)
			}
		}
	}
}

// recognition opens a recognizer that is closed at the end of the test.
func recognition(t *testing.T, c *openai.Client, keywords ...string) ai.Recognition {
	t.Helper()
	e, err := c.Recognizer(aitest.TranscriptionModel).Listen(t.Context(),
		ai.Hearing{Language: "de", Rate: audio.Narrow, Keywords: keywords})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// tone is a tone of some seconds.
func tone(seconds float64) []int16 {
	pcm := make([]int16, int(8000*seconds))
	for i := range pcm {
		pcm[i] = int16(5000 * math.Sin(float64(i)/3))
	}
	return pcm
}

func next(t *testing.T, e ai.Recognition) ai.Transcript {
	t.Helper()
	select {
	case got, ok := <-e.Transcripts():
		if !ok {
			t.Fatal("the ear has closed")
		}
		return got
	case <-time.After(20 * time.Second):
		t.Fatal("no transcript within 20 s")
	}
	return ai.Transcript{}
}

// Text that the server streams is passed on as it arrives. The keywords are the prompt; an utterance that is too
// long is cut.
func TestTranscribe(t *testing.T) {
	c, s := sounding(t, 0)
	e := recognition(t, c, "Zoë", "Blue Door", strings.Repeat("x", 1000))
	gate := make(chan struct{})
	s.ScriptTranscripts(aitest.Behaviour{Text: "guten Morgen", Gate: gate}, aitest.Behaviour{Text: " zweite "})
	e.Write(tone(0.5))
	e.End()
	if got := next(t, e); got != (ai.Transcript{Text: "guten"}) {
		t.Errorf("got %+v", got)
	}
	close(gate)
	if got := next(t, e); got != (ai.Transcript{Text: "guten Morgen"}) {
		t.Errorf("got %+v", got)
	}
	if got := next(t, e); got != (ai.Transcript{Text: "guten Morgen", Final: true}) {
		t.Errorf("got %+v", got)
	}
	e.Write(tone(90))
	e.End()
	for got := next(t, e); !got.Final; got = next(t, e) {
	}
	us := s.Utterances()
	if len(us) != 2 || us[0].Prompt != "Zoë, Blue Door" || us[0].Language != "de" || len(us[0].PCM) != 8000 ||
		len(us[1].PCM) != 60*16000 {
		t.Errorf("asked %d times: %q, %d and %d samples", len(us), us[0].Prompt, len(us[0].PCM), len(us[1].PCM))
	}
	e.Write(tone(0.05)) // too short to be sent
	e.End()
	if got := next(t, e); got != (ai.Transcript{Utterance: 2, Final: true}) || len(s.Utterances()) != 2 {
		t.Errorf("got %+v", got)
	}
}

// Whisper is asked how likely nobody spoke, and a server that can't say so is asked as ever.
func TestNoSpeech(t *testing.T) {
	c, s := sounding(t, 0)
	e, err := c.Recognizer(aitest.WhisperModel).Listen(t.Context(), ai.Hearing{Language: "en", Rate: audio.Narrow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	hears := func(want ai.Transcript, format string, stream bool) {
		t.Helper()
		e.Write(tone(0.5))
		e.End()
		if got := next(t, e); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if us := s.Utterances(); us[len(us)-1].Format != format || us[len(us)-1].Stream != stream {
			t.Errorf("asked %+v", us[len(us)-1])
		}
	}
	s.ScriptTranscripts(
		aitest.Behaviour{Status: 200, Type: "application/json", Raw: `{"task":"transcribe","language":"english","duration":0.5,` +
			`"text":" Thank you. Bye.","segments":[{"id":0,"text":" Thank you.","no_speech_prob":0.75},{"id":1,"text":" Bye.","no_speech_prob":0.25}]}`},
		aitest.Behaviour{Text: "Hello."})
	hears(ai.Transcript{Text: "Thank you. Bye.", NoSpeech: (10*0.75 + 4*0.25) / 14, Final: true}, "verbose_json", false)
	hears(ai.Transcript{Utterance: 1, Text: "Hello.", Final: true}, "verbose_json", false)
	s.Refuses = []string{"response_format"}
	s.UsuallyTranscripts(aitest.Behaviour{Text: "Hello."})
	hears(ai.Transcript{Utterance: 2, Text: "Hello.", Final: true}, "", true)
}

// Where several languages may be spoken, the model that can be told so is, and says which one it was. Of several that it
// found, nothing is said; nor by a model that can't tell, which is asked for the first language, as is a server that
// refuses the list.
func TestTranscribeTellsLanguages(t *testing.T) {
	for _, o := range []struct {
		model         string
		refuses       string
		whole         bool
		others        []string
		found         []string
		want          string
		asked, single string
	}{
		{model: aitest.DetectingModel, others: []string{"es", "de"}, found: []string{"es"}, want: "es", asked: "en es de"},
		{model: aitest.DetectingModel, others: []string{"es"}, found: []string{"en-GB"}, want: "en", asked: "en es", whole: true},
		{model: aitest.DetectingModel, others: []string{"es"}, found: []string{"ca", "es"}, want: "es", asked: "en es"},
		{model: aitest.DetectingModel, others: []string{"es"}, found: []string{"es", "en"}, asked: "en es"},
		{model: aitest.DetectingModel, others: []string{"es"}, asked: "en es", whole: true},
		{model: aitest.DetectingModel, found: []string{"es"}, asked: "en"},
		{model: aitest.DetectingModel, others: []string{"es"}, refuses: "languages[]", found: []string{"en"}, want: "en", single: "en"},
		{model: aitest.TranscriptionModel, others: []string{"es"}, found: []string{"es"}, single: "en"},
	} {
		c, s := sounding(t, 0)
		s.WholeTranscripts, s.Detect = o.whole, func(string) []string { return o.found }
		s.Transcribe = func(aitest.Utterance) string { return "guten Morgen" }
		if o.refuses != "" {
			s.Refuses = []string{o.refuses}
		}
		e, err := c.Recognizer(o.model).Listen(t.Context(), ai.Hearing{Language: "en", Others: o.others, Rate: audio.Narrow})
		if err != nil {
			t.Fatal(err)
		}
		e.Write(tone(0.5))
		e.End()
		got := next(t, e)
		for !got.Final {
			got = next(t, e)
		}
		e.Close()
		us := s.Utterances()
		last := us[len(us)-1]
		if got.Text != "guten Morgen" || got.Language != o.want || strings.Join(last.Languages, " ") != o.asked || last.Language != o.single {
			t.Errorf("%+v: got %+v, asked for %v and %q", o, got, last.Languages, last.Language)
		}
	}
	for model, tells := range map[string]bool{aitest.DetectingModel: true, "gpt-4o-transcribe": false, "": false} {
		set := new(openai.Settings)
		listens := openai.Declare(set).Listeners[0] // as the program does, which reads the settings later
		set.STTModel = model
		if got := listens.Mixed() != ""; got != tells {
			t.Errorf("%q tells languages: %v", model, got)
		}
	}
}

// A model that takes words to expect gets them as a list, without characters that it refuses; a server that refuses the
// list gets them as a prompt, as older models do.
func TestTranscribeKeywords(t *testing.T) {
	for _, o := range []struct{ model, refuses, list, prompt string }{
		{aitest.DetectingModel, "", "Zoë|Blue  Door", ""},
		{aitest.DetectingModel, "keywords[]", "", "Zoë, Blue <Door"},
		{aitest.TranscriptionModel, "", "", "Zoë, Blue <Door"},
	} {
		c, s := sounding(t, 0)
		if o.refuses != "" {
			s.Refuses = []string{o.refuses}
		}
		e, err := c.Recognizer(o.model).Listen(t.Context(), ai.Hearing{Language: "en", Rate: audio.Narrow,
			Keywords: []string{"Zoë", "Blue <Door", "\n"}})
		if err != nil {
			t.Fatal(err)
		}
		e.Write(tone(0.5))
		e.End()
		for got := next(t, e); !got.Final; got = next(t, e) {
		}
		e.Close()
		us := s.Utterances()
		last := us[len(us)-1]
		if got := strings.Join(last.Keywords, "|"); got != o.list || !strings.HasPrefix(last.Prompt, o.prompt) ||
			o.prompt == "" && last.Prompt != "" {
			t.Errorf("%+v: sent %q and %q", o, last.Keywords, last.Prompt)
		}
	}
}

// When a server refuses a field, the request is sent without it, now and from then on.
func TestTranscribeLearns(t *testing.T) {
	c, s := sounding(t, 0)
	s.Refuses = []string{"stream", "prompt"}
	for i := range 2 {
		e := recognition(t, c, "Zoë")
		s.ScriptTranscripts(make([]aitest.Behaviour, 2-2*i)...) // the refused ones
		s.ScriptTranscripts(aitest.Behaviour{Text: "so"})
		e.Write(tone(0.5))
		e.End()
		if got := next(t, e); got.Text != "so" || !got.Final {
			t.Errorf("got %+v", got)
		}
	}
	if n := len(s.Utterances()); n != 4 {
		t.Errorf("asked %d times", n)
	}
}

func TestTranscribeFailures(t *testing.T) {
	busy := aitest.Behaviour{Status: 503}
	sse := "text/event-stream"
	for _, c := range []struct {
		name   string
		script []aitest.Behaviour
		kind   ai.Kind
		text   string
		asked  int
	}{
		{"busy twice", []aitest.Behaviour{busy, busy, {Text: "yes"}}, "", "yes", 3},
		{"busy for good", []aitest.Behaviour{busy, busy, busy}, ai.Overloaded, "", 3},
		{"a wrong key", []aitest.Behaviour{{Status: 401}}, ai.Config, "", 1},
		{"no JSON", []aitest.Behaviour{{Raw: "<html>", Type: "text/html"}}, ai.Malformed, "", 1},
		{"no text", []aitest.Behaviour{{Raw: `{"txt":"x"}`, Type: "application/json"}}, ai.Malformed, "", 1},
		{"an empty text", []aitest.Behaviour{{Raw: `{"text":""}`, Type: "application/json"}}, "", "", 1},
		{"stalls", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Stall, After: 1}}, ai.Stalled, "", 1},
		{"reset in the middle", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Reset, After: 1}}, ai.Interrupted,
			"", 1},
		{"ends in the middle", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Cutoff, After: 1}}, ai.Interrupted,
			"", 1},
		{"fails in the middle", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Failure, After: 1}}, ai.Overloaded,
			"", 1},
		{"garbage", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Garbage, After: 1}}, ai.Malformed, "", 1},
		{"endless", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Endless, After: 1}}, ai.Malformed, "", 1},
		{"chunks as vLLM's", []aitest.Behaviour{{Type: sse,
			Raw: "data: {\"choices\":[{\"delta\":{\"content\":\"a \"}}]}\n\n" +
				"data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"}}, "", "a b", 1},
		{"chunks without the last line", []aitest.Behaviour{{Type: sse,
			Raw: "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n"}}, "", "a", 1},
	} {
		client, s := sounding(t, 300*time.Millisecond)
		s.ScriptTranscripts(c.script...)
		e := recognition(t, client)
		e.Write(tone(0.5))
		e.End()
		got := next(t, e)
		for !got.Final {
			got = next(t, e)
		}
		if ai.KindOf(got.Err) != c.kind || got.Text != c.text || len(s.Utterances()) != c.asked {
			t.Errorf("%s: %+v, asked %d times", c.name, got, len(s.Utterances()))
		}
		s.ScriptTranscripts(aitest.Behaviour{Text: "again"}) // the recognizer goes on
		e.Write(tone(0.5))
		e.End()
		for got = next(t, e); !got.Final; got = next(t, e) {
		}
		if got.Utterance != 1 || got.Text != "again" || got.Err != nil {
			t.Errorf("%s: afterwards %+v", c.name, got)
		}
	}
}

// When a speaker gets far ahead of the server, no more sound is taken, and the error says so.
func TestTranscribeOverload(t *testing.T) {
	c, s := sounding(t, 0)
	gate := make(chan struct{})
	s.ScriptTranscripts(aitest.Behaviour{Text: "first", Gate: gate})
	s.UsuallyTranscripts(aitest.Behaviour{Text: "more"})
	e := recognition(t, c)
	for range 12 {
		e.Write(tone(0.2))
		e.End()
	}
	close(gate)
	lost := 0
	for i := range 12 {
		got := next(t, e)
		for !got.Final {
			got = next(t, e)
		}
		if ai.KindOf(got.Err) == ai.Overloaded {
			lost++
		} else if got.Utterance != i || got.Text == "" {
			t.Errorf("got %+v", got)
		}
	}
	if lost < 3 || lost > 4 || len(s.Utterances()) != 12-lost {
		t.Errorf("%d are lost, asked about %d", lost, len(s.Utterances()))
	}
}

// What is written is what the server hears, in whatever pieces it comes, and again when the first request failed.
func TestUtteranceArrives(t *testing.T) {
	c, s := sounding(t, 0)
	s.ScriptTranscripts(aitest.Behaviour{Status: 503}, aitest.Behaviour{Text: "yes"})
	e, err := c.Recognizer(aitest.TranscriptionModel).Listen(t.Context(), ai.Hearing{Language: "en", Rate: audio.Wide})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	noise := rand.New(rand.NewPCG(1, 2))
	said := make([]int16, 12345)
	for i := range said {
		said[i] = int16(noise.IntN(20000) - 10000)
	}
	for i, n := 0, 0; i < len(said); i += n {
		n = min(1+noise.IntN(3000), len(said)-i)
		e.Write(said[i : i+n])
	}
	e.End()
	for got := next(t, e); !got.Final; got = next(t, e) {
	}
	us := s.Utterances()
	if len(us) != 2 || !slices.Equal(us[0].PCM, said) || !slices.Equal(us[1].PCM, said) {
		t.Errorf("asked %d times, of something else", len(us))
	}
}

// Telephone sound, sent at twice its rate, contains nothing that was not there.
func TestUtteranceDoubled(t *testing.T) {
	c, s := sounding(t, 0)
	e := recognition(t, c)
	for i, hz := range []float64{200, 1000, 2300, 3200} {
		said := make([]int16, 8000)
		for k := range said {
			said[k] = int16(10000 * math.Sin(2*math.Pi*hz*float64(k)/8000))
		}
		e.Write(said)
		e.End()
		for got := next(t, e); !got.Final; got = next(t, e) {
		}
		heard := s.Utterances()[i].PCM
		if len(heard) != 16000 {
			t.Fatalf("%d samples", len(heard))
		}
		amplitude := func(hz float64) float64 {
			var re, im float64
			for k, v := range heard[1600:14400] {
				sin, cos := math.Sincos(2 * math.Pi * hz * float64(k) / 16000)
				re, im = re+float64(v)*cos, im+float64(v)*sin
			}
			return 2 * math.Hypot(re, im) / 12800
		}
		if a, image := amplitude(hz), amplitude(8000-hz); a < 9950 || a > 10050 || image > 10 {
			t.Errorf("%g Hz: %.0f of it, and %.1f of its image, of 10000", hz, a, image)
		}
		for k := range said {
			if heard[2*k] != said[k] {
				t.Fatalf("%g Hz: sample %d is %d, was %d", hz, k, heard[2*k], said[k])
			}
		}
	}
}

// A recognizer keeps nothing of an utterance once it is understood.
func TestQuietRecognitionIsSmall(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"text":"x"}`)
	}))
	defer server.Close()
	c, err := openai.Open(openai.Config{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	heap := func() uint64 {
		for range 3 { // pools release their memory in two rounds
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const recognitions = 50
	said := tone(4)
	before := heap()
	for range recognitions {
		e := recognition(t, c)
		e.Write(said)
		e.End()
		next(t, e)
	}
	if each := (int64(heap()) - int64(before)) / recognitions; each > 8<<10 {
		t.Errorf("an ear that hears nothing takes %d octets", each)
	}
}

// Writing doesn't allocate once the recognizer has heard an utterance of the same length.
func TestWriteAllocates(t *testing.T) {
	c, s := sounding(t, 0)
	s.UsuallyTranscripts(aitest.Behaviour{Text: "x"})
	e := recognition(t, c)
	for range 2 {
		e.Write(tone(30))
		e.End()
		for got := next(t, e); !got.Final; got = next(t, e) {
		}
	}
	frame := tone(0.02)
	if n := testing.AllocsPerRun(1000, func() { e.Write(frame) }); n != 0 {
		t.Errorf("%.1f allocations for a frame", n)
	}
}

func TestEmbedderConforms(t *testing.T) {
	c, _ := sounding(t, 0)
	aitest.ConformEmbedder(t, c.Embedder(aitest.EmbeddingModel))
}

// A server that is not there is reported as unreachable for every sort of request.
func TestNobodyListens(t *testing.T) {
	c, err := openai.Open(openai.Config{BaseURL: "http://127.0.0.1:1/v1"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := ai.Say(t.Context(), c.Synthesizer("x"), alloy, goodMorning, nil); ai.KindOf(err) != ai.Unreachable {
		t.Errorf("speech: %v", err)
	}
	e := recognition(t, c)
	e.Write(tone(0.5))
	e.End()
	if got := next(t, e); ai.KindOf(got.Err) != ai.Unreachable {
		t.Errorf("transcript: %+v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	if err := ai.Say(ctx, c.Synthesizer("x"), alloy, goodMorning, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("late: %v", err)
	}
}
