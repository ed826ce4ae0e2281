package provider

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
)

// The usage of vendors is counted, and apart from that they behave as before.
func TestCounted(t *testing.T) {
	tally := new(ai.Tally)
	ctx := ai.Tallied(t.Context(), tally)
	acme := &source{vendor: &ai.Vendor{Code: "acme"}}
	m := countedModel{&aitest.Fake{}, acme, "thinker"}
	for range 2 {
		if _, err := m.Generate(ctx, ai.Request{Messages: []ai.Message{{Role: ai.User, Text: "one two three"}}},
			func(ai.Delta) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	voice := &aitest.Synthesizer{}
	v := countedVoice{voice, acme, "acme", "loud"}
	if !reflect.TypeOf(v).Comparable() || v != (countedVoice{voice, acme, "acme", "loud"}) {
		t.Error("a cache can't know sounds by it")
	}
	if err := ai.Say(ctx, v, ai.Speech{Rate: audio.Narrow}, "Schöner Tag.", func([]int16) error { return nil }); err != nil {
		t.Fatal(err)
	}
	e, err := countedRecognition{&aitest.Recognizer{}, acme, "acme"}.Listen(ctx, ai.Hearing{Rate: audio.Narrow})
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]int16, 160)
	if n := testing.AllocsPerRun(99, func() { e.Write(frame) }); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
	e.Close()
	e.Close()
	uses := tally.Uses()
	if len(uses) != 3 || uses[0].In == 0 || uses[0].Out == 0 || uses[0].Model != "thinker" {
		t.Fatalf("%+v", uses)
	}
	if !slices.Equal(uses[1:], []ai.Use{{Part: ai.TheVoice, Vendor: "acme", Model: "loud", Spoken: 12},
		{Part: ai.TheRecognizer, Vendor: "acme", Heard: 2 * time.Second}}) {
		t.Errorf("%+v", uses[1:])
	}
}

func TestCountedConform(t *testing.T) {
	acme := &source{vendor: &ai.Vendor{Code: "acme"}}
	aitest.ConformSynthesizer(t, countedVoice{&aitest.Synthesizer{Times: true}, acme, "acme", ""}, ai.Speech{})
	aitest.Conform(t, countedModel{&aitest.Fake{}, acme, ""})
}
