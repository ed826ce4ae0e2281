package live

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/internal/ai"
)

// Texts whose server doesn't say when they were said are the oldest utterance's that has none; what comes after the last text of the last
// one corrects it.
func TestRecognitionUndated(t *testing.T) {
	var got []string
	e := recognition{tell: func(e ai.RealtimeEvent) { got = append(got, fmt.Sprintf("%d %q %v", e.N, e.Text, e.Final)) }}
	now := time.Now()
	take := func(text string) { e.take(e.oldest(), text, "", "", now) }
	e.now()
	take(" two")
	e.end()
	take(" of")
	e.now()
	take(" them")
	e.end()
	e.settle(now.Add(settles - 1))
	e.settle(now.Add(settles))
	take(" please")
	e.end()
	e.listens(now.Add(askedTranscriptTime))
	e.settle(now.Add(askedTranscriptTime - 1))
	e.settle(now.Add(askedTranscriptTime))
	want := []string{`0 "two" false`, `0 "two of" false`, `0 "two of" true`, `1 "them" false`, `1 "them" true`,
		`1 "them please" true`, `2 "" true`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Words whose server says when they were said belong to the first utterance that was not over then, with some leeway.
func TestRecognitionDated(t *testing.T) {
	e := recognition{tell: func(ai.RealtimeEvent) {}}
	for _, until := range []int{1000, 3000} {
		e.end().untilMS = until
	}
	for ms, want := range map[int]int{0: 0, 1000: 0, 1000 + lateMS: 0, 1001 + lateMS: 1, 3000 + lateMS: 1, 3001 + lateMS: 2} {
		if u := e.at(ms); u.n != want {
			t.Errorf("what was said at %d ms is of utterance %d, not %d", ms, u.n, want)
		}
	}
}

// What was forgotten is final at once, and not corrected.
func TestRecognitionForgets(t *testing.T) {
	now, told := time.Now(), 0
	e := recognition{tell: func(ai.RealtimeEvent) { told++ }}
	e.end()
	e.forget(0)
	e.forget(7)
	if e.settle(now); told != 1 || e.open() || e.oldest() != nil {
		t.Errorf("%d events, %+v", told, e.oldest())
	}
}
