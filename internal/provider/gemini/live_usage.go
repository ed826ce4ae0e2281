package gemini

import "parley/internal/ai"

// liveUsage is what the server counts for a turn, or for a part of one that ends with calls. That it says so once for
// each is not documented.
type liveUsage struct {
	In         int      `json:"promptTokenCount"`
	Out        int      `json:"responseTokenCount"`
	Thoughts   int      `json:"thoughtsTokenCount"`
	Tools      int      `json:"toolUsePromptTokenCount"`
	Cached     int      `json:"cachedContentTokenCount"`
	InKinds    []tokens `json:"promptTokensDetails"`
	OutKinds   []tokens `json:"responseTokensDetails"`
	CacheKinds []tokens `json:"cacheTokensDetails"`
}

// tokens are those of one kind.
type tokens struct {
	Kind  string `json:"modality"`
	Count int    `json:"tokenCount"`
}

// sound counts tokens of sound.
func sound(list []tokens) (n int) {
	for _, t := range list {
		if t.Kind == "AUDIO" {
			n += t.Count
		}
	}
	return n
}

// whole is the usage with sound and text together.
func (u *liveUsage) whole() ai.Usage {
	return ai.Usage{In: u.In + u.Tools, Out: u.Out + u.Thoughts, Cached: u.Cached}
}

// spend notes what was used, with sound apart from the rest.
func (s *live) spend(u *liveUsage) {
	all := u.whole()
	in, out, cached := sound(u.InKinds), sound(u.OutKinds), sound(u.CacheKinds)
	use := ai.Use{Part: ai.TheModel, Vendor: Code, Model: s.model.code, AudioIn: in, AudioOut: out, AudioCached: min(cached, in),
		Usage: ai.Usage{In: max(all.In-in, 0), Out: max(all.Out-out, 0), Cached: max(all.Cached-cached, 0)}}
	if all != (ai.Usage{}) {
		s.tally.Spend(use)
	}
}

// used notes the tokens of a response, which may be counted after its end. The lock is held.
func (s *live) used(u ai.Usage, tell func(ai.RealtimeEvent)) {
	switch a := s.head(false, tell); {
	case a == nil || a.told:
		tell(ai.RealtimeEvent{Kind: ai.RealtimeUsed, Usage: u})
	default:
		a.usage = u
	}
}
