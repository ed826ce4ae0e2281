package openai

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
)

func realtimeOf(t *testing.T, s *aitest.Server, key string) ai.RealtimeModel {
	t.Helper()
	c, err := Open(Config{BaseURL: s.URL, APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.RealtimeModel(aitest.RealtimeModel, aitest.TranscriptionModel)
}

func TestRealtimeConforms(t *testing.T) {
	s := aitest.NewServer(t)
	s.APIKey = "k"
	aitest.ConformRealtime(t, realtimeOf(t, s, "k"), s, aitest.RealtimeManner{})
	if list := s.Complaints(); len(list) > 0 {
		t.Errorf("the server complained:\n%s", strings.Join(list, "\n"))
	}
}

// The error of a refused session says who has to do something about it.
func TestRealtimeRefused(t *testing.T) {
	setup := ai.RealtimeSetup{Voice: "marin", Language: "en", Rate: audio.Narrow}
	for name, o := range map[string]struct {
		key   string
		model string
		voice string
		b     aitest.Behaviour
		want  ai.Kind
	}{
		"wrong key":   {key: "wrong", want: ai.Config},
		"wrong model": {model: "gpt-none", want: ai.Config},
		"wrong voice": {voice: "nobody", want: ai.Config},
		"too many":    {b: aitest.Behaviour{Status: 429, RetryAfter: "3"}, want: ai.RateLimited},
		"overloaded":  {b: aitest.Behaviour{Status: 503}, want: ai.Overloaded},
	} {
		t.Run(name, func(t *testing.T) {
			s := aitest.NewServer(t)
			s.APIKey = "k"
			if o.b.Status != 0 {
				s.ScriptRealtime(o.b)
			}
			if o.key == "" {
				o.key = "k"
			}
			m := realtimeOf(t, s, o.key)
			if o.model != "" {
				other := m.(realtimeModel)
				other.code = o.model
				m = other
			}
			setup := setup
			if o.voice != "" {
				setup.Voice = o.voice
			}
			c, err := m.Connect(t.Context(), setup)
			if err == nil {
				c.Close()
			}
			if ai.KindOf(err) != o.want || strings.Contains(err.Error(), "wrong key") {
				t.Errorf("%v, want %s", err, o.want)
			}
		})
	}
}

// Where several languages may be spoken, a model that says which one it heard is told them, and passes it on. Others find
// it by themselves, and don't say.
func TestRealtimeTellsLanguages(t *testing.T) {
	for _, o := range []struct {
		hears, want string
		told        any
	}{
		{aitest.DetectingModel, "es", []any{"en", "es"}},
		{aitest.TranscriptionModel, "", nil},
	} {
		s := aitest.NewServer(t)
		s.Detect = func(string) []string { return []string{"es"} }
		s.Transcribe = func(aitest.Utterance) string { return "hola a todos" }
		m := realtimeOf(t, s, "").(realtimeModel)
		m.hears = o.hears
		c, err := m.Connect(t.Context(), ai.RealtimeSetup{Writes: true, Language: "en", Others: []string{"es"}, Rate: audio.Narrow})
		if err != nil {
			t.Fatal(err)
		}
		c.Write(make([]int16, 4000))
		c.End()
		for e := range c.Events() {
			if e.Kind == ai.RealtimeHeard && e.Final {
				if e.Text != "hola a todos" || e.Language != o.want {
					t.Errorf("%s: got %+v", o.hears, e)
				}
				break
			}
		}
		c.Close()
		hears := s.Conversations()[0].Terms["audio"].(map[string]any)["input"].(map[string]any)["transcription"].(map[string]any)
		if !reflect.DeepEqual(hears["languages"], o.told) || hears["language"] != nil {
			t.Errorf("%s was told %v", o.hears, hears)
		}
		if list := s.Complaints(); len(list) > 0 {
			t.Errorf("the server complained: %q", list)
		}
	}
}

// A field that the transcribing model doesn't take would refuse the session: each gets its own.
func TestRealtimeKeywords(t *testing.T) {
	for hears, want := range map[string]map[string]any{
		aitest.DetectingModel:     {"model": aitest.DetectingModel, "languages": []any{"de"}, "keywords": []any{"Zoë", "Blue  Door"}},
		aitest.TranscriptionModel: {"model": aitest.TranscriptionModel, "language": "de", "prompt": "Zoë, Blue  Door"},
	} {
		s := aitest.NewServer(t)
		m := realtimeOf(t, s, "").(realtimeModel)
		m.hears = hears
		c, err := m.Connect(t.Context(), ai.RealtimeSetup{Writes: true, Language: "de", Rate: audio.Narrow,
			Keywords: []string{"Zoë", "Blue <Door", "\r\n"}})
		if err != nil {
			t.Fatalf("%s: %v", hears, err)
		}
		c.Close()
		got := s.Conversations()[0].Terms["audio"].(map[string]any)["input"].(map[string]any)["transcription"]
		if !reflect.DeepEqual(got, any(want)) {
			t.Errorf("%s was told %v", hears, got)
		}
	}
}

// A session says that it is going to end, and how it ended.
func TestRealtimeExpires(t *testing.T) {
	s := aitest.NewServer(t)
	s.SessionTime = 3 * time.Second
	c, err := realtimeOf(t, s, "").Connect(t.Context(), ai.RealtimeSetup{Voice: "marin", Rate: audio.Narrow})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var kinds []ai.RealtimeKind
	for e := range c.Events() {
		kinds = append(kinds, e.Kind)
		if e.Kind == ai.RealtimeLost && ai.KindOf(e.Err) != ai.Interrupted {
			t.Error(e.Err)
		}
	}
	if len(kinds) != 2 || kinds[0] != ai.RealtimeExpiring || kinds[1] != ai.RealtimeLost {
		t.Errorf("%v", kinds)
	}
}

// An utterance that is too short for the server is padded, and understood.
func TestRealtimeShort(t *testing.T) {
	for _, rate := range []audio.Rate{audio.Narrow, audio.Wide} {
		s := aitest.NewServer(t)
		c, err := realtimeOf(t, s, "").Connect(t.Context(), ai.RealtimeSetup{Voice: "marin", Rate: rate})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for n, text := range []string{"Yes.", "No."} {
			s.ScriptTranscripts(aitest.Behaviour{Text: text})
			c.Write(make([]int16, 2*rate.FrameSize()))
			c.End()
			var e ai.RealtimeEvent
			for !e.Final {
				e = <-c.Events()
			}
			if e.N != n || e.Text != text || e.Err != nil {
				t.Errorf("%d Hz: heard %+v, want %q", rate, e, text)
			}
		}
		if list := s.Complaints(); len(list) > 0 {
			t.Errorf("the server complained:\n%s", strings.Join(list, "\n"))
		}
	}
}

// Five hundred replies are cut at random moments, while they come or after them: the server must be left with what was
// heard of each, in order. This runs in real time, over a socket, and the test decides where to cut. How much a call
// has heard when it cuts is tested in package voice.
func TestRealtimeCutsAtRandom(t *testing.T) {
	for seed, setup := range []ai.RealtimeSetup{{Voice: "marin", Rate: audio.Narrow}, {Voice: "marin", Rate: audio.Wide},
		{Writes: true, Rate: audio.Narrow}} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			s := aitest.NewServer(t)
			c, err := realtimeOf(t, s, "").Connect(t.Context(), setup)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			var want []string
			for n := range []int{150, 50, 300}[seed] {
				if left := cutAtRandom(t, s, c, setup, n, random); left != "" {
					want = append(want, left)
				}
			}
			var got []string
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && !slices.Equal(got, want); {
				got = nil
				for _, i := range s.Conversations()[0].Items {
					if setup.Writes {
						got = append(got, i.Text)
					} else { // the server can only guess the text of speech
						got = append(got, i.Sound.String())
					}
				}
				time.Sleep(5 * time.Millisecond)
			}
			if !slices.Equal(got, want) {
				t.Errorf("the server holds\n%q\nwant\n%q", got, want)
			}
			if list := s.Complaints(); len(list) > 0 {
				t.Errorf("the server complained:\n%s", strings.Join(list, "\n"))
			}
		})
	}
}

