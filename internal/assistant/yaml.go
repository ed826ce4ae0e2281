package assistant

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/internal/manifest"
	"parley/internal/parley"
)

// ExportYAML is one of the user's assistants as a file of parley pull's, without secrets, its number and its webhooks, and
// what the file is called.
func (d *Studio) ExportYAML(ctx context.Context, userID, id int64) (text []byte, name string, err error) {
	a, err := d.DB.Assistant(ctx, userID, id)
	if err != nil {
		return nil, "", err
	}
	names, err := d.names(ctx, userID, a)
	if err != nil {
		return nil, "", err
	}
	tools := a.Tools
	a.Tools = slices.DeleteFunc(slices.Clone(tools), func(t parley.AssistantTool) bool {
		return t.AssistantID != nil && names("tools.assistant_id", *t.AssistantID) == "" // it was deleted
	})
	return manifest.WriteAssistant(a, names, "phone_number_id", "status", "is_webhook_active", "webhook_url", "inbound_webhook_url",
		"conversation_ended_webhook_url"), manifest.AssistantFile(a.Name), nil
}

// names tells what the ids of an assistant stand for.
func (d *Studio) names(ctx context.Context, userID int64, a *parley.Assistant) (func(field string, id int64) string, error) {
	cat, err := d.Choice(ctx, userID)
	if err != nil {
		return nil, err
	}
	known := map[string]map[int64]string{"knowledgebase_id": {}, "tool_ids": {}, "folder_id": {}, "label_ids": {}, "tools.assistant_id": {},
		"tools.outbound_phone_id": {}}
	bases, err := d.DB.Knowledgebases(ctx, userID)
	for _, k := range bases {
		known["knowledgebase_id"][k.ID] = k.Name
	}
	for _, t := range a.MidCallTools {
		known["tool_ids"][t.ID] = t.Name
	}
	if err != nil {
		return nil, err
	}
	all, err := d.DB.Assistants(ctx, userID, "")
	for _, o := range all {
		known["tools.assistant_id"][o.ID] = o.Name
	}
	if err != nil {
		return nil, err
	}
	numbers, err := d.DB.Numbers(ctx, userID)
	for _, n := range numbers {
		known["tools.outbound_phone_id"][n.ID] = n.PhoneNumber
	}
	if err != nil {
		return nil, err
	}
	for kind, field := range map[parley.GroupKind]string{parley.Folder: "folder_id", parley.Label: "label_ids"} {
		groups, err := d.DB.GroupsByName(ctx, userID, kind)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			known[field][g.ID] = g.Name
		}
	}
	return func(field string, id int64) string {
		switch field {
		case "voice_id", "fallback_voice_ids":
			if v := cat.Voice(id); v != nil {
				return voiceName(cat.Synthesizer, v)
			}
		case "language_id", "secondary_language_ids":
			if l := cat.Language(id); l != nil {
				return l.ISO2
			}
		case "llm_model_id", "multimodal_model_id", "fallback_llm_model_ids", "fallback_multimodal_model_ids":
			if m := cat.Model(id); m != nil {
				return m.Code
			}
		case "synthesizer_provider_id":
			if p := cat.Synthesizer(id); p != nil {
				return p.Code
			}
		case "transcriber_provider_id", "fallback_transcriber_provider_ids":
			if p := cat.Transcriber(id); p != nil {
				return p.Code
			}
		}
		return known[field][id]
	}, nil
}

// voiceName is a voice as files name it: by its provider and the provider's name of it.
func voiceName(synthesizer func(id int64) *parley.Provider, v *parley.Voice) string {
	vendor := v.Inside
	if v.SynthesizerProviderID != nil {
		if p := synthesizer(*v.SynthesizerProviderID); p != nil {
			vendor = p.Code
		}
	}
	return vendor + "/" + v.Code
}

