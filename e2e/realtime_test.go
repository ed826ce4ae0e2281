package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/provider/gemini/geminitest"
)

// inMode returns a line whose assistant holds its calls in a mode.
func inMode(t *testing.T, mode string, fields map[string]any, env ...string) (*line, *vendor) {
	t.Helper()
	l, v := speaking(t, append([]string{"PARLEY_OPENAI_REALTIME_MODEL=" + aitest.RealtimeModel,
		"PARLEY_OPENAI_REALTIME_STT_MODEL=" + aitest.TranscriptionModel}, env...)...)
	var answer struct{ Warnings []string }
	if status := l.call(t, "PUT", fmt.Sprintf("/user/assistant/%d", l.Assistant), modeFields(t, l, mode, fields),
		&answer); status != http.StatusOK || len(answer.Warnings) > 0 {
		t.Fatalf("answered %d: %+v", status, answer)
	}
	return l, v
}

// modeFields returns the fields of an assistant in a mode, with further ones.
func modeFields(t *testing.T, l *line, mode string, fields map[string]any) map[string]any {
	t.Helper()
	all := map[string]any{"mode": mode, "initial_message": welcome, "post_call_evaluation": false, "record": false}
	if mode != "pipeline" {
		var models, voices []struct{ ID int64 }
		l.call(t, "GET", "/user/assistants/models?type="+mode, nil, &models)
		l.call(t, "GET", "/user/assistants/voices?language_id=1&mode="+mode, nil, &voices)
		if len(models) == 0 || len(voices) == 0 {
			t.Fatalf("models %v, voices %v", models, voices)
		}
		all["multimodal_model_id"], all["voice_id"] = models[0].ID, voices[0].ID
	}
	for k, f := range fields {
		all[k] = f
	}
	return all
}

// When the vendor's speech model has the realtime model's voice, the speech model speaks the greeting, and it is heard
// at once.
func TestRealtimeGreets(t *testing.T) {
	share(t, call)
	l, v := inMode(t, "multimodal", nil)
	c := l.greeted(t, l.phone)
	v.hears("I would like a table.")
	v.ScriptRealtime(aitest.Behaviour{Text: "For how many people?"})
	asks(t, c)
	v.awaits(t, c, "For how many people?")
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	l.over(t).expect(t, parley.CallCompleted, parley.CustomerHangup)
	if list := v.Speeches(); len(list) != 1 || list[0].Input != welcome {
		t.Errorf("its speech model was asked for %+v", list)
	}
	if list := v.Complaints(); len(list) > 0 {
		t.Errorf("the server complained of %v", list)
	}
}

// When no speech model has its voice, the realtime model reads its greeting out while the telephone rings, once for
// all calls.
func TestRealtimeGreetsItself(t *testing.T) {
	share(t, call)
	l, v := inMode(t, "multimodal", nil, "PARLEY_OPENAI_TTS_MODEL=")
	v.SessionDelay = 400 * time.Millisecond
	for i := range 2 {
		c := l.ring(t, l.phone)
		first := hears(t, c, c.Answered)
		v.awaits(t, c, welcome)
		silent(t, c, 400*time.Millisecond)
		took := first.Sub(c.Answered)
		t.Logf("call %d is greeted %v after it is answered", i+1, took.Round(time.Millisecond))
		if took > 250*time.Millisecond {
			t.Errorf("the greeting began after %v", took)
		}
		v.hears("I would like a table.")
		v.ScriptRealtime(aitest.Behaviour{Text: "For how many people?"})
		asks(t, c)
		v.awaits(t, c, "For how many people?")
		if err := c.Hangup(); err != nil {
			t.Error(err)
		}
		row := l.over(t)
		row.expect(t, parley.CallCompleted, parley.CustomerHangup)
		if want := "AI: " + welcome + "\nCustomer: I would like a table."; !strings.HasPrefix(row.Transcript, want) {
			t.Error(row.Transcript)
		}
	}
	if n := len(v.Conversations()); n != 3 { // one that reads the greeting, and one for each call
		t.Errorf("there were %d sessions", n)
	}
	if list := v.Complaints(); len(list) > 0 {
		t.Errorf("the server complained of %v", list)
	}
}

