package realtime

import (
	"time"

	"parley/internal/ai"
	"parley/internal/provider/live"
)

// realtimeUsage is the usage that the server reports for a response, or for the transcript of an utterance. Transcripts
// that are charged by duration have seconds instead of tokens.
type realtimeUsage struct {
	InputTokens  int         `json:"input_tokens"`
	OutputTokens int         `json:"output_tokens"`
	Seconds      float64     `json:"seconds"`
	Billable     float64     `json:"billable_audio_seconds"` // xAI's: of the session so far, both ways
	Input        tokenCounts `json:"input_token_details"`
	Output       tokenCounts `json:"output_token_details"`
}

// tokenCounts breaks tokens down by kind. Cached tokens are included in the other counts.
type tokenCounts struct {
	Audio  int `json:"audio_tokens"`
	Cached struct {
		Text  int `json:"text_tokens"`
		Audio int `json:"audio_tokens"`
	} `json:"cached_tokens_details"`
}

// whole is the total usage, audio and text together.
func (u *realtimeUsage) whole() ai.Usage { return ai.Usage{In: u.InputTokens, Out: u.OutputTokens} }

// spend records the usage that an event reports.
func (s *session) spend(e *realtimeEvent) {
	part, model, u := ai.TheModel, s.model, &e.Response.Usage
	switch e.Type {
	case "response.done":
		if *u == (realtimeUsage{}) { // xAI's is beside the response
			*u = e.Usage
		}
	case "conversation.item.input_audio_transcription.completed":
		part, model, u = ai.TheRecognizer, s.dialect.RecognizerModel, &e.Usage
	default:
		return
	}
	cached := u.Input.Cached
	use := live.Use(s.dialect.Vendor, model, ai.Usage{In: u.InputTokens, Out: u.OutputTokens, Cached: cached.Text + cached.Audio},
		ai.Usage{In: u.Input.Audio, Out: u.Output.Audio, Cached: cached.Audio})
	use.Part, use.Heard = part, time.Duration(u.Seconds*float64(time.Second))
	if all := time.Duration(u.Billable * float64(time.Second)); all > s.billed {
		use.Heard, s.billed = use.Heard+all-s.billed, all
	}
	if use != (ai.Use{Part: part, Vendor: s.dialect.Vendor, Model: model}) {
		s.Tally.Spend(use)
	}
}