// ImportYAML makes an assistant of a file of parley pull's, as Import does.
func (d *Studio) ImportYAML(ctx context.Context, userID int64, text []byte) (*parley.Assistant, []string, error) {
	body, concealed, err := manifest.ReadAssistant(text)
	if err != nil {
		return nil, nil, parley.Errorf(parley.Invalid, "This is not an assistant file: %s.",
			strings.TrimSuffix(strings.ReplaceAll(err.Error(), "\n", "; "), "."))
	}
	cat, err := d.Choice(ctx, userID)
	if err != nil {
		return nil, nil, err
	}
	f, left := fileOf(cat, body)
	for _, place := range concealed {
		if _, name, ok := strings.Cut(place, "variables."); ok {
			left = append(left, fmt.Sprintf("The variable %s: its value is a secret, which no file holds.", name))
		}
	}
	a, more, err := d.Import(ctx, userID, f)
	return a, append(left, more...), err
}

// fileOf is a file in the form that Import takes, and what of it has no place there.
func fileOf(cat *Choice, body map[string]any) (f *File, left []string) {
	text := func(name string) string {
		s, _ := body[name].(string)
		return s
	}
	f = &File{Format: fileFormat, LLMModel: text("llm_model"), MultimodalModel: text("multimodal_model"),
		Knowledgebase: text("knowledgebase"), Assistant: body}
	tools, _ := body["mid_call_tools"].([]any)
	for _, t := range tools {
		f.MidCallTools = append(f.MidCallTools, fmt.Sprint(t))
	}
	mode, id := text("mode"), func(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }
	language := int64(0)
	further := []any{}
	for _, l := range cat.Languages() {
		if l.ISO2 == text("language") {
			language = l.ID
		}
		if list, _ := body["secondary_languages"].([]any); slices.Contains(list, any(l.ISO2)) {
			further = append(further, id(l.ID))
		}
	}
	body["language_id"], body["secondary_language_ids"] = id(language), further
	body["voice_id"] = id(0)
	for _, v := range cat.Voices(mode, language) {
		if voiceName(cat.Synthesizer, &v) == text("voice") {
			body["voice_id"] = id(v.ID)
		}
	}
	for _, p := range cat.Synthesizers(language) {
		if p.Code == text("synthesizer_provider") {
			body["synthesizer_provider_id"] = id(p.ID)
		}
	}
	if want := text("transcriber_provider"); want != "" {
		list := cat.Transcribers(language)
		if i := slices.IndexFunc(list, func(p parley.Provider) bool { return p.Code == want }); i >= 0 {
			body["transcriber_provider_id"] = id(list[i].ID)
		} else {
			left = append(left, "The transcription provider: it is not available here, so the best for the language listens.")
		}
	}
	for name, what := range map[string]string{"phone_number": "it belongs to the server that the file came from",
		"webhook_url":                    "it belongs to the server that the file came from",
		"inbound_webhook_url":            "it belongs to the server that the file came from",
		"conversation_ended_webhook_url": "it belongs to the server that the file came from",
		"folder":                         "use parley push for it", "labels": "use parley push for them",
		"fallback_llm_models": "use parley push for them", "fallback_multimodal_models": "use parley push for them",
		"fallback_voices": "use parley push for them", "fallback_transcriber_providers": "use parley push for them"} {
		if list, many := body[name].([]any); body[name] != nil && (!many || len(list) > 0) {
			left = append(left, Label(name)+": "+what+".")
		}
		delete(body, name)
	}
	toolsOf(body, func(t map[string]any) bool {
		if t["outbound_phone"] != nil {
			left = append(left, "The number of a transfer: it belongs to the server that the file came from.")
			delete(t, "outbound_phone")
		}
		return true
	})
	slices.Sort(left)
	for _, name := range []string{"status", "is_webhook_active", "language", "secondary_languages", "voice", "llm_model", "multimodal_model",
		"synthesizer_provider", "transcriber_provider", "knowledgebase", "mid_call_tools"} {
		delete(body, name)
	}
	return f, left
}
