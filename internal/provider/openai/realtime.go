package openai

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"parley/internal/ai"
	"parley/internal/provider/realtime"
)

// RealtimeModel is one of the server's models that hear and speak, over a WebSocket. hears is the model that
// transcribes what it heard.
func (c *Client) RealtimeModel(code, hears string) ai.RealtimeModel {
	return realtimeModel{c, code, hears}
}

type realtimeModel struct {
	client      *Client
	code, hears string
}

// Connect implements ai.RealtimeModel.
func (m realtimeModel) Connect(ctx context.Context, setup ai.RealtimeSetup) (ai.RealtimeSession, error) {
	return realtime.Model{Base: m.client.rest.Base, Sign: m.client.rest.Sign, Code: m.code, Dialect: realtime.Dialect{
		Vendor: Code, RecognizerModel: m.hears, Text: "output_text", Aloud: aside, Terms: m.terms,
		Language: func(setup ai.RealtimeSetup, codes []string) string { return oneOf(setup.Language, setup.Others, codes) },
	}}.Connect(ctx, setup)
}

// terms is the configuration of a session.
func (m realtimeModel) terms(setup ai.RealtimeSetup, tools []any) map[string]any {
	input := map[string]any{"format": realtime.Format(setup.Rate), "turn_detection": nil}
	if !setup.Reads { // it hears nothing
		input["transcription"] = m.transcription(setup)
	}
	sound := map[string]any{"input": input}
	modality := "text"
	if !setup.Writes {
		modality = "audio"
		output := map[string]any{"format": realtime.Format(setup.Rate), "voice": setup.Voice}
		if setup.Speed > 0 {
			output["speed"] = min(max(setup.Speed, 0.25), 1.5)
		}
		sound["output"] = output
	}
	terms := map[string]any{"type": "realtime", "instructions": setup.System, "output_modalities": []string{modality},
		"audio": sound, "tools": tools, "tool_choice": "auto",
		// Old turns are dropped in large steps, so that the rest stays in the server's cache.
		"truncation": map[string]any{"type": "retention_ratio", "retention_ratio": 0.8}}
	if setup.Reads && reasoner.MatchString(m.code) { // there is nothing to think about
		terms["reasoning"] = map[string]any{"effort": "minimal"}
	}
	return terms
}

// reasoner matches the realtime models that reason; others refuse a session that says how much.
var reasoner = regexp.MustCompile(`^gpt-realtime-[2-9](\.\d+)?(-\D|$)`)

// transcription is the configuration of the model that writes down what is heard. A field that it doesn't take would
// refuse the whole session.
func (m realtimeModel) transcription(setup ai.RealtimeSetup) map[string]any {
	hears := map[string]any{"model": m.hears}
	lists := takesHints(m.hears)
	switch {
	case lists && setup.Language != "":
		hears["languages"] = append([]string{setup.Language}, setup.Others...)
	case len(setup.Others) == 0 && setup.Language != "":
		hears["language"] = setup.Language
	}
	switch words := terms(setup.Keywords); {
	case len(words) == 0:
	case lists:
		hears["keywords"] = words
	default:
		hears["prompt"] = strings.Join(words, ", ")
	}
	return hears
}

// aside is an out-of-band response that says a text: within the conversation, the model might say more than the text.
func aside(n int, text string) map[string]any {
	return map[string]any{"type": "response.create",
		"response": map[string]any{"metadata": map[string]string{"n": strconv.Itoa(n)}, "conversation": "none",
			"tools": []any{}, "tool_choice": "none",
			"instructions": verbatim, "input": []any{map[string]any{"type": "message", "role": "user",
				"content": []any{map[string]any{"type": "input_text", "text": text}}}}}}
}

// verbatim is the instruction to read a text aloud.
const verbatim = "You are a voice that reads out. Say the text of the message exactly as it is written, word for word, " +
	"in its own language: add nothing, leave nothing out, and answer nothing that it asks."
