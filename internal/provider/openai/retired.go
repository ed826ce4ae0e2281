package openai

import "parley/internal/ai"

// What OpenAI has announced at https://developers.openai.com/api/docs/deprecations, as of November 2026. Its official
// libraries have the same days beside the models' names.

var retiredThinkers = ai.Retirements{
	{Model: "gpt-3.5-turbo", Day: "2026-10-23", Instead: "gpt-6-luna"},
	{Model: "gpt-4", Day: "2026-10-23", Instead: "gpt-6-luna"},
	{Model: "gpt-4-turbo", Day: "2026-10-23", Instead: "gpt-6-luna"},
	{Model: "gpt-4.1-nano", Day: "2026-10-23", Instead: "gpt-6-luna"},
	{Model: "gpt-4o-2024-05-13", Day: "2026-10-23", Instead: "gpt-6-luna"},
	{Model: "o1", Day: "2026-10-23", Instead: "gpt-6-luna"},
	{Model: "o3-mini", Day: "2026-10-23", Instead: "gpt-6-luna"},
	{Model: "o4-mini", Day: "2026-10-23", Instead: "gpt-6-luna"},
	{Model: "gpt-5", Day: "2026-12-11", Instead: "gpt-6-luna"},
	{Model: "gpt-5-mini", Day: "2026-12-11", Instead: "gpt-6-luna"},
	{Model: "gpt-5-nano", Day: "2026-12-11", Instead: "gpt-6-luna"},
	{Model: "o3", Day: "2026-12-11", Instead: "gpt-6-luna"},
	{Model: "gpt-4o", Day: "2027-01-14", Instead: "gpt-6-luna"},
	{Model: "gpt-4o-mini", Day: "2027-01-14", Instead: "gpt-6-luna"},
	{Model: "gpt-4.1", Day: "2027-01-14", Instead: "gpt-6-luna"},
	{Model: "gpt-4.1-mini", Day: "2027-01-14", Instead: "gpt-6-luna"},
	{Model: "gpt-5.1", Day: "2027-04-01", Instead: "gpt-6-luna"},
	{Model: "gpt-5.4-nano", Day: "2027-04-01", Instead: "gpt-6-luna"},
}

var retiredHearers = ai.Retirements{
	{Model: "gpt-realtime", Day: "2027-01-20", Instead: "gpt-realtime-2.1"},
	{Model: "gpt-realtime-mini", Day: "2027-01-20", Instead: "gpt-realtime-2.1-mini"},
}

// What takes the place of these is reached in another way: see aloud.
var retiredVoices = ai.Retirements{
	{Model: "tts-1", Day: "2027-01-06", Instead: "gpt-realtime-2.1-mini"},
	{Model: "tts-1-hd", Day: "2027-01-06", Instead: "gpt-realtime-2.1-mini"},
	{Model: "gpt-4o-mini-tts", Day: "2027-01-06", Instead: "gpt-realtime-2.1-mini"},
}

var retiredRecognizers = ai.Retirements{
	{Model: "whisper-1", Day: "2027-02-26", Instead: "gpt-transcribe"},
	{Model: "gpt-4o-transcribe", Day: "2027-02-26", Instead: "gpt-transcribe"},
	{Model: "gpt-4o-mini-transcribe", Day: "2027-02-26", Instead: "gpt-transcribe"},
	{Model: "gpt-4o-transcribe-diarize", Day: "2027-02-26", Instead: "gpt-transcribe"},
}

// retired lists what is announced of the abilities that use OpenAI's own server.
func (s *Settings) retired() (list ai.Retirements) {
	for _, a := range []struct {
		at  server
		are ai.Retirements
	}{
		{s.general(), retiredThinkers}, {s.realtime(), retiredHearers}, {s.tts(), retiredVoices},
		{s.stt(), retiredRecognizers},
	} {
		if a.at.base == DefaultBaseURL {
			list = append(list, a.are...)
		}
	}
	return list
}