// cutAtRandom makes a reply and cuts it, and returns what the server must be left with: sound, or text.
func cutAtRandom(t *testing.T, s *aitest.Server, c ai.RealtimeSession, setup ai.RealtimeSetup, n int,
	random *rand.Rand) (left string) {
	t.Helper()
	var words []string
	for i := range 2 + random.IntN(7) {
		words = append(words, fmt.Sprintf("r%dw%d", n, i))
	}
	s.ScriptRealtime(aitest.Behaviour{Text: strings.Join(words, " "),
		TokenDelay: time.Duration(random.IntN(4)/3) * time.Millisecond})
	c.Respond(n, "", false)
	stop, pieces, samples, text, done := random.IntN(25), 0, 0, "", false
	next := func() {
		select {
		case e, open := <-c.Events():
			switch {
			case !open || e.Kind == ai.RealtimeLost:
				t.Fatalf("the session ended in reply %d: %v", n, e.Err)
			case e.N != n:
				t.Fatalf("an event about %d in reply %d", e.N, n)
			case e.Kind == ai.RealtimeSound:
				pieces, samples = pieces+1, samples+len(e.PCM)
			case e.Kind == ai.RealtimeText && setup.Writes:
				pieces, text = pieces+1, text+e.Text
			case e.Kind == ai.RealtimeDone:
				done = true
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("nothing comes of reply %d", n)
		}
	}
	for pieces <= stop && !done {
		next()
	}
	heard, read := time.Duration(0), ""
	if setup.Writes {
		words = strings.Fields(text)
		read = strings.Join(words[:random.IntN(len(words)+1)], " ")
	} else {
		got := time.Duration(samples) * time.Second / time.Duration(setup.Rate)
		heard = audio.FrameTime * time.Duration(random.IntN(int(got/audio.FrameTime)+1))
	}
	c.Cut(n, heard, read)
	for !done {
		next()
	}
	switch {
	case read != "":
		return read
	case heard > 0:
		return heard.String()
	}
	return ""
}

func TestRealtimeSessionConforms(t *testing.T) {
	aitest.ConformSession(t, func(t *testing.T) aitest.RealtimeVendor {
		s := aitest.NewServer(t)
		s.APIKey = "k"
		return aitest.RealtimeVendor{Server: s, Tones: s.Voice,
			Model: func(t *testing.T, key, code string) ai.RealtimeModel {
				m := realtimeOf(t, s, cmp.Or(key, "k")).(realtimeModel)
				m.code = cmp.Or(code, m.code)
				return m
			},
			Drop: func(code int) { s.DropRealtime(code, "") }, Expire: s.Expire, Strange: aitest.StrangeEvents}
	})
}
