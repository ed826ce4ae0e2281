package call

import (
	"context"

	"parley/internal/ai"
	"parley/internal/assistant"
	"parley/internal/parley"
	"parley/internal/voice"
)

// persona prepares an assistant to speak and to hear. Errors tell its owner what is missing on this server.
func (d *Center) persona(a *parley.Assistant, o assistant.Occasion) (voice.Persona, error) {
	staged := d.Assistants.Stages.Find(o.Test)
	told := staged != nil && staged.Told
	find := d.Assistants.Speech
	if told {
		find = d.Assistants.SpeechTold
	}
	speech, err := find(a)
	if err != nil {
		return voice.Persona{}, err
	}
	ready, err := d.Assistants.Ready(a, o)
	if err != nil {
		return voice.Persona{}, err
	}
	ready.Warm()
	a = ready.Assistant
	p := voice.Persona{Assistant: a, Think: ready.Turn, Initial: ready.Initial, Reengagement: a.ReengagementPrompt,
		VoicemailMessage: a.VoiceMailMessage,
		Voice:            speech.Voice, Language: speech.Language,
		Summarize: func(ctx context.Context, transcript, instructions string) (string, error) {
			return ready.Summarize(ctx, transcript, instructions, speech.Language)
		}}
	vendors := d.vendors(a.UserID)
	if speech.Synthesizer != "" {
		if p.Synthesizer, err = d.Assistants.Speaker(speech, vendors.Synthesizer); err != nil {
			return voice.Persona{}, ai.TheVoice.Of(err)
		}
	}
	if p.Tongues, err = d.tongues(speech, a.Mode, p.Synthesizer, vendors.Synthesizer); err != nil {
		return voice.Persona{}, ai.TheVoice.Of(err)
	}
	if speech.Model != "" {
		p.Writes = a.Mode == "dualplex"
		p.Realtime, err = d.Assistants.Hearer(speech, vendors.Realtime)
		p.Decides = ai.Decides(p.Realtime)
		if p.Synthesizer == nil {
			p.Synthesizer = ai.Aloud{Model: p.Realtime}
		}
		if speech.Recognizer != "" {
			p.Recognizer, _ = vendors.Recognizer(speech.Recognizer) // the call is held without it
		}
		return p, ai.TheModel.Of(err)
	}
	if told {
		p.Recognizer = staged.Recognizer()
		return p, nil
	}
	p.Recognizer, err = d.Assistants.Listener(speech, vendors.Recognizer)
	return p, ai.TheRecognizer.Of(err)
}

// tongues opens the voices of an assistant's languages; own is that of its first. A model that speaks has one for all.
func (d *Center) tongues(speech assistant.Speech, mode string, own ai.Synthesizer,
	open func(string) (ai.Synthesizer, error)) (list []voice.Tongue, err error) {
	for _, t := range speech.Tongues {
		one := voice.Tongue{Language: t.Language, Name: t.Name, Voice: t.Voice, Synthesizer: own}
		if t.Language != speech.Language && mode != "multimodal" {
			if one.Synthesizer, err = d.Assistants.Speaker(d.Assistants.In(speech, t), open); err != nil {
				return nil, err
			}
		}
		list = append(list, one)
	}
	return list, nil
}
