package call

import (
	"fmt"

	"parley"
	"parley/internal/ai"
	"parley/internal/assistant"
	"parley/internal/voice"
)

// persona readies an assistant to speak and to hear. Errors are for the log, and say what is missing on this server.
func (d *Desk) persona(a *parley.Assistant, o assistant.Occasion) (voice.Persona, error) {
	missing := func(format string, args ...any) (voice.Persona, error) {
		return voice.Persona{}, fmt.Errorf(format, args...)
	}
	if a.Mode != "pipeline" {
		return missing("calls in %s mode can't be held yet: set the assistant's mode to pipeline", a.Mode)
	}
	ready, err := d.Assistants.Ready(a, o)
	if err != nil {
		return voice.Persona{}, err
	}
	cat := d.Assistants.Catalog
	language, v := cat.Language(a.LanguageID), cat.Voice(a.VoiceID)
	if language == nil || v == nil || v.SynthesizerProviderID == nil {
		return missing("there is no language %d or no voice %d that speaks by itself", a.LanguageID, a.VoiceID)
	}
	speaks := cat.Synthesizer(*v.SynthesizerProviderID)
	if speaks == nil {
		return missing("there is no synthesizer %d", *v.SynthesizerProviderID)
	}
	hears := language.Default.Transcriber
	if id := a.TranscriberProviderID; id != nil {
		if p := cat.Transcriber(*id); p != nil {
			hears = p.Code
		}
	}
	if hears == "" {
		return missing("nobody on this server understands %s: configure a transcriber that does", language.Name)
	}
	p := voice.Persona{Assistant: a, Think: ready.Turn, Initial: ready.Initial, Reengagement: parley.Render(a.ReengagementPrompt, ready.Variables),
		VoicemailMessage: parley.Render(a.VoiceMailMessage, ready.Variables), Voice: v.Code, Language: language.ISO2}
	if p.Synthesizer, err = d.Speech.Synthesizer(speaks.Code); err != nil {
		return voice.Persona{}, ai.TheVoice.Of(err)
	}
	p.Recognizer, err = d.Speech.Recognizer(hears)
	return p, ai.TheRecognizer.Of(err)
}
