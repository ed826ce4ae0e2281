package turn

import (
	"math"
	"testing"
	"time"

	"parley/internal/lang"
)

// The formulas are the documented ones.
func TestSensitivities(t *testing.T) {
	for s, want := range map[float64]time.Duration{0: 1200, 0.5: 600, 1: 450, 5: 263} {
		if got := Endpointing(s); got != want*time.Millisecond {
			t.Errorf("endpoint_sensitivity %v: %v, want %d ms", s, got, want)
		}
	}
	for s, want := range map[float64]time.Duration{0: 700, 0.5: 300, 1: 220, 5: 129} {
		if got := Confirmation(s); got != want*time.Millisecond {
			t.Errorf("interrupt_sensitivity %v: %v, want %d ms", s, got, want)
		}
	}
}

func TestPause(t *testing.T) {
	for _, c := range []struct {
		language, text string
		want           lang.Completion
	}{
		{"en", "yes please", lang.Finished}, {"en", "no", lang.Finished},
		{"en", "I would like a table for two.", lang.Finished}, {"en", "when do you open?", lang.Finished},
		{"en", "my number is", lang.Unfinished}, {"en", "I would like a table and", lang.Unfinished},
		{"en", "um", lang.Unfinished}, {"en", "my number is 555", lang.Unfinished},
		{"en", "five five five", lang.Unfinished}, {"en", "well,", lang.Unfinished},
		{"en", "so...", lang.Unfinished}, {"en", "i want to", lang.Unfinished},
		{"en", "i want a table for two people", lang.Undecided}, {"en", "", lang.Undecided},
		{"de", "ja bitte", lang.Finished}, {"de", "meine Nummer ist", lang.Unfinished},
		{"de", "ich möchte einen Tisch für", lang.Unfinished},
		{"fr", "je voudrais", lang.Unfinished}, {"es", "quiero una mesa para", lang.Unfinished},
		{"ja", "はい。", lang.Finished}, {"xx", "yes please", lang.Undecided},
	} {
		if got := lang.Completeness(c.text, c.language); got != c.want {
			t.Errorf("%s %q: %v, want %v", c.language, c.text, got, c.want)
		}
		bounds := map[lang.Completion][2]time.Duration{lang.Finished: {200, 300}, lang.Undecided: {200, 2000},
			lang.Unfinished: {1500, 2000}}[c.want]
		got := Pause(600*time.Millisecond, lang.Over(c.text, c.language))
		if least, most := bounds[0]*time.Millisecond, bounds[1]*time.Millisecond; got < least || got > most {
			t.Errorf("%s %q: waits %v, want %v to %v", c.language, c.text, got, least, most)
		}
	}
	for over, want := range map[float64]time.Duration{0.0001: 2000, 0.2: 1057, 0.5: 600, 0.6: 508, 0.9999: 200} {
		if got := Pause(600*time.Millisecond, over); got != want*time.Millisecond {
			t.Errorf("over with %v: waits %v, want %d ms", over, got, want)
		}
	}
	// Who waits long usually is quick, too, where the words are all there.
	for over, want := range map[float64]time.Duration{0.5: 1200, 0.9: 489, 0.97: 290, 0.999: 200} {
		if got := Pause(1200*time.Millisecond, over); got != want*time.Millisecond {
			t.Errorf("over with %v: waits %v of usually 1.2 s, want %d ms", over, got, want)
		}
	}
	for s, want := range map[float64][2]time.Duration{0: {600, 2000}, 5: {200, 658}} {
		pause := func(text string) time.Duration { return Pause(Endpointing(s), lang.Over(text, "en")) }
		if a, b := pause("yes please."), pause("my number is"); a > want[0]*time.Millisecond ||
			a < 200*time.Millisecond || b < want[1]*time.Millisecond || b > 2*time.Second {
			t.Errorf("sensitivity %v: %v and %v", s, a, b)
		}
	}
}

// Only those who don't seem to have finished are waited for longer than Pause says: the surer that is, the longer.
func TestPatience(t *testing.T) {
	for over, want := range map[float64]time.Duration{0.001: 8000, 0.005: 5205, 0.0101: 3899, 0.02: 2938, 0.05: 1996, 0.09: 1543, 0.101: 1464,
		0.5: 600, 0.99: 200} {
		if got := Patience(600*time.Millisecond, over); got != want*time.Millisecond {
			t.Errorf("over with %v: waits %v, want %d ms", over, got, want)
		}
	}
	for over, want := range map[float64]time.Duration{0.001: 8000, 0.015: 6621, 0.019: 6002, 0.021: 5000, 0.06: 3689, 0.09: 3085, 0.12: 2706,
		0.2: 2113, 0.3: 1696} {
		if got := Patience(1200*time.Millisecond, over); got != want*time.Millisecond {
			t.Errorf("over with %v: waits %v of usually 1.2 s, want %d ms", over, got, want)
		}
	}
	for over, want := range map[float64]time.Duration{0.11: 3500, 0.25: 3132, 0.29: 2882, 0.31: 2000, 0.6: 1695} {
		if got := Patience(2*time.Second, over); got != want*time.Millisecond {
			t.Errorf("over with %v: waits %v of usually 2 s, want %d ms", over, got, want)
		}
	}
	for ms := time.Duration(200); ms <= 1200; ms += 50 {
		last := time.Duration(1 << 62)
		for over := 0.001; over < 1; over += 0.001 {
			got, usual := Patience(ms*time.Millisecond, over), Pause(ms*time.Millisecond, over)
			most := 8 * time.Second
			switch {
			case over > 0.3:
				most = usual
			case over > 0.1:
				most = 3500 * time.Millisecond
			case over > 0.02:
				most = 5 * time.Second
			}
			if got < usual || got > last || got > most {
				t.Fatalf("usually %d ms, over with %.3f: waits %v, elsewhere %v, with less %v", ms, over, got, usual, last)
			}
			last = got
		}
	}
}

// The longer somebody has been quiet, the likelier they have finished.
func TestLikely(t *testing.T) {
	for _, c := range []struct {
		over float64
		ms   time.Duration
		want float64
	}{
		{0.5, 0, 0.5}, {0.5, 100, 0.5}, {0.5, 300, 0.643}, {0.5, 600, 0.831}, {0.2, 200, 0.2}, {0.2, 1000, 0.720}, {0.04, 300, 0.070},
		{0.04, 1500, 0.436}, {0.999, 0, 0.999}, {0, 300, 0}, {1, 300, 1},
	} {
		if got := Likely(c.over, c.ms*time.Millisecond); math.Abs(got-c.want) > 0.002 {
			t.Errorf("over with %v, quiet for %d ms: finished with %.3f, want %v", c.over, c.ms, got, c.want)
		}
	}
}
