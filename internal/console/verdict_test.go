package console

import (
	"testing"

	"parley/internal/parley"
)

// A call's page says who answered, with each kind that was found on the way and what told so.
func TestVerdictText(t *testing.T) {
	c := &parley.Call{AnsweredBy: parley.AnsweredHuman, AnsweredAt: 1, TakenBy: parley.TakenByAssistant, Verdicts: []parley.CallVerdict{
		{Kind: parley.AnswererMachine, Reason: "speech without a pause", AtMS: 900},
		{Kind: parley.AnswererMenu, Reason: "words: a key 1", AtMS: 3900},
		{Kind: parley.AnswererMenu, Reason: `pressed 2: "reservations"`, AtMS: 6300},
		{Kind: parley.AnswererPerson, Reason: "words of a person, after a menu", AtMS: 39400}}}
	want := "a person (menu after 3.9 s, by words: a key 1; person after 39.4 s, by words of a person, after a menu)"
	if got := answeredBy(c); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.Verdicts = nil
	if got := answeredBy(c); got != "a person" {
		t.Error(got)
	}
}
