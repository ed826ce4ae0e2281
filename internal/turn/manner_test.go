package turn

import (
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
	m := Manner{Endpoint: 600 * time.Millisecond, Smart: true}
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
		m.Language = c.language
		want := map[lang.Completion]time.Duration{lang.Finished: 300, lang.Undecided: 600,
			lang.Unfinished: 1500}[c.want] * time.Millisecond
		if got := m.pause(c.text); got != want {
			t.Errorf("%s %q: waits %v, want %v", c.language, c.text, got, want)
		}
	}
	for s, want := range map[float64][2]time.Duration{0: {600, 2000}, 5: {200, 658}} {
		m := Manner{Endpoint: Endpointing(s), Smart: true, Language: "en"}
		if a, b := m.pause("yes please."), m.pause("my number is"); a != want[0]*time.Millisecond ||
			b.Round(time.Millisecond) != want[1]*time.Millisecond {
			t.Errorf("sensitivity %v: %v and %v", s, a, b)
		}
	}
}
