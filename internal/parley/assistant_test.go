package parley_test

import (
	"slices"
	"testing"

	"parley/internal/parley"
)

func ptr[T any](v T) *T { return &v }

// valid returns an assistant that passes Check, and the facts about its ids.
func valid() (parley.Assistant, parley.AssistantFacts) {
	a := parley.Assistant{ID: 7, VoiceID: 1, LanguageID: 2, Type: "inbound", Mode: "pipeline",
		LLMModelID: ptr(int64(3)), AllowInterruptions: true}
	f := parley.AssistantFacts{Language: &parley.Language{ID: 2}, LLM: &parley.Model{ID: 3, Kind: parley.LLM},
		Voice: &parley.Voice{ID: 1, LanguageID: 2, SynthesizerProviderID: ptr(int64(4)),
			Modes: []string{"pipeline", "dualplex"}}}
	return a, f
}

func TestAssistantCheck(t *testing.T) {
	tool := func(tools ...parley.AssistantTool) func(*parley.Assistant, *parley.AssistantFacts) {
		return func(a *parley.Assistant, _ *parley.AssistantFacts) { a.Tools = tools }
	}
	for _, c := range []struct {
		name   string
		change func(*parley.Assistant, *parley.AssistantFacts)
		want   []string
	}{
		{"valid", func(*parley.Assistant, *parley.AssistantFacts) {}, nil},
		{"no language", func(_ *parley.Assistant, f *parley.AssistantFacts) { f.Language = nil },
			[]string{"language_id"}},
		{"no voice", func(_ *parley.Assistant, f *parley.AssistantFacts) { f.Voice = nil }, []string{"voice_id"}},
		{"voice of another language", func(_ *parley.Assistant,
			f *parley.AssistantFacts) {
			f.Voice.LanguageID = 9
		}, []string{"voice_id"}},
		{"voice of another mode", func(_ *parley.Assistant,
			f *parley.AssistantFacts) {
			f.Voice.Modes = []string{"multimodal"}
		}, []string{"voice_id"}},
		{"its voice's provider", func(a *parley.Assistant,
			_ *parley.AssistantFacts) {
			a.SynthesizerProviderID = ptr(int64(4))
		}, nil},
		{"another provider", func(a *parley.Assistant,
			_ *parley.AssistantFacts) {
			a.SynthesizerProviderID = ptr(int64(5))
		}, []string{"synthesizer_provider_id"}},
		{"a provider of a voice without", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.SynthesizerProviderID, f.Voice.SynthesizerProviderID = ptr(int64(4)), nil
		}, []string{"synthesizer_provider_id"}},
		{"no model", func(a *parley.Assistant, _ *parley.AssistantFacts) { a.LLMModelID = nil },
			[]string{"llm_model_id"}},
		{"unknown model", func(_ *parley.Assistant, f *parley.AssistantFacts) { f.LLM = nil },
			[]string{"llm_model_id"}},
		{"dualplex without a model", func(a *parley.Assistant, _ *parley.AssistantFacts) { a.Mode = "dualplex" },
			[]string{"multimodal_model_id"}},
		{"dualplex with a multimodal model", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.Mode, a.MultimodalModelID, f.Multimodal = "dualplex", ptr(int64(5)),
				&parley.Model{Kind: parley.Multimodal}
		}, []string{"multimodal_model_id"}},
		{"pipeline keeps a multimodal model", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.MultimodalModelID, f.Multimodal = ptr(int64(5)), &parley.Model{Kind: parley.Multimodal}
		}, nil},
		{"not pipeline", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.Mode, a.MultimodalModelID, f.Multimodal = "dualplex", ptr(int64(5)), &parley.Model{Kind: parley.Dualplex}
			a.KnowledgebaseMode, a.AllowInterruptions, a.Fillers = "prompt", false, true
			a.TranscriberProviderID, f.Transcriber = ptr(int64(6)), &parley.Provider{ID: 6}
		}, []string{"knowledgebase_mode", "transcriber_provider_id", "allow_interruptions", "fillers"}},
		{"unknown transcriber", func(a *parley.Assistant,
			_ *parley.AssistantFacts) {
			a.TranscriberProviderID = ptr(int64(6))
		}, []string{"transcriber_provider_id"}},
		{"what takes over", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.FallbackLLMModelIDs, a.FallbackMultimodalModelIDs = []int64{1, 2}, []int64{3, 4}
			a.FallbackVoiceIDs, a.FallbackTranscriberProviderIDs = []int64{5, 6, 7}, []int64{8, 9}
			f.Fallback = parley.FallbackFacts{LLMs: map[int64]*parley.Model{1: {}}, Multimodals: map[int64]*parley.Model{4: {}},
				Voices: map[int64]*parley.Voice{5: {LanguageID: 2, Modes: []string{"pipeline"}}, 6: {LanguageID: 3},
					7: {LanguageID: 2, Modes: []string{"multimodal"}}}, Transcribers: map[int64]bool{9: true}}
		}, []string{"fallback_llm_model_ids.1", "fallback_multimodal_model_ids.0", "fallback_voice_ids.1",
			"fallback_voice_ids.2", "fallback_transcriber_provider_ids.0"}},
		{"what takes over in another mode", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.Mode, a.MultimodalModelID, f.Multimodal = "dualplex", ptr(int64(5)), &parley.Model{Kind: parley.Dualplex}
			a.FallbackMultimodalModelIDs, a.FallbackTranscriberProviderIDs = []int64{3, 4}, []int64{9}
			f.Fallback = parley.FallbackFacts{Multimodals: map[int64]*parley.Model{3: {Kind: parley.Multimodal},
				4: {Kind: parley.Dualplex}}, Transcribers: map[int64]bool{9: true}}
		}, []string{"fallback_multimodal_model_ids.0", "fallback_transcriber_provider_ids"}},
		{"a voice of another vendor's model", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.Mode, a.MultimodalModelID = "multimodal", ptr(int64(5))
			f.Multimodal = &parley.Model{Kind: parley.Multimodal, Provider: "acme"}
			f.Voice = &parley.Voice{LanguageID: 2, Inside: "other", Modes: []string{"multimodal"}}
		}, []string{"voice_id"}},
		{"a voice of the model's vendor", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.Mode, a.MultimodalModelID = "multimodal", ptr(int64(5))
			f.Multimodal = &parley.Model{Kind: parley.Multimodal, Provider: "acme"}
			f.Voice = &parley.Voice{LanguageID: 2, Inside: "acme", Modes: []string{"multimodal"}}
		}, nil},
		{"unknown number", func(a *parley.Assistant, _ *parley.AssistantFacts) { a.PhoneNumberID = ptr(int64(1)) },
			[]string{"phone_number_id"}},
		{"caller id", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.PhoneNumberID, f.Number = ptr(int64(1)), &parley.Number{Type: parley.NumberCallerID}
		}, []string{"phone_number_id"}},
		{"caller id, outbound", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.Type, a.PhoneNumberID, f.Number = "outbound", ptr(int64(1)), &parley.Number{Type: parley.NumberCallerID}
		}, nil},
		{"taken number", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.PhoneNumberID, f.Number, f.NumberTaken = ptr(int64(1)), &parley.Number{Type: parley.NumberSIP}, true
		}, []string{"phone_number_id"}},
		{"taken number, outbound", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.Type, a.PhoneNumberID, f.Number, f.NumberTaken = "outbound", ptr(int64(1)), &parley.Number{}, true
		}, nil},
		{"foreign knowledgebase", func(a *parley.Assistant,
			_ *parley.AssistantFacts) {
			a.KnowledgebaseID = ptr(int64(1))
		}, []string{"knowledgebase_id"}},
		{"foreign tools", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.ToolIDs, f.Tools = []int64{1, 2, 3}, map[int64]bool{2: true}
		}, []string{"tool_ids.0", "tool_ids.2"}},
		{"webhook without URL", func(a *parley.Assistant, _ *parley.AssistantFacts) { a.IsWebhookActive = true },
			[]string{"webhook_url"}},
		{"same name twice", func(a *parley.Assistant, _ *parley.AssistantFacts) {
			a.PostCallSchema = []parley.ExtractedItem{{Name: "abc"}, {Name: "abd"}, {Name: "abc"}}
		}, []string{"post_call_schema.2.name"}},
		{"built-in tools", tool(parley.AssistantTool{Type: "end_call"}, parley.AssistantTool{Type: "dtmf_input"},
			parley.AssistantTool{Type: "collect_keypad", StopKey: "#"}), nil},
		{"same tool twice", tool(parley.AssistantTool{Type: "end_call"}, parley.AssistantTool{Type: "end_call"}),
			[]string{"tools.1.type"}},
		{"transfer to nowhere", tool(parley.AssistantTool{Type: "call_transfer"}), []string{"tools.0.phone_number"}},
		{"transfer to no number", tool(parley.AssistantTool{Type: "call_transfer", PhoneNumber: "1"}),
			[]string{"tools.0.phone_number"}},
		{"stop key", tool(parley.AssistantTool{Type: "collect_keypad", StopKey: "5"}), []string{"tools.0.stop_key"}},
		{"transfer to itself", func(a *parley.Assistant, f *parley.AssistantFacts) {
			a.Tools, f.Assistants = []parley.AssistantTool{{Type: "assistant_transfer", AssistantID: &a.ID}},
				map[int64]bool{7: true}
		}, []string{"tools.0.assistant_id"}},
		{"transfer to a foreign one", tool(parley.AssistantTool{Type: "assistant_transfer",
			AssistantID: ptr(int64(8))}), []string{"tools.0.assistant_id"}},
		{"warm transfers", tool(parley.AssistantTool{Type: "warm_call_transfer", SupervisorPhone: "204"},
			parley.AssistantTool{Type: "warm_call_transfer", SupervisorPhone: "+4930901820"}), nil},
		{"warm transfer to nowhere", tool(parley.AssistantTool{Type: "warm_call_transfer", PhoneNumber: "+4930901820"}),
			[]string{"tools.0.supervisor_phone"}},
		{"warm transfer over a foreign number", tool(parley.AssistantTool{Type: "warm_call_transfer",
			SupervisorPhone: "204", OutboundPhoneID: ptr(int64(3))}), []string{"tools.0.outbound_phone_id"}},
		{"transfer to nobody", tool(parley.AssistantTool{Type: "assistant_transfer"}),
			[]string{"tools.0.assistant_id"}},
	} {
		a, facts := valid()
		c.change(&a, &facts)
		var f parley.Fields
		a.Check(facts, &f)
		var got []string
		for _, field := range f {
			got = append(got, field.Name)
			if len(field.Messages) != 1 {
				t.Errorf("%s: %s fails for %q", c.name, field.Name, field.Messages)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v fail, want %v", c.name, got, c.want)
		}
	}
}

