package stage

import (
	"context"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/parley"
)

func TestStages(t *testing.T) {
	h, now := New(), time.Now()
	token, err := h.Begin(1, 7, Set{}, now)
	if err != nil || !Is(token) || h.Find(token) == nil || h.Find(token).AssistantID != 7 {
		t.Fatalf("%q %v", token, err)
	}
	if h.Find("test-other") != nil || h.Find("") != nil || (*Stages)(nil).Find(token) != nil || Is("visitor") {
		t.Error("a stage that nobody set")
	}
	missing := func(err error) bool { e, ok := err.(*parley.Error); return ok && e.Kind == parley.NotFound }
	if _, err := h.Own(2, token); !missing(err) {
		t.Errorf("another user's is %v", err)
	}
	if err := h.End(2, token); !missing(err) || h.Find(token) == nil {
		t.Errorf("another user ends it: %v", err)
	}
	if err := h.End(1, token); err != nil || h.Find(token) != nil {
		t.Errorf("ended: %v", err)
	}
	for range most {
		if _, err := h.Begin(1, 7, Set{}, now); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Begin(1, 7, Set{}, now); err != errMany {
		t.Errorf("one more: %v", err)
	}
	if _, err := h.Begin(2, 8, Set{}, now); err != nil {
		t.Errorf("another user's: %v", err)
	}
	if _, err := h.Begin(1, 7, Set{}, now.Add(lifetime+time.Second)); err != nil || len(h.stages) != 1 {
		t.Errorf("an hour later there are %d, %v", len(h.stages), err)
	}
}

// The memory of one user's stages is limited, however many there are, and that of everybody's.
func TestStagesBytes(t *testing.T) {
	h, now := New(), time.Now()
	big := Set{Mocks: map[string]Mock{"book": {Reply: strings.Repeat("x", maxBytes/2)}}}
	token, err := h.Begin(1, 7, big, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Begin(1, 7, big, now); err != errMany {
		t.Errorf("beyond the limit: %v", err)
	}
	if _, err := h.Begin(2, 8, big, now); err != nil {
		t.Errorf("another user's: %v", err)
	}
	if err := h.End(1, token); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Begin(1, 7, big, now); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	for user := int64(3); err == nil; user++ {
		_, err = h.Begin(user, 7, big, now)
		if user > 1000 {
			t.Fatal("everybody's has no end")
		}
	}
	if err != errFull {
		t.Errorf("everybody's: %v", err)
	}
	if _, err := h.Begin(1000, 7, big, now.Add(lifetime+time.Second)); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

// heaped is how much more memory is held after fn.
func heaped(fn func()) int {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	fn()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int(after.HeapAlloc) - int(before.HeapAlloc)
}

// whole is an assistant with as much in it as there may be, made anew each time.
func whole(n int) *parley.Assistant {
	text := func(n int) string { return strings.Repeat("x", n) }
	a := &parley.Assistant{ID: 7, SystemPrompt: text(100 * n), InitialMessage: text(n), Variables: map[string]string{}}
	for i := range n {
		a.Variables[strconv.Itoa(i)] = text(1000)
		a.Keywords = append(a.Keywords, text(100))
		a.Tools = append(a.Tools, parley.AssistantTool{Type: "end_call"})
		a.MidCallTools = append(a.MidCallTools,
			parley.Tool{Name: text(100), Description: text(1000), Headers: []parley.ToolHeader{{Name: "a", Value: text(500)}}})
	}
	return a
}

// What one account's stages hold is within the bound by the heap's own count, whatever a set is made of.
func TestStagesHeap(t *testing.T) {
	for name, set := range map[string]func(i int) Set{
		"assistants":       func(int) Set { return Set{As: whole(500)} },
		"small assistants": func(int) Set { return Set{As: whole(1)} },
		"drafts": func(int) Set {
			text := strings.Repeat("x", 50_000)
			return Set{Draft: &parley.Draft{SystemPrompt: &text}}
		},
		"variables": func(i int) Set {
			s := Set{Variables: map[string]string{}}
			for j := range 200 {
				s.Variables[strconv.Itoa(j)] = "v" + strconv.Itoa(i)
			}
			return s
		},
		"tools": func(int) Set {
			s := Set{Mocks: map[string]Mock{}}
			for j := range 100 {
				s.Mocks[strconv.Itoa(j)] = Mock{Reply: strings.Repeat("y", 1000)}
			}
			return s
		},
		"words": func(int) Set { return Set{Told: true} },
	} {
		t.Run(name, func(t *testing.T) {
			h, n := New(), 0
			held := heaped(func() {
				for ; ; n++ {
					token, err := h.Begin(1, 7, set(n), time.Now())
					if err != nil {
						if err != errMany {
							t.Error(err)
						}
						return
					}
					for range 20 {
						h.Find(token).Tell(strings.Repeat("word ", 400))
					}
				}
			})
			if held > maxBytes*5/4 || n == 0 {
				t.Errorf("%d stages hold %d KB, and may hold %d", n, held>>10, maxBytes>>10)
			}
			runtime.KeepAlive(h)
		})
	}
}

// The tests of one run share the assistant that plays in them, and it is counted once.
func TestStagesShare(t *testing.T) {
	h, now := New(), time.Now()
	a := whole(500)
	held := heaped(func() {
		for i := range most {
			as := h.Shared(1, 7, 3)
			if as == nil {
				as = a
			}
			if i%2 == 1 {
				as = whole(500) // somebody made another meanwhile
			}
			if _, err := h.Begin(1, 7, Set{Run: 3, As: as}, now); err != nil {
				t.Fatalf("number %d: %v", i, err)
			}
		}
	})
	if held > 4<<20 {
		t.Errorf("%d stages of one run hold %d KB", most, held>>10)
	}
	if h.Shared(2, 7, 3) != nil || h.Shared(1, 8, 3) != nil || h.Shared(1, 7, 4) != nil || h.Shared(1, 7, 0) != nil {
		t.Error("another's assistant is shared")
	}
	runtime.KeepAlive(h)
}

func TestAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Stage{Set: Set{Mocks: map[string]Mock{"book": {Reply: "booked", After: 1500 * time.Millisecond}, "gone": {Fails: "no table"},
			"look": {Real: true}}}}
		began := time.Now()
		if text, err := s.Answer(t.Context(), "book"); text != "booked" || err != nil || time.Since(began) != 1500*time.Millisecond {
			t.Errorf("%q %v after %v", text, err, time.Since(began))
		}
		if _, err := s.Answer(t.Context(), "gone"); err == nil || err.Error() != "no table" {
			t.Errorf("failed with %v", err)
		}
		if text, err := s.Answer(t.Context(), "other"); text != answered || err != nil {
			t.Errorf("%q %v", text, err)
		}
		if !s.Really("look") || s.Really("book") || (*Stage)(nil).Really("look") {
			t.Error("the wrong tools are real")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Answer(ctx, "book"); err == nil {
			t.Error("an answer after the end")
		}
	})
}

// loud is 20 ms of a voice at a level, in dBFS.
func loud(level float64) []int16 {
	pcm := make([]int16, 160)
	for i := range pcm {
		pcm[i] = int16(32767 * math.Pow(10, level/20))
	}
	return pcm
}

// A stage's recognizer understands the told texts, utterance by utterance, as speech comes in.
func TestRecognition(t *testing.T) {
	h := New()
	token, err := h.Begin(1, 7, Set{Told: true}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := h.Find(token)
	s.Tell("a table") // told before anybody listens
	recognition, err := s.Recognizer().Listen(t.Context(), ai.Hearing{Rate: audio.Narrow})
	if err != nil {
		t.Fatal(err)
	}
	voice, silence := loud(-20), make([]int16, 160)
	s.Tell("for two")
	recognition.Write(voice)
	s.Tell("please") // before its sound has come: the utterance is just ending
	recognition.Write(silence)
	recognition.Write(loud(-40)) // the noise behind the voice
	recognition.End()
	recognition.Write(voice)
	recognition.End()
	s.Tell("thank you") // a little late
	recognition.End()
	var got []string
	for range 5 {
		tr := <-recognition.Transcripts()
		text := tr.Text
		if tr.Final {
			text += "."
		}
		got = append(got, text)
	}
	if all := strings.Join(got, "|"); all != "a table for two|a table for two.|please|please.|thank you." {
		t.Errorf("understood %s", all)
	}
	recognition.Close()
	recognition.Close()
	s.Tell("nobody listens")
	recognition.End()
	if _, open := <-recognition.Transcripts(); open || len(s.recognitions) != 0 {
		t.Error("it is still open")
	}
	ctx, cancel := context.WithCancel(t.Context())
	other, err := s.Recognizer().Listen(ctx, ai.Hearing{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, open := <-other.Transcripts(); open {
		t.Error("it outlives its context")
	}
}
