package stage

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/ai"
	"parley/internal/audio"
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

// The memory of one user's stages is limited, however many there are.
func TestStagesBytes(t *testing.T) {
	h, now := New(), time.Now()
	big := Set{Mocks: map[string]Mock{"book": {Reply: strings.Repeat("x", mostBytes/2)}}}
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

// A stage's recognizer understands the told texts, utterance by utterance, as speech comes in.
func TestEar(t *testing.T) {
	h := New()
	token, err := h.Begin(1, 7, Set{Told: true}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := h.Find(token)
	s.Tell("a table") // told before anybody listens
	ear, err := s.Recognizer().Listen(t.Context(), ai.Hearing{Rate: audio.Narrow})
	if err != nil {
		t.Fatal(err)
	}
	s.Tell("for two")
	ear.Write(make([]int16, 160))
	ear.End()
	ear.End()
	s.Tell("please")
	ear.End()
	var got []string
	for range 6 {
		tr := <-ear.Transcripts()
		text := tr.Text
		if tr.Final {
			text += "."
		}
		got = append(got, text)
	}
	if all := strings.Join(got, "|"); all != "a table|a table for two|a table for two.|.|please|please." {
		t.Errorf("understood %s", all)
	}
	ear.Close()
	ear.Close()
	s.Tell("nobody listens")
	ear.End()
	if _, open := <-ear.Transcripts(); open || len(s.ears) != 0 {
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
