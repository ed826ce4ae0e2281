package call_test

import (
	"context"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/assistant"
	"parley/internal/audio"
	"parley/internal/call"
	"parley/internal/catalog"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/store"
	"parley/internal/voice"
)

// spare adds a model that takes over when the assistant's own fails.
func (h *harness) spare() {
	h.Helper()
	cat := catalog.New("", provider.All(openai.Declare(&openai.Settings{APIKey: "k",
		ChatModel: []string{"thinker", "spare"}})))
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.KeepModels(ctx, cat.Models()) })
	rows, err := h.db.Models(h.Context())
	h.must(err)
	h.must(cat.SetModels(rows))
	h.assistants.Catalog, h.assistants.Fallback.Models = cat, []string{"openai/spare"}
	h.must(h.assistants.Fallback.Check(cat))
}

// When a model fails in a call the next one takes over, and the call's record says so.
func TestModelFallsBack(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.spare()
		h.model.Models = []string{"spare"}
		dollar := parley.USD
		h.prices.Vendors["openai"] = parley.VendorPrice{Output: &dollar}
		var reply string
		n := h.node(func(c *call.Config) {
			c.Converse = func(ctx context.Context, s *voice.Session, l audio.Leg) voice.Result {
				for range 2 { // the second time the failure is known
					got, err := s.Persona.Think([]ai.Message{{Role: ai.User, Text: "hello"}}, nil).Run(ctx)
					h.must(err)
					reply = got.Text
				}
				return voice.Result{Reason: parley.AssistantHangup}
			}
		})
		c := h.reported(n.start().ID)
		if reply == "" || c.Status != parley.CallCompleted {
			t.Errorf("said %q: %+v", reply, c)
		}
		if u := c.VendorUses; len(u) != 1 || u[0].Part != "model" || u[0].Vendor != "openai" || u[0].Model != "spare" ||
			u[0].TokensIn == 0 || u[0].TokensOut == 0 || u[0].Cost == nil || *u[0].Cost != parley.Money(u[0].TokensOut) {
			t.Errorf("uses %+v", u)
		}
		want := parley.VendorSwitch{Part: "model", From: "openai/thinker", To: "openai/spare",
			Reason: "configuration"}
		if len(c.VendorSwitches) != 1 {
			t.Fatalf("switches %+v", c.VendorSwitches)
		}
		if got := c.VendorSwitches[0]; got.AtMS < 0 || (parley.VendorSwitch{Part: got.Part, From: got.From, To: got.To,
			Reason: got.Reason}) != want {
			t.Errorf("noted %+v, want %+v", got, want)
		}
	})
}

// An assistant's own fallback lists replace the server's.
func TestOwnListsGoFirst(t *testing.T) {
	h := lite(t)
	h.spare()
	h.model.Models = []string{"thinker"}
	h.assistants.Fallback.Voices, h.assistants.Fallback.Transcribers = []string{"espeak"}, []string{"openai"}
	models := h.assistants.Catalog.ModelsOf(parley.LLM)
	local, spare := models[len(models)-1].ID, models[1].ID
	voices := h.assistants.Catalog.Voices("pipeline", h.a.LanguageID)
	other := voices[len(voices)-1]
	h.change(h.a, `{"fallback_llm_model_ids":[%d,%d],"fallback_voice_ids":[%d],"fallback_transcriber_provider_ids":[3]}`,
		local, spare, other.ID)
	a, err := h.db.Assistant(t.Context(), h.user.ID, h.a.ID)
	h.must(err)
	asked := map[string]bool{}
	s, err := h.assistants.Speech(a)
	h.must(err)
	_, err = h.assistants.Speaker(s, func(code string) (ai.Synthesizer, error) { asked[code] = true; return &aitest.Synthesizer{}, nil })
	h.must(err)
	_, err = h.assistants.Listener(s, func(code string) (ai.Recognizer, error) { asked[code] = true; return &aitest.Recognizer{}, nil })
	h.must(err)
	if code := h.assistants.Catalog.Synthesizer(*other.SynthesizerProviderID).Code; !asked[code] || asked["openai"] ||
		!asked["pocketsphinx"] {
		t.Errorf("%s was to speak, and pocketsphinx to listen: %v were opened", code, asked)
	}
	h.model.Models = []string{"spare"} // the assistant's own model is gone
	ready, err := h.assistants.Ready(a, assistant.Occasion{})
	h.must(err)
	tally := new(ai.Tally)
	_, err = ready.Turn([]ai.Message{{Role: ai.User, Text: "hello"}}, nil).Run(ai.Tallied(t.Context(), tally))
	h.must(err)
	if who := tally.Acting(ai.TheModel, "openai/thinker"); who != "local/local" {
		t.Errorf("%s went on", who)
	}
}

// A fallback list with an unknown entry is refused when the server starts.
func TestFallbackIsChecked(t *testing.T) {
	h := lite(t)
	f := &assistant.Fallback{Models: []string{"openai/thinker"}}
	h.must(f.Check(h.assistants.Catalog))
	f.Models = append(f.Models, "openai/none")
	if err := f.Check(h.assistants.Catalog); err == nil {
		t.Error("a model that is not there is no mistake")
	}
}

// When a voice fails in a call, a voice of the next provider takes over, and so with speech recognition.
func TestSpeechFallsBack(t *testing.T) {
	h := lite(t)
	f := &h.assistants.Fallback
	f.Voices, f.Transcribers = []string{"espeak", "flite"}, []string{"openai"}
	own := &aitest.Synthesizer{}
	own.Usually(aitest.Saying{Err: aitest.ErrVoice})
	other := &aitest.Synthesizer{}
	n := h.node(func(c *call.Config) {
		c.Converse = nil
		c.Speech = several{"flite": own, "espeak": other}
		c.Dial = func(ctx context.Context, r call.Route, ringing func()) (audio.Leg, error) {
			ringing()
			return &ticking{150}, nil
		}
	})
	h.change(h.a, `{"initial_message":"Good morning."}`)
	c := h.reported(n.start().ID)
	if c.Status != parley.CallCompleted || len(c.Turns) != 1 || c.Turns[0].Text != "Good morning." {
		t.Errorf("%+v", c)
	}
	if s := c.VendorSwitches; len(s) != 1 || s[0].Part != "voice" || s[0].Reason != "unreachable" {
		t.Errorf("switches %+v", s)
	}
	for _, s := range other.Said() {
		if s.Voice == "" {
			t.Errorf("said in no voice: %+v", s)
		}
	}
}

// several are synthesizers by their codes.
type several map[string]ai.Synthesizer

func (s several) Synthesizer(code string) (ai.Synthesizer, error) {
	if v := s[code]; v != nil {
		return v, nil
	}
	return nil, ai.NotConfigured("synthesizer", code, "nothing can be done")
}

func (several) Recognizer(string) (ai.Recognizer, error) { return &aitest.Recognizer{}, nil }

// Realtime implements call.Speech: none of them hears and speaks.
func (several) Realtime(_, model string) (ai.RealtimeModel, error) {
	return nil, ai.NotConfigured("realtime model", model, "it is not")
}
