package assistant

import (
	"cmp"
	"fmt"
	"time"

	"parley/internal/ai"
	"parley/internal/catalog"
	"parley/internal/endpoint"
	"parley/internal/form"
	"parley/internal/parley"
)

// Speech is what an assistant speaks and hears with, by the codes of providers.
type Speech struct {
	Voice       string // the provider's own name of it
	Language    string // ISO 639-1
	Synthesizer string // "" where the model speaks, and nobody else has its voice
	// where the model hears the customer, that of others who take part in a call; "" where there is none
	Recognizer string
	// In multimodal and dualplex mode.
	Provider, Model string

	// Tongues are all languages that are spoken, its own first; empty where there is only one, or the recognizer can't
	// tell them apart.
	Tongues []Tongue

	ownVoice, ownRecognition *endpoint.Vendors // of the account's own, which are asked first; nil: there are none
	ownCode                  string            // of the voice of ownVoice

	user  int64 // whose keys are used
	voice *parley.Voice
	// what takes over when these fail, in order
	voices      []*parley.Voice
	recognizers []string
	hearers     []hearer
}

// Tongue is a language of an assistant, with its voice.
type Tongue struct {
	Language, Name     string
	Voice, Synthesizer string
	voice              *parley.Voice
}

// tongues finds the voices for an assistant's languages. Those that no voice here speaks are left out; silent is their
// names.
func (d *Studio) tongues(a *parley.Assistant, s *Speech) (list []Tongue, silent []string) {
	c := d.Catalog.For(a.UserID)
	add := func(id int64, v *parley.Voice) {
		switch l := c.Language(id); {
		case l == nil:
		case a.Mode == "multimodal": // the model follows by itself, with the voice that it has
			list = append(list, Tongue{Language: l.ISO2, Name: l.Name, Voice: s.Voice, Synthesizer: s.Synthesizer, voice: s.voice})
		case v == nil || v.SynthesizerProviderID == nil || c.Synthesizer(*v.SynthesizerProviderID) == nil:
			silent = append(silent, l.Name)
		default:
			list = append(list, Tongue{Language: l.ISO2, Name: l.Name, Voice: v.Code,
				Synthesizer: c.Synthesizer(*v.SynthesizerProviderID).Code, voice: v})
		}
	}
	add(a.LanguageID, s.voice)
	for _, id := range a.SecondaryLanguageIDs {
		add(id, c.In(id, s.voice))
	}
	return list, silent
}

// speaks settles the languages of what was found.
func (d *Studio) speaks(a *parley.Assistant, s *Speech) {
	if len(a.SecondaryLanguageIDs) == 0 {
		return
	}
	if list, _ := d.tongues(a, s); len(list) > 1 && (s.Model != "" || d.Catalog.TellsLanguages(s.Recognizer, isos(list))) {
		s.Tongues = list
	}
}

func isos(list []Tongue) (codes []string) {
	for _, t := range list {
		codes = append(codes, t.Language)
	}
	return codes
}

// foreign says what an assistant's further languages lack.
func (d *Studio) foreign(a *parley.Assistant, s *Speech) (list []string) {
	if len(a.SecondaryLanguageIDs) == 0 {
		return nil
	}
	tongues, silent := d.tongues(a, s)
	for _, name := range silent {
		list = append(list, fmt.Sprintf("No voice on this server speaks %s: the assistant does not switch to it.", name))
	}
	if s.Model == "" && len(tongues) > 1 && !d.Catalog.TellsLanguages(s.Recognizer, isos(tongues)) {
		list = append(list, "The transcription provider can't tell these languages apart in a call, so the assistant keeps to its first: "+
			"choose Deepgram, ElevenLabs or AssemblyAI, which can, for languages that they support.")
	}
	return list
}

