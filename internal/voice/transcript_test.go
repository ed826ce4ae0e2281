package voice

import (
	"testing"
	"time"

	"parley/internal/turn"
)

// A number that was dictated stands in digits beside the words, for the model; elsewhere only the words do.
func TestHistoryHasDigits(t *testing.T) {
	b := &transcript{}
	b.customer(turn.Action{Text: "it's four seven one five", Digits: "4715", From: time.Second})
	b.customer(turn.Action{Text: "and that is all", From: 2 * time.Second})
	var got []string
	for _, m := range b.history() {
		got = append(got, m.Text)
	}
	if len(got) != 2 || got[0] != "it's four seven one five [digits: 4715]" || got[1] != "and that is all" {
		t.Errorf("the model reads %q", got)
	}
	if b.entries[0].text != "it's four seven one five" {
		t.Errorf("the transcript has %q", b.entries[0].text)
	}
}

// A reply is in the language of its words, of the several that an assistant speaks, or in that of its voice.
func TestLanguageOfReply(t *testing.T) {
	a := &answer{language: "en", among: []string{"es", "en"}}
	for text, want := range map[string]string{"Cerramos a las seis de la tarde.": "es", "Okay.": "en", "Wir schließen um sechs Uhr.": "en"} {
		if got := a.spokenIn(text); got != want {
			t.Errorf("%q is in %q, want %q", text, got, want)
		}
	}
}
