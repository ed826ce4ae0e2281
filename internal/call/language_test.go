package call_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/call"
	"parley/internal/catalog"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/elevenlabs"
	"parley/internal/provider/openai"
	"parley/internal/store"
	"parley/internal/voice"
)

// An assistant with further languages gets a voice for each, and a recognizer that tells them apart; where its recognizer can't, it
// keeps to its own language, and its owner is told.
func TestLanguages(t *testing.T) {
	h := lite(t)
	spoken := h.assistants.Catalog.Voice(h.a.VoiceID)
	cat := catalog.New("", provider.All(openai.Declare(&openai.Settings{APIKey: "k", ChatModel: []string{"thinker"},
		RealtimeModel: []string{"hearer"}}),
		deepgram.Declare(&deepgram.Settings{APIKey: "k"}), elevenlabs.Declare(&elevenlabs.Settings{APIKey: "k"})))
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.KeepModels(ctx, cat.Models()) })
	rows, err := h.db.Models(t.Context())
	h.must(err)
	h.must(cat.SetModels(rows))
	h.assistants.Catalog = cat
	spanish, danish := language(cat, "es"), language(cat, "da")
	sarah := cat.Voices("pipeline", 1)[slices.IndexFunc(cat.Voices("pipeline", 1), func(v parley.Voice) bool { return v.Name == "Sarah" })]
	kinds := map[string]int64{}
	for _, m := range cat.ModelsOf("") {
		kinds[string(m.Kind)] = m.ID
	}
	inside := cat.Voices("multimodal", 1)[0]
	var got *voice.Session
	n := h.node(func(c *call.Config) {
		c.Speech = hearing{several{"elevenlabs": &aitest.Synthesizer{}, "deepgram": &aitest.Synthesizer{}, "flite": &aitest.Synthesizer{},
			"espeak": &aitest.Synthesizer{}}}
		c.Converse = func(_ context.Context, s *voice.Session, _ audio.Leg) voice.Result {
			got = s
			return voice.Result{Reason: parley.AssistantHangup}
		}
	})
	for _, c := range []struct {
		name       string
		mode       string
		voice      int64
		recognizer int64
		others     []int64
		want       string // language and voice of each
		warning    string
	}{
		{"one", "pipeline", sarah.ID, 6, nil, "", ""},
		{"the same voice", "pipeline", sarah.ID, 6, []int64{spanish, danish}, "en Sarah, es Sarah, da Sarah", ""},
		{"a voice of another vendor", "pipeline", spoken.ID, 6, []int64{danish}, "en " + spoken.Name + ", da George", ""},
		{"an ear that can't tell", "pipeline", sarah.ID, 3, []int64{spanish}, "", "can't tell these languages apart"},
		{"a model that hears and writes", "dualplex", spoken.ID, 0, []int64{danish}, "en " + spoken.Name + ", da George", ""},
		{"a model that hears and speaks", "multimodal", inside.ID, 0, []int64{danish}, "en " + inside.Name + ", da " + inside.Name, ""},
	} {
		h.change(h.a, `{"voice_id":%d,"synthesizer_provider_id":null,"transcriber_provider_id":%s,"secondary_language_ids":%s,
			"mode":%q,"multimodal_model_id":%s}`, c.voice, orNull(c.recognizer), ids(c.others), c.mode, orNull(kinds[c.mode]))
		got = nil
		h.reported(n.start().ID)
		if got == nil {
			t.Fatalf("%s: no call", c.name)
		}
		var list []string
		for _, tongue := range got.Persona.Tongues {
			name := tongue.Voice
			for _, v := range slices.Concat(cat.Voices("multimodal", 1), cat.Voices("pipeline", language(cat, tongue.Language))) {
				if v.Code == tongue.Voice {
					name = v.Name
				}
			}
			list = append(list, tongue.Language+" "+name)
		}
		if s := strings.Join(list, ", "); s != c.want {
			t.Errorf("%s: %s, not %s", c.name, s, c.want)
		}
		a, err := h.db.Assistant(t.Context(), h.user.ID, h.a.ID)
		h.must(err)
		if w := strings.Join(h.assistants.Warnings(a), " "); strings.Contains(w, "apart") != (c.warning != "") ||
			!strings.Contains(w, c.warning) {
			t.Errorf("%s: warned %q", c.name, w)
		}
	}
}

// hearing are voices beside a model that hears.
type hearing struct{ several }

// Realtime implements call.Speech.
func (hearing) Realtime(string, string) (ai.RealtimeModel, error) { return deaf{}, nil }

// deaf is a realtime model that nobody talks to.
type deaf struct{}

// Connect implements ai.RealtimeModel.
func (deaf) Connect(context.Context, ai.RealtimeSetup) (ai.RealtimeSession, error) {
	return nil, ai.NotConfigured("realtime model", "deaf", "it is not")
}

func language(c *catalog.Catalog, iso string) int64 {
	for _, l := range c.Languages() {
		if l.ISO2 == iso {
			return l.ID
		}
	}
	return 0
}

func orNull(id int64) string {
	if id == 0 {
		return "null"
	}
	return strconv.FormatInt(id, 10)
}

func ids(list []int64) string {
	raw, _ := json.Marshal(slices.Concat([]int64{}, list)) // numbers can't fail
	return string(raw)
}