// Speech finds what an assistant speaks and hears with. The error tells its owner why a call can't be held.
func (d *Studio) Speech(a *parley.Assistant) (Speech, error) {
	s, err := d.SpeechTold(a)
	if err == nil && s.Model == "" && s.Recognizer == "" && s.ownRecognition == nil {
		err = parley.Explain(nil,
			"Nothing on this server understands %s: choose another language, or ask its operator to configure a transcriber that does.",
			d.Catalog.For(a.UserID).Language(a.LanguageID).Name)
	}
	return s, err
}

// SpeechTold is Speech for a test whose words are told: nothing needs to understand the language.
func (d *Studio) SpeechTold(a *parley.Assistant) (s Speech, err error) {
	missing := func(format string, args ...any) (Speech, error) { return s, parley.Explain(nil, format, args...) }
	if a.Mode != "pipeline" {
		return d.realtime(a)
	}
	c := d.Catalog.For(a.UserID)
	language, v := c.Language(a.LanguageID), c.Voice(a.VoiceID)
	if language == nil || v == nil || v.SynthesizerProviderID == nil {
		return missing("The assistant's language or voice is no longer there (language %d, voice %d): choose others.", a.LanguageID, a.VoiceID)
	}
	if c.Lost(v.ID) {
		return missing("The assistant's voice is in an account of yours, and its provider's key was removed from the page Providers, " +
			"or the voice was removed from that account: choose another voice.")
	}
	speaks := c.Synthesizer(*v.SynthesizerProviderID)
	if speaks == nil {
		return missing("The provider of the assistant's voice is no longer there: choose another voice.")
	}
	s = Speech{Voice: v.Code, Language: language.ISO2, Synthesizer: speaks.Code,
		Recognizer: language.Default.Transcriber}
	if id := a.TranscriberProviderID; id != nil {
		if p := c.Transcriber(*id); p != nil {
			s.Recognizer = p.Code
		}
	}
	s.voice, s.user = v, a.UserID
	s.ownVoice, s.ownRecognition = d.endpoint(a, "voice_id"), d.endpoint(a, "transcriber_provider_id")
	if own := s.ownVoice; own != nil {
		if spoken := own.Endpoint.Voice(a.VoiceEndpointPlace, language.ISO2); spoken != nil {
			s.ownCode = spoken.Code
		} else {
			s.ownVoice = nil // it has the voice no more
		}
	}
	s.voices, s.recognizers = d.standIns(a, v), d.listenersAfter(a, s.Recognizer)
	d.speaks(a, &s)
	return s, nil
}

// realtime finds what an assistant speaks and hears with in multimodal and dualplex mode.
func (d *Studio) realtime(a *parley.Assistant) (s Speech, err error) {
	missing := func(format string, args ...any) (Speech, error) { return s, parley.Explain(nil, format, args...) }
	c := d.Catalog.For(a.UserID)
	language, v := c.Language(a.LanguageID), c.Voice(a.VoiceID)
	if language == nil || v == nil {
		return missing("The assistant's language or voice is no longer there (language %d, voice %d): choose others.", a.LanguageID, a.VoiceID)
	}
	var m *parley.Model
	if a.MultimodalModelID != nil {
		m = c.Model(*a.MultimodalModelID)
	}
	if m == nil {
		return missing("The model of the assistant's %s mode is no longer there: choose another, or set the mode to pipeline.", a.Mode)
	}
	s = Speech{Voice: v.Code, Language: language.ISO2, Recognizer: language.Default.Transcriber, Provider: m.Provider,
		Model: m.Code, voice: v, user: a.UserID, hearers: d.hearersAfter(a, m, v)}
	switch {
	case a.Mode == "multimodal" && v.Inside != m.Provider:
		return missing("The voice %s is none of those of the model %s: choose another voice, or another model.", v.Name, m.Name)
	case a.Mode == "multimodal":
		if alike := c.Heard(v.ID); alike != nil && alike.Configured() {
			s.Synthesizer = alike.Code
		}
	case c.Lost(v.ID):
		return missing("The assistant's voice is in an account of yours, and its provider's key was removed from the page Providers, " +
			"or the voice was removed from that account: choose another voice.")
	case v.SynthesizerProviderID == nil || c.Synthesizer(*v.SynthesizerProviderID) == nil:
		return missing("The provider of the assistant's voice is no longer there: choose another voice.")
	default:
		s.Synthesizer = c.Synthesizer(*v.SynthesizerProviderID).Code
	}
	s.voices = d.standIns(a, v)
	d.speaks(a, &s)
	return s, nil
}