// When a realtime model breaks off and can't be opened again, the next one takes over and knows what was said. The
// record says so, and what each of them used.
func TestRealtimeFailsOver(t *testing.T) {
	t.Parallel()
	for _, m := range modes[1:] {
		t.Run(m.name, func(t *testing.T) {
			share(t, call)
			l, v := inMode(t, m.mode, nil,
				"PARLEY_OPENAI_REALTIME_MODEL="+aitest.RealtimeModel+","+aitest.SpareRealtimeModel,
				"PARLEY_FALLBACK_MODELS=openai/"+aitest.SpareRealtimeModel)
			c := l.greeted(t, l.phone)
			v.hears("Good morning.", "What do you have?")
			v.ScriptRealtime(aitest.Behaviour{Text: "How can I help?"}, aitest.Behaviour{Text: long, Fault: aitest.Reset, After: 8},
				aitest.Behaviour{Status: http.StatusServiceUnavailable}, aitest.Behaviour{Text: "And so it goes on."})
			asks(t, c)
			v.awaits(t, c, "How can I help?")
			silent(t, c, 300*time.Millisecond)
			asks(t, c)
			v.awaits(t, c, "And so it goes on.")
			silent(t, c, 300*time.Millisecond)
			if err := c.Hangup(); err != nil {
				t.Error(err)
			}
			row := l.over(t)
			row.expect(t, parley.CallCompleted, parley.CustomerHangup)
			if !strings.Contains(row.Transcript, "And so it goes on.") {
				t.Error(row.Transcript)
			}
			want := parley.VendorSwitch{Part: "model", From: "openai/" + aitest.RealtimeModel,
				To: "openai/" + aitest.SpareRealtimeModel, Reason: "overloaded"}
			if list := l.switched(t, row.ID); len(list) != 1 || list[0] != want {
				t.Errorf("switches %+v", list)
			}
			var full struct {
				Uses []parley.VendorUse `json:"vendor_uses"`
			}
			l.call(t, "GET", fmt.Sprintf("/user/calls/%d", row.ID), nil, &full)
			used := map[string]parley.VendorUse{}
			for _, u := range full.Uses {
				used[u.Part+" "+u.Model] = u
			}
			for _, model := range []string{aitest.RealtimeModel, aitest.SpareRealtimeModel} {
				if u := used["model "+model]; u.Vendor != "openai" || u.TokensIn == 0 || u.AudioTokensIn == 0 ||
					u.TokensOut == 0 || (u.AudioTokensOut > 0) != (m.mode == "multimodal") {
					t.Errorf("of %s was used %+v", model, u)
				}
			}
			if u := used["recognizer "+aitest.TranscriptionModel]; u.AudioTokensIn == 0 {
				t.Errorf("of the transcription was used %+v", u)
			}
			conversations := v.Conversations()
			last := conversations[len(conversations)-1]
			if last.Model != aitest.SpareRealtimeModel || len(last.Items) == 0 || !slices.ContainsFunc(last.Items,
				func(i aitest.RealtimeItem) bool { return i.Role == "assistant" && i.Text == "How can I help?" }) {
				t.Errorf("%s knows %+v", last.Model, last.Items)
			}
		})
	}
}

