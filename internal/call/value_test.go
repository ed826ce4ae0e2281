package call_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/voice"
)

// What is found out from a call has the types that are asked for, and each value that is null has its reason: in the call,
// and in what the owner's endpoint is told. So has every value of a call that the model did not read.
func TestValuesOfACall(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.change(h.a, `{"post_call_evaluation":false,"post_call_schema":[
			{"name":"people","type":"number","description":"How many people come"},
			{"name":"outside","type":"bool","description":"Whether they want to sit outside"},
			{"name":"day","type":"string","description":"The day, YYYY-MM-DD"},
			{"name":"phone","type":"string","description":"The phone number of the guest"},
			{"name":"rating","type":"number","description":"How they rate us"},
			{"name":"birthday","type":"string","description":"The date of birth, YYYY-MM-DD"}]}`)
		n := h.node()
		n.ReportAgain(10*time.Millisecond, 10*time.Millisecond)
		h.model.Script(
			aitest.Behaviour{Text: `{"people":"4","outside":{"value":"Yes."},"day":"March 3rd, 2027","phone":null,"rating":"maybe ten",` +
				`"birthday":"in May"}`})
		c := n.start()
		leg := h.answered()
		leg.do(h, func(s *voice.Session) {
			for _, turn := range []parley.CallTurn{{Speaker: parley.SpeakerAssistant, Text: "Hello.", Language: "en"},
				{Speaker: parley.SpeakerCustomer, Text: "Una mesa para cuatro, fuera.", Language: "es"},
				{Speaker: parley.SpeakerAssistant, Text: "Con mucho gusto.", Language: "es"}} {
				s.Tell(voice.Event{Kind: voice.TurnEnded, Turn: turn})
			}
		})
		leg.hangUp(parley.CustomerHangup)
		c = h.reported(c.ID)
		if want := map[string]any{"people": 4.0, "outside": true, "day": "2027-03-03", "phone": nil, "rating": nil,
			"birthday": nil}; !maps.Equal(c.Variables, want) {
			t.Errorf("found %v", c.Variables)
		}
		notes := map[string]string{"phone": "The conversation doesn't say.", "rating": `The model answered "maybe ten", which is no number.`,
			"birthday": `The model answered "in May", which is no day that can be written as YYYY-MM-DD.`}
		if !maps.Equal(c.VariablesNotes, notes) {
			t.Errorf("the notes are %q", c.VariablesNotes)
		}
		if got := parley.TurnLanguages(c.Turns); got != "en, es, es" {
			t.Errorf("the turns are in %q", got)
		}
		events := h.events()
		told, _ := events[0]["extracted_variables_notes"].(map[string]any)
		said, _ := events[0]["turns"].([]any)[1].(map[string]any)
		if len(told) != 3 || told["rating"] != notes["rating"] || said["language"] != "es" {
			t.Errorf("the endpoint is told %v", events[0])
		}

		h.model.Usually(aitest.Behaviour{Status: 401, Message: "sk-secret is wrong"})
		c = h.reported(n.said().ID)
		if why := c.VariablesNotes["people"]; len(c.Variables) != 6 || len(c.VariablesNotes) != 6 || c.Variables["people"] != nil ||
			!strings.HasPrefix(why, "The conversation could not be read. The model failed: its provider refuses") ||
			strings.Contains(why, "secret") {
			t.Errorf("of a call that was not read: %v, %q", c.Variables, why)
		}
	})
}
