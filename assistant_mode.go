package parley

import "reflect"

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
		out.MidCallTools[i].Description = Render(out.MidCallTools[i].Description, vars)
	}
	out.PostCallSchema = append([]ExtractedItem(nil), a.PostCallSchema...)
	for i := range out.PostCallSchema {
		out.PostCallSchema[i].Description = Render(out.PostCallSchema[i].Description, vars)
	}
	return &out
}

// texts are what of a tool is said, or told to the model.
func (t *AssistantTool) texts() []*string {
	return []*string{&t.Description, &t.WarmTransferMessage, &t.MessageBeforeTransfer, &t.HoldMessage,
		&t.SummaryInstructions, &t.BriefingInitialMessage, &t.ConnectedMessage}
}

// Adapt sets fields that a newly chosen mode does not have to their defaults, where the change left them as they were
// in old: what somebody sends for them is judged as ever.
func (a *Assistant) Adapt(old *Assistant) {
	if a.Mode == old.Mode {
		return
	}
	reset(&a.SynthesizerProviderID, old.SynthesizerProviderID, nil)
	if a.Mode == "pipeline" {
		reset(&a.MultimodalModelID, old.MultimodalModelID, nil)
		return
	}
	reset(&a.KnowledgebaseMode, old.KnowledgebaseMode, "function_call")
	reset(&a.TranscriberProviderID, old.TranscriberProviderID, nil)
	reset(&a.AllowInterruptions, old.AllowInterruptions, true)
	reset(&a.Fillers, old.Fillers, false)
}

func reset[T any](field *T, old, to T) {
	if reflect.DeepEqual(*field, old) {
		*field = to
	}
}