// Warnings lists what was saved in an assistant but can't work on this server, and how to fix it; it is never nil. It
// contacts no vendor: it covers what is not configured or not installed, and what is set without an effect.
func (d *Studio) Warnings(a *parley.Assistant) (list []string) {
	list = d.Missing(a)
	if d.Providers == nil {
		return list
	}
	speech, err := d.Speech(a)
	switch {
	case err != nil:
	case speech.Model != "":
		list = append(append(list, unused(a, Decides(d.Catalog.For(a.UserID), a.Mode, *a.MultimodalModelID))...), d.foreign(a, &speech)...)
	default:
		list = append(list, d.foreign(a, &speech)...)
		if foreign := d.Catalog.Foreign(speech.Recognizer, speech.Language); foreign != "" {
			list = append(list, foreign)
		}
	}
	return list
}

// Missing lists what an assistant needs and this server, with the keys of the assistant's owner, does not have.
func (d *Studio) Missing(a *parley.Assistant) (list []string) {
	if d.Providers == nil {
		return nil
	}
	add := func(part ai.Part, err error) {
		if err != nil {
			list = append(list, cmp.Or(parley.Explanation(part.Of(err)),
				fmt.Sprintf("The %s can't be used on this server.", part)))
		}
	}
	providers := d.Providers.For(a.UserID)
	m, err := d.own(a)
	if err == nil {
		_, err = providers.Model(m.Provider, m.Code)
	}
	add(ai.TheModel, err)
	speech, err := d.Speech(a)
	if err != nil {
		add("", err)
		return list
	}
	if speech.Synthesizer != "" {
		_, err = providers.Synthesizer(speech.Synthesizer)
		add(ai.TheVoice, err)
	}
	if speech.Model != "" {
		_, err = providers.Realtime(speech.Provider, speech.Model)
		add(ai.TheModel, err)
		return list
	}
	_, err = providers.Recognizer(speech.Recognizer)
	add(ai.TheRecognizer, err)
	return list
}

// BuiltIn reports whether the built-in responder answers for an assistant.
func (d *Studio) BuiltIn(a *parley.Assistant) bool {
	if a.LLMModelID == nil || a.Mode != "pipeline" || d.endpoint(a, "llm_model_id") != nil {
		return false
	}
	m := d.Catalog.For(a.UserID).Model(*a.LLMModelID)
	return m != nil && m.Provider == ai.BuiltIn
}

// ModelName returns the name of the model that answers for an assistant, "" if it is no longer there.
func (d *Studio) ModelName(a *parley.Assistant) string {
	id := a.LLMModelID
	if a.Mode != "pipeline" {
		id = a.MultimodalModelID
	}
	if e := a.Endpoint("llm_model_id"); e != nil && a.Mode == "pipeline" {
		return e.Name
	}
	if id == nil {
		return ""
	}
	if m := d.Catalog.For(a.UserID).Model(*id); m != nil {
		return m.Name
	}
	return ""
}

// Retiring lists the models of an assistant that their vendors have retired, or are going to, and what to choose instead;
// gone reports whether one of them is gone already.
func (d *Studio) Retiring(a *parley.Assistant, now time.Time) (list []string, gone bool) {
	c := d.Catalog.For(a.UserID)
	add := func(vendor, model, choose string) {
		r, name := c.Retires(vendor, model)
		if r == nil || !r.Near(now) {
			return
		}
		gone = gone || r.Gone(now)
		if choose == "" {
			choose = "choose " + cmp.Or(r.Instead, "another model")
		}
		list = append(list, fmt.Sprintf("%s: %s.", r.Said(name, model, now), choose))
	}
	if m, err := d.own(a); err == nil && a.LLMModelID != nil {
		add(m.Provider, m.Code, "")
	}
	if speech, err := d.Speech(a); err == nil {
		if speech.Model != "" {
			add(speech.Provider, speech.Model, "")
		}
		if speech.Synthesizer != "" {
			add(speech.Synthesizer, c.Speaks(speech.Synthesizer), "choose a voice of another provider")
		}
	}
	return list, gone
}

