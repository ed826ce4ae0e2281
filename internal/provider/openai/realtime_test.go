package openai

import (
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

// What a session is refused with says who has to do something about it.
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
				m.(*realtimeModel).code = o.model
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

// A session says that it is going to end, and how it did.
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

// Sound that is written costs nothing.
func TestRealtimeWriteAllocatesNothing(t *testing.T) {
	for _, rate := range []audio.Rate{audio.Narrow, audio.Wide} {
		s := new(session)
		s.init()
		if rate != audio.Narrow {
			var err error
			if s.rateIn, err = audio.NewResampler(int(rate), realtimeRate); err != nil {
				t.Fatal(err)
			}
		}
		frame := make([]int16, rate.FrameSize())
		send := func() { // five frames, then what the writer does with them
			for range 5 {
				s.Write(frame)
			}
			for i := range s.queue {
				s.free = append(s.free, s.queue[i].data)
			}
			s.queue = s.queue[:0]
		}
		send()
		if n := testing.AllocsPerRun(100, send); n > 0 {
			t.Errorf("%d Hz: %v allocations in five frames", rate, n)
		}
	}
}
