package voice

import (
	"testing"

	"parley/internal/ai"
)

// What a recognizer writes for noise is in no message, and of what was said the language is told.
func TestMessageIsSpoken(t *testing.T) {
	m := &message{Mailbox: &Mailbox{Language: "en"}, sayings: make([]saying, 5)}
	for i, told := range []ai.Transcript{{Text: "Thanks for watching!"}, {Text: "Thank you.", NoSpeech: 0.7}, {Text: "Call me back."},
		{Text: "Gracias por todo.", Language: "es"}, {Text: "Thank you."}} {
		told.Utterance, told.Final = i, true
		m.understood(told)
	}
	got := ""
	for _, turn := range m.turns() {
		got += turn.Language + ": " + turn.Text + " "
	}
	if want := "en: Call me back. es: Gracias por todo. en: Thank you. "; got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
}