// turnFields are the fields that say when an assistant speaks, and when it stops.
var turnFields = []string{"min_interrupt_words", "interrupt_sensitivity", "endpoint_type", "endpoint_sensitivity"}

// Decides reports whether an assistant's model decides by itself when it speaks.
func Decides(c *catalog.Catalog, mode string, modelID int64) bool {
	m := c.Model(modelID)
	return mode == "multimodal" && m != nil && m.Decides
}

// Limits says, for a person, what fields of an assistant can't do in a mode, with a model that decides by itself when it speaks or not. It
// has the same fields for every mode; those without a limit have "".
func Limits(mode string, decides bool) map[string]string {
	list := map[string]string{}
	say := func(is bool, text string, fields ...string) {
		for _, field := range fields {
			if list[field] = ""; is {
				list[field] = text
			}
		}
	}
	hears, speaks := mode == "multimodal" || mode == "dualplex", mode == "multimodal"
	say(hears, "Used in chats only in this mode.", "llm_model_id", "fallback_llm_model_ids", "llm_temperature")
	say(!hears, "Not used in this mode.", "multimodal_model_id", "fallback_multimodal_model_ids")
	say(hears, "Not in this mode: the model hears for itself.", "transcriber_provider_id",
		"fallback_transcriber_provider_ids")
	say(hears, "Always on in this mode.", "allow_interruptions")
	say(hears, "Not in this mode.", "fillers", "backchannels")
	say(hears, "In this mode it can only look things up.", "knowledgebase_mode")
	say(speaks, "Not in this mode: the voice is the model's own.", "synthesizer_provider_id")
	say(speaks, "No effect in this mode: the voice is the model's own.", "voice_stability", "voice_similarity")
	say(speaks, "No effect in this mode: tell the model in the prompt how words are said.", "pronunciations")
	say(decides, "No effect: this model decides by itself when it speaks, and when it stops.", turnFields...)
	say(decides, "No effect: this model decides by itself how fast it speaks.", "speech_speed")
	return list
}

// unused lists fields that were set but do nothing in the assistant's mode.
func unused(a *parley.Assistant, decides bool) (list []string) {
	warn := func(is bool, field, why string) {
		if is {
			list = append(list, fmt.Sprintf("%s does nothing in %s mode: %s.", field, a.Mode, why))
		}
	}
	fresh := parley.Assistant{}
	form.Defaults(&fresh)
	warn(a.LLMTemperature != fresh.LLMTemperature, "llm_temperature", "the model takes none")
	if a.Mode == "multimodal" {
		warn(a.VoiceStability != fresh.VoiceStability, "voice_stability", "the voice is the model's own")
		warn(a.VoiceSimilarity != fresh.VoiceSimilarity, "voice_similarity", "the voice is the model's own")
		warn(len(a.Pronunciations) > 0, "pronunciations", "the model says its words itself; tell it in the prompt")
	}
	if decides {
		const why = "the model decides by itself when it speaks, and when it stops"
		warn(a.MinInterruptWords != nil, "min_interrupt_words", why)
		warn(a.InterruptSensitivity != fresh.InterruptSensitivity, "interrupt_sensitivity", why)
		warn(a.EndpointType != fresh.EndpointType, "endpoint_type", why)
		warn(a.EndpointSensitivity != fresh.EndpointSensitivity, "endpoint_sensitivity", why)
		warn(a.SpeechSpeed != fresh.SpeechSpeed, "speech_speed", "the model decides by itself how fast it speaks")
	}
	return list
}
