package live

import "parley/internal/ai"

// Use is what was used of a model that hears and speaks: all tokens, and those of sound among them.
func Use(vendor, model string, all, sound ai.Usage) ai.Use {
	return ai.Use{Part: ai.TheModel, Vendor: vendor, Model: model,
		AudioIn: sound.In, AudioOut: sound.Out, AudioCached: min(sound.Cached, sound.In),
		Usage: ai.Usage{In: max(all.In-sound.In, 0), Out: max(all.Out-sound.Out, 0), Cached: max(all.Cached-sound.Cached, 0)}}
}