// A field that failed its own rule is not checked again.
func TestAssistantCheckLeavesFailedFieldsAlone(t *testing.T) {
	a := parley.Assistant{Mode: "dualplex", IsWebhookActive: true, Fillers: true, ToolIDs: []int64{1},
		PhoneNumberID: ptr(int64(1)), KnowledgebaseMode: "prompt"}
	var f parley.Fields
	for _, name := range []string{"voice_id", "language_id", "multimodal_model_id", "webhook_url", "fillers",
		"tool_ids.0", "phone_number_id", "knowledgebase_mode", "allow_interruptions"} {
		f.Add(name, "is wrong.")
	}
	n := len(f)
	a.Check(parley.AssistantFacts{}, &f)
	if len(f) != n || f.Err().Error() != "The voice_id field is wrong. (and 8 more errors)" {
		t.Errorf("%v", f)
	}
}

func TestAssistantCheckCompletesTools(t *testing.T) {
	a, facts := valid()
	a.Tools = []parley.AssistantTool{{Type: "collect_keypad"}, {Type: "call_transfer", PhoneNumber: "0049 30 901820"},
		{Type: "warm_call_transfer", SupervisorPhone: "0049 30 901820", OutboundPhoneID: ptr(int64(4))}}
	facts.Numbers = map[int64]bool{4: true}
	var f parley.Fields
	if a.Check(facts, &f); f.Err() != nil || *a.Tools[0].Timeout != 5 || a.Tools[0].StopKey != "#" ||
		a.Tools[1].PhoneNumber != "+4930901820" {
		t.Errorf("%+v: %v", a.Tools, f.Err())
	}
	if w := a.Tools[2]; w.SupervisorPhone != "+4930901820" || w.CallerIDMode != "outbound_number" ||
		w.HoldMusic != "hold_music" || *w.HoldMusicVolume != 80 {
		t.Errorf("%+v", w)
	}
	yes := true
	warm := (&parley.AssistantTool{Type: "call_transfer", PhoneNumber: "204", WarmTransfer: &yes,
		WarmTransferMessage: "One moment."}).Warm()
	if warm == nil || warm.SupervisorPhone != "204" || warm.HoldMessage != "One moment." || *warm.HoldMusicVolume != 80 {
		t.Errorf("%+v", warm)
	}
	if a.Tools[1].Warm() != nil || a.Tools[2].Warm() == nil {
		t.Error("which transfers are warm?")
	}
}

func TestToolCheck(t *testing.T) {
	for _, name := range parley.BuiltinTools {
		var f parley.Fields
		if (&parley.Tool{Name: name}).Check(&f); !f.Has("name") {
			t.Errorf("a tool may be called %s", name)
		}
	}
	var f parley.Fields
	tool := parley.Tool{Name: "look_up", Endpoint: "https://example.com", Schema: []parley.ToolParam{{Name: "aa"}, {Name: "Aa"}, {Name: "aa"},
		{Name: ""}, {Name: ""}}}
	if tool.Check(&f); len(f) != 1 || !f.Has("schema.2.name") {
		t.Errorf("%v", f)
	}
}