// Google's model takes over from OpenAI's in the middle of a reply, and later OpenAI's from Google's: each knows what
// was said with the other, and is heard in its own voice.
func TestRealtimeChangesVendor(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"multimodal", "dualplex"} {
		t.Run(mode, func(t *testing.T) {
			share(t, call)
			g := geminitest.New(t)
			l, v := speaking(t, "PARLEY_OPENAI_REALTIME_MODEL="+aitest.RealtimeModel,
				"PARLEY_OPENAI_REALTIME_STT_MODEL="+aitest.TranscriptionModel,
				"PARLEY_GEMINI_API_KEY="+geminitest.Key, "PARLEY_GEMINI_BASE_URL="+g.URL,
				"PARLEY_GEMINI_LIVE_MODEL="+geminitest.Live, "PARLEY_FALLBACK_MODELS=gemini/"+geminitest.Live)
			if mode == "multimodal" {
				v.Voice = g.Voice // both voices are recognized by it
			}
			var models, voices []struct {
				ID   int64
				Name string
			}
			l.call(t, "GET", "/user/assistants/models?type="+mode, nil, &models)
			l.call(t, "GET", "/user/assistants/voices?language_id=1&mode="+mode, nil, &voices)
			fields := map[string]any{}
			for _, m := range models {
				if m.Name == aitest.RealtimeModel {
					fields["multimodal_model_id"] = m.ID
				}
			}
			for _, o := range voices {
				if mode == "multimodal" && !strings.HasSuffix(o.Name, "(Gemini)") {
					fields["voice_id"] = o.ID
				}
			}
			l.change(t, modeFields(t, l, mode, fields))
			c := l.greeted(t, l.phone)
			live := l.listen(t, l.talks(t)[0].ID)
			v.hears("Good morning.", "What do you have?")
			g.ScriptTranscripts(aitest.Behaviour{Text: "And what else?"})
			v.ScriptRealtime(aitest.Behaviour{Text: "How can I help?"}, aitest.Behaviour{Text: long, Fault: aitest.Reset, After: 8},
				aitest.Behaviour{Status: http.StatusServiceUnavailable})
			g.ScriptRealtime(aitest.Behaviour{Text: "And so it goes on."})
			asks(t, c)
			v.awaits(t, c, "How can I help?")
			silent(t, c, 300*time.Millisecond)
			began := hears(t, c, asks(t, c).To())
			v.awaits(t, c, "And so it goes on.")
			silent(t, c, 300*time.Millisecond)
			t.Logf("from one vendor to the other there was a gap of %v", gap(c, began).Round(time.Millisecond))

			g.ScriptRealtime(aitest.Behaviour{Text: long, Fault: aitest.Reset, After: 8},
				aitest.Behaviour{Status: http.StatusServiceUnavailable})
			v.ScriptRealtime(aitest.Behaviour{Text: "Back again."})
			began = hears(t, c, asks(t, c).To())
			v.awaits(t, c, "Back again.")
			silent(t, c, 300*time.Millisecond)
			t.Logf("and back %v", gap(c, began).Round(time.Millisecond))
			if err := c.Hangup(); err != nil {
				t.Error(err)
			}
			row := l.over(t)
			row.expect(t, parley.CallCompleted, parley.CustomerHangup)
			openai, google := "openai/"+aitest.RealtimeModel, "gemini/"+geminitest.Live
			var switches []string
			for _, s := range l.switched(t, row.ID) {
				switches = append(switches, s.Part+" "+s.From+" "+s.To)
			}
			if want := []string{"model " + openai + " " + google, "model " + google + " " + openai}; !slices.Equal(switches, want) {
				t.Errorf("switches %q", switches)
			}
			for _, to := range []string{google, openai} { // live, as it happened
				hear(t, live, "event: switch")
				hear(t, live, `"to":"`+to+`"`)
			}
			for _, text := range []string{"Customer: What do you have?", "And so it goes on.", "Customer: And what else?", "Back again."} {
				if !strings.Contains(row.Transcript, text) {
					t.Errorf("%q is missing in the transcript:\n%s", text, row.Transcript)
				}
			}
			knows := func(who string, list []aitest.RealtimeConversation, texts ...string) {
				last := list[len(list)-1]
				for _, text := range texts {
					if !slices.ContainsFunc(last.Items, func(i aitest.RealtimeItem) bool { return strings.Contains(i.Text, text) }) {
						t.Errorf("%s does not know %q: %+v", who, text, last.Items)
					}
				}
			}
			knows(google, g.Conversations(), "Good morning.", "How can I help?", "And so it goes on.")
			knows(openai, v.Conversations(), "How can I help?", "What do you have?", "And so it goes on.", "And what else?")
			if list := append(v.Complaints(), g.Complaints()...); len(list) > 0 {
				t.Errorf("the servers complained of %v", list)
			}
		})
	}
}

// A model that can't be reached ends the call, and its owner is told why.
func TestRealtimeGone(t *testing.T) {
	share(t, call)
	l, v := inMode(t, "multimodal", nil)
	for range 8 {
		v.ScriptRealtime(aitest.Behaviour{Status: http.StatusServiceUnavailable})
	}
	l.ring(t, l.phone)
	row := l.over(t)
	row.expect(t, parley.CallFailed, parley.ProviderFailure)
	var full struct {
		Detail string `json:"ended_detail"`
	}
	l.call(t, "GET", fmt.Sprintf("/user/calls/%d", row.ID), nil, &full)
	if !strings.Contains(full.Detail, "overloaded") {
		t.Errorf("%q", full.Detail)
	}
	if said := row.said("assistant"); len(said) != 1 || !strings.HasPrefix(said[0], welcome) || said[0] == welcome {
		t.Errorf("the caller was told %q", said)
	}
}
