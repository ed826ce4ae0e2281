package parley

import (
	"reflect"
	"slices"
	"strconv"
)

// Rendered is the assistant with its variables in all its texts. It shares nothing that it changes.
func (a *Assistant) Rendered(vars map[string]string) *Assistant {
	out := *a
	for _, text := range []*string{&out.SystemPrompt, &out.InitialMessage, &out.ReengagementPrompt,
		&out.VoiceMailMessage} {
		*text = Render(*text, vars)
	}
	all := func(texts []string) []string {
		var list []string
		for _, text := range texts {
			if text = Render(text, vars); text != "" {
				list = append(list, text)
			}
		}
		return list
	}
	c := &out.FillerConfig
	c.Neutral, c.Negative, c.Positive, c.Question = all(c.Neutral), all(c.Negative), all(c.Positive), all(c.Question)
	out.Keywords = all(a.Keywords)
	out.Tools = append([]AssistantTool(nil), a.Tools...)
	for i := range out.Tools {
		for _, text := range out.Tools[i].texts() {
			*text = Render(*text, vars)
		}
	}
	out.MidCallTools = append([]Tool(nil), a.MidCallTools...)
	for i := range out.MidCallTools {
		t := &out.MidCallTools[i]
		t.Description, t.Filler, t.SecondFill = Render(t.Description, vars), Render(t.Filler, vars), Render(t.SecondFill, vars)
	}
	out.PostCallSchema = append([]ExtractedItem(nil), a.PostCallSchema...)
	for i := range out.PostCallSchema {
		out.PostCallSchema[i].Description = Render(out.PostCallSchema[i].Description, vars)
	}
	out.PostCallJSONSchema = a.PostCallJSONSchema.Rendered(vars)
	return &out
}

// texts are what of a tool is said, or told to the model.
func (t *AssistantTool) texts() []*string {
	return []*string{&t.Description, &t.WarmTransferMessage, &t.MessageBeforeTransfer, &t.HoldMessage,
		&t.SummaryInstructions, &t.BriefingInitialMessage, &t.ConnectedMessage}
}

// Adapt sets fields that a newly chosen mode or language does not have to their defaults, where the change left them as
// they were in old: what somebody sends for them is judged as ever. understands says whether a transcriber understands
// the language.
func (a *Assistant) Adapt(old *Assistant, understands func(transcriber int64) bool) {
	none := []int64{}
	if a.LanguageID != old.LanguageID {
		reset(&a.SecondaryLanguageIDs, old.SecondaryLanguageIDs,
			slices.DeleteFunc(slices.Clone(old.SecondaryLanguageIDs), func(id int64) bool { return id == a.LanguageID }))
		reset(&a.FallbackVoiceIDs, old.FallbackVoiceIDs, none)
		if id := a.TranscriberProviderID; id != nil && !understands(*id) {
			reset(&a.TranscriberProviderID, old.TranscriberProviderID, nil)
		}
		reset(&a.FallbackTranscriberProviderIDs, old.FallbackTranscriberProviderIDs,
			slices.DeleteFunc(slices.Clone(old.FallbackTranscriberProviderIDs), func(id int64) bool { return !understands(id) }))
	}
	if a.Mode == old.Mode {
		return
	}
	reset(&a.FallbackMultimodalModelIDs, old.FallbackMultimodalModelIDs, none)
	if a.Mode == "multimodal" || old.Mode == "multimodal" {
		reset(&a.FallbackVoiceIDs, old.FallbackVoiceIDs, none)
	}
	reset(&a.SynthesizerProviderID, old.SynthesizerProviderID, nil)
	if a.Mode == "pipeline" {
		reset(&a.MultimodalModelID, old.MultimodalModelID, nil)
		return
	}
	reset(&a.KnowledgebaseMode, old.KnowledgebaseMode, "function_call")
	reset(&a.LLMEndpointID, old.LLMEndpointID, nil)
	reset(&a.VoiceEndpointID, old.VoiceEndpointID, nil)
	reset(&a.TranscriberEndpointID, old.TranscriberEndpointID, nil)
	reset(&a.TranscriberProviderID, old.TranscriberProviderID, nil)
	reset(&a.FallbackTranscriberProviderIDs, old.FallbackTranscriberProviderIDs, none)
	reset(&a.AllowInterruptions, old.AllowInterruptions, true)
	reset(&a.Fillers, old.Fillers, false)
	reset(&a.Backchannels, old.Backchannels, false)
}

func reset[T any](field *T, old, to T) {
	if reflect.DeepEqual(*field, old) {
		*field = to
	}
}

// checkFallback judges the lists of what takes over as the fields that they are for.
func (a *Assistant) checkFallback(facts FallbackFacts, selected func(string), bad func(string, string, ...any)) {
	for i, id := range a.FallbackLLMModelIDs {
		if facts.LLMs[id] == nil {
			selected("fallback_llm_model_ids." + strconv.Itoa(i))
		}
	}
	for i, id := range a.FallbackMultimodalModelIDs {
		name := "fallback_multimodal_model_ids." + strconv.Itoa(i)
		switch m := facts.Multimodals[id]; {
		case m == nil:
			selected(name)
		case a.Mode != "" && a.Mode != "pipeline" && string(m.Kind) != a.Mode:
			bad(name, "must name a %s model.", a.Mode)
		}
	}
	for i, id := range a.FallbackVoiceIDs {
		name := "fallback_voice_ids." + strconv.Itoa(i)
		switch v := facts.Voices[id]; {
		case v == nil:
			selected(name)
		case v.LanguageID != a.LanguageID:
			bad(name, "must name a voice that speaks the assistant's language.")
		case a.Mode != "" && !slices.Contains(v.Modes, a.Mode):
			bad(name, "must name a voice that serves %s mode.", a.Mode)
		}
	}
	if len(a.FallbackTranscriberProviderIDs) > 0 && a.Mode != "" && a.Mode != "pipeline" {
		bad("fallback_transcriber_provider_ids", "may be set in pipeline mode only.")
	}
	for i, id := range a.FallbackTranscriberProviderIDs {
		if !facts.Transcribers[id] {
			selected("fallback_transcriber_provider_ids." + strconv.Itoa(i))
		}
	}
}
