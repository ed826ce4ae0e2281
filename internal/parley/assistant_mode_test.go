package parley_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/internal/parley"
)

// Every text of an assistant is rendered, and the assistant itself stays as it is.
func TestRendered(t *testing.T) {
	const text = "Hi {{who}}."
	a := &parley.Assistant{SystemPrompt: text, InitialMessage: text, ReengagementPrompt: text,
		VoiceMailMessage: text, Keywords: []string{text, "{{nobody}}"},
		FillerConfig: parley.FillerConfig{Neutral: []string{text}, Negative: []string{text},
			Positive: []string{text}, Question: []string{text, "{{nobody}}"}},
		Tools: []parley.AssistantTool{{Type: "assistant_transfer", Description: text,
			WarmTransferMessage: text, MessageBeforeTransfer: text}},
		MidCallTools:       []parley.Tool{{Name: "look_up", Description: text, Filler: text, SecondFill: text}},
		PostCallSchema:     []parley.ExtractedItem{{Name: "status", Description: text}},
		PostCallJSONSchema: parley.JSONSchema(`{"properties":{"status":{"enum":["{{who}}",1.50],"description":"` + text + `"}}}`)}
	got := a.Rendered(map[string]string{"who": "Ana"})
	const said = "Hi Ana."
	want := *a
	want.SystemPrompt, want.InitialMessage, want.ReengagementPrompt, want.VoiceMailMessage, want.Keywords = said,
		said, said, said, []string{said}
	want.FillerConfig = parley.FillerConfig{Neutral: []string{said}, Negative: []string{said},
		Positive: []string{said}, Question: []string{said}}
	want.Tools = []parley.AssistantTool{{Type: "assistant_transfer", Description: said, WarmTransferMessage: said,
		MessageBeforeTransfer: said}}
	want.MidCallTools = []parley.Tool{{Name: "look_up", Description: said, Filler: said, SecondFill: said}}
	want.PostCallJSONSchema = parley.JSONSchema(`{"properties":{"status":{"description":"Hi Ana.","enum":["{{who}}",1.50]}}}`)
	want.PostCallSchema = []parley.ExtractedItem{{Name: "status", Description: said}}
	if !reflect.DeepEqual(got, &want) {
		t.Errorf("%+v", got)
	}
	if a.Tools[0].Description != text || a.FillerConfig.Question[0] != text ||
		a.MidCallTools[0].Description != text || a.PostCallSchema[0].Description != text || a.Keywords[0] != text {
		t.Errorf("the assistant was changed: %+v", a)
	}
	if strings.Contains(got.SystemPrompt, "{{") {
		t.Error(got.SystemPrompt)
	}
}

// A change of mode resets the fields that the new mode does not have to their defaults, and leaves fields that were
// sent for Check to judge.
func TestAdapt(t *testing.T) {
	id := func(n int64) *int64 { return &n }
	odd := func(id int64) bool { return id%2 == 1 }
	old := parley.Assistant{Mode: "pipeline", KnowledgebaseMode: "prompt", TranscriberProviderID: id(3),
		SynthesizerProviderID: id(4), Fillers: true, AllowInterruptions: false, LLMModelID: id(5),
		FallbackLLMModelIDs: []int64{6}, FallbackVoiceIDs: []int64{7}, FallbackTranscriberProviderIDs: []int64{8, 9}}
	a := old
	a.Mode = "multimodal"
	a.Adapt(&old, odd)
	if a.KnowledgebaseMode != "function_call" || a.TranscriberProviderID != nil || a.SynthesizerProviderID != nil ||
		bool(a.Fillers) || !a.AllowInterruptions || a.LLMModelID == nil {
		t.Errorf("%+v", a)
	}
	if len(a.FallbackLLMModelIDs) != 1 || len(a.FallbackVoiceIDs)+len(a.FallbackTranscriberProviderIDs) != 0 {
		t.Errorf("%+v", a)
	}
	a = old
	a.Mode, a.TranscriberProviderID = "dualplex", id(9) // sent with the change
	if a.Adapt(&old, odd); a.TranscriberProviderID == nil || *a.TranscriberProviderID != 9 {
		t.Errorf("what was sent is lost: %+v", a)
	}
	back := parley.Assistant{Mode: "multimodal", MultimodalModelID: id(7), AllowInterruptions: true}
	a = back
	a.Mode = "pipeline"
	if a.Adapt(&back, odd); a.MultimodalModelID != nil {
		t.Errorf("%+v", a)
	}
	a = old
	if a.Adapt(&old, odd); !reflect.DeepEqual(a, old) {
		t.Errorf("without a change of mode: %+v", a)
	}
	a = old
	a.LanguageID = 2
	if a.Adapt(&old, odd); len(a.FallbackVoiceIDs) != 0 || !slices.Equal(a.FallbackTranscriberProviderIDs, []int64{9}) ||
		a.TranscriberProviderID == nil || len(a.FallbackLLMModelIDs) != 1 {
		t.Errorf("in another language: %+v", a)
	}
	a = old
	a.LanguageID, a.FallbackVoiceIDs = 2, []int64{3}
	if a.Adapt(&old, func(int64) bool { return false }); a.TranscriberProviderID != nil ||
		len(a.FallbackTranscriberProviderIDs) != 0 || len(a.FallbackVoiceIDs) != 1 {
		t.Errorf("in a language that nobody understands: %+v", a)
	}
	a = back
	a.FallbackMultimodalModelIDs = []int64{1}
	was := a
	a.Mode = "dualplex"
	if a.Adapt(&was, odd); len(a.FallbackMultimodalModelIDs) != 0 {
		t.Errorf("models of another mode: %+v", a)
	}
}
