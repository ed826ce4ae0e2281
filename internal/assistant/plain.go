package assistant

import "parley/internal/parley"

// Plain is an assistant as one that speaks and listens by vendors of their own, as is needed where no model has a part:
// for a voicemail, for one. An assistant whose voice is a model's alone speaks in the first voice of its language.
func (d *Studio) Plain(a *parley.Assistant) *parley.Assistant {
	if a.Mode == "pipeline" {
		return a
	}
	plain := *a
	plain.Mode = "pipeline"
	c := d.Catalog.For(a.UserID)
	if v := c.Voice(a.VoiceID); v == nil || v.Inside != "" || v.SynthesizerProviderID == nil || c.Lost(v.ID) {
		if list := c.Voices("pipeline", a.LanguageID); len(list) > 0 {
			plain.VoiceID = list[0].ID
		}
	}
	return &plain
}
